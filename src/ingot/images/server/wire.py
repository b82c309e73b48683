"""A connection that never blocks: bytes in, bytes and files out, with TLS or without.

Everything here is a generator that tries first and, where the connection is not ready, yields what it waits for; `loop` goes on
with it then. So a conversation reads from top to bottom, and a thread has hundreds of them. None takes more than a turn's worth
at once, however fast its client reads: the others are waiting.

Without TLS, the kernel sends a file's pages itself; only the short ranges that BMCs ask for are faster read and sent with their
head in one go. With TLS they are read as well: a file that is mapped into memory would end the process if somebody cut it short.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
from collections.abc import Generator
from typing import Final, Protocol, TypeVar

READ: Final = select.EPOLLIN
WRITE: Final = select.EPOLLOUT
TURN: Final = 4 * 1024 * 1024
"""What one connection may send before it is another one's turn: as much as the kernel keeps for it. Half of that costs a quarter
more with fifty that read as fast as they can."""
_ENCRYPTED_TURN: Final = 2 * 1024 * 1024
"""The same where it has to be encrypted, which takes longer."""
_ENCRYPTED: Final = 64 * 1024
"""What is read, encrypted and sent at once: four records of TLS, and a range of BMCs. More brings nothing."""
_SHORT: Final = 128 * 1024
"""Up to here, copying a range costs less than sending its head apart from it."""
_RECEIVED: Final = 4096
_LINGERING: Final = 256 * 1024

_T = TypeVar("_T")
Steps = Generator[int, None, _T]
"""Yields READ or WRITE: what has to be possible before the next step."""


class FileTooShort(OSError):
    """A file ends before the region of it that is to be sent does."""


class Wire(Protocol):
    """One connection, and how many bytes of answers it took so far."""

    sent: int

    def fileno(self) -> int: ...

    def greet(self) -> Steps[None]:
        """Whatever comes before the first request."""

    def receive(self) -> Steps[bytes]:
        """Some bytes; none when the other side will send no more."""

    def send(self, content: bytes) -> Steps[None]:
        """All of it."""

    def send_file(self, lead: bytes, handle: int, offset: int, length: int) -> Steps[None]:
        """A region of an open file, and some bytes in front of it."""

    def part(self) -> Steps[None]:
        """Say that no more comes, and listen a little longer: a connection that is closed while the other side still sends
        takes back the answer that is on its way."""

    def close(self) -> None: ...


class PlainWire:
    """Without TLS."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.sent = 0
        self.fileno: Final = connection.fileno

    def greet(self) -> Steps[None]:
        yield from ()

    def receive(self) -> Steps[bytes]:
        return _received(self._connection)

    def send(self, content: bytes) -> Steps[None]:
        yield from self._send(content, 0)

    def send_file(self, lead: bytes, handle: int, offset: int, length: int) -> Steps[None]:
        if length <= _SHORT:
            content = os.pread(handle, length, offset)
            if len(content) < length:
                raise FileTooShort
            yield from self._send(lead + content, 0)
            return
        yield from self._send(lead, socket.MSG_MORE)
        out = self._connection.fileno()
        while length:
            try:
                done = os.sendfile(out, handle, offset, min(length, TURN))
            except BlockingIOError:
                yield WRITE
                continue
            if not done:
                raise FileTooShort
            self.sent += done
            offset += done
            length -= done
            if length:
                yield WRITE

    def _send(self, content: bytes, flags: int) -> Steps[None]:
        left = memoryview(content)
        while left:
            try:
                done = self._connection.send(left[:TURN], flags)
            except BlockingIOError:
                yield WRITE
                continue
            self.sent += done
            left = left[done:]
            if left:
                yield WRITE

    def part(self) -> Steps[None]:
        self._connection.shutdown(socket.SHUT_WR)
        yield from _hear_out(self._connection)

    def close(self) -> None:
        self._connection.close()


class TlsWire:
    """With TLS; the handshake is not done yet.

    OpenSSL reads and writes memory, and what it made of a range goes out at once: left to itself it sends each record apart, and
    a packet for every 16 KB costs both sides more than encrypting it does.
    """

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        self._connection = connection
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._came, self._goes, server_side=True)
        self.sent = 0
        self.fileno: Final = connection.fileno

    def greet(self) -> Steps[None]:
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                yield from self._flush()
                yield from self._hear()
            except ssl.SSLError:
                with contextlib.suppress(OSError):  # the other side is told why, if it listens
                    self._connection.send(self._goes.read())
                raise
        yield from self._flush()

    def receive(self) -> Steps[bytes]:
        if not self._tls.pending() and not self._came.pending:
            yield from self._hear()
        while True:
            try:
                return self._tls.read(_RECEIVED)
            except ssl.SSLWantReadError:
                yield from self._flush()
                yield from self._hear()
            except ssl.SSLEOFError:  # it ended without saying so
                return b""

    def send(self, content: bytes) -> Steps[None]:
        left = memoryview(content)
        while left:
            some, left = left[:_ENCRYPTED], left[_ENCRYPTED:]
            self._encrypt(some)
            yield from self._flush(carrying=len(some))

    def send_file(self, lead: bytes, handle: int, offset: int, length: int) -> Steps[None]:
        carrying, turn = len(lead), _ENCRYPTED_TURN
        self._encrypt(lead)
        while length:
            content = os.pread(handle, min(length, _ENCRYPTED), offset)
            if not content:
                raise FileTooShort
            self._encrypt(content)
            done = len(content)
            yield from self._flush(carrying=carrying + done)
            carrying = 0
            offset += done
            length -= done
            turn -= done
            if length and turn <= 0:
                yield WRITE
                turn = _ENCRYPTED_TURN

    def part(self) -> Steps[None]:
        with contextlib.suppress(OSError, ValueError):  # says that it ends; the other side need not answer
            self._tls.unwrap()
        yield from self._flush()
        self._connection.shutdown(socket.SHUT_WR)
        yield from _hear_out(self._connection)

    def close(self) -> None:
        self._connection.close()

    def _encrypt(self, content: bytes | memoryview) -> None:
        left = memoryview(content)
        while left:  # it takes one record at a time
            left = left[self._tls.write(left) :]

    def _flush(self, *, carrying: int = 0) -> Steps[None]:
        """Send what was encrypted, so many bytes of an answer among it."""
        left = memoryview(self._goes.read())
        size, before = len(left), self.sent
        while left:
            try:
                done = self._connection.send(left)
            except BlockingIOError:
                yield WRITE
                continue
            left = left[done:]
            self.sent = before + carrying * (size - len(left)) // size
            if left:
                yield WRITE

    def _hear(self) -> Steps[None]:
        if some := (yield from _received(self._connection)):
            self._came.write(some)
        else:
            self._came.write_eof()


def _received(connection: socket.socket) -> Steps[bytes]:
    while True:
        yield READ
        with contextlib.suppress(BlockingIOError):
            return connection.recv(_RECEIVED)


def _hear_out(connection: socket.socket) -> Steps[None]:
    heard = 0
    while heard < _LINGERING and (some := (yield from _received(connection))):
        heard += len(some)
