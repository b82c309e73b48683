"""A connection that never blocks: bytes in, bytes and files out, with TLS or without.

Everything here is a generator that tries first and, where the connection is not ready, yields what it waits for; `loop` goes on
with it then. So a conversation reads from top to bottom, and a thread has hundreds of them. None takes more than a turn's worth
at once, however fast its client reads: the others are waiting.

Without TLS, the kernel sends a file's pages itself; only the short ranges that BMCs ask for are faster read and sent with their
head in one go. With TLS they come through a buffer of the connection: OpenSSL wants to see the same bytes again when it could
not write them at once, and a file that is mapped into memory would end the process if somebody cut it short.
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
TURN: Final = 2 * 1024 * 1024
"""What one connection may send before it is another one's turn."""
_RECORDS: Final = 80 * 1024
"""What is read and encrypted at once: five records of TLS, which have room for a range of 64 KB and its head."""
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
        while True:
            yield READ
            with contextlib.suppress(BlockingIOError):
                return self._connection.recv(_RECEIVED)

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
        yield from _hear_out(self)

    def close(self) -> None:
        self._connection.close()


class TlsWire:
    """With TLS; the handshake is not done yet."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection = connection
        self._buffer: bytearray | None = None
        self.sent = 0
        self.fileno: Final = connection.fileno

    def greet(self) -> Steps[None]:
        while True:
            try:
                self._connection.do_handshake()
                return
            except ssl.SSLWantReadError:
                yield READ
            except ssl.SSLWantWriteError:
                yield WRITE

    def receive(self) -> Steps[bytes]:
        waits_for = 0 if self._connection.pending() else READ
        while True:
            if waits_for:
                yield waits_for
            try:
                return self._connection.recv(_RECEIVED)
            except (ssl.SSLWantReadError, BlockingIOError):
                waits_for = READ
            except ssl.SSLWantWriteError:
                waits_for = WRITE

    def send(self, content: bytes) -> Steps[None]:
        left = memoryview(content)
        while left:
            yield from self._records(left[:_RECORDS])
            left = left[_RECORDS:]

    def send_file(self, lead: bytes, handle: int, offset: int, length: int) -> Steps[None]:
        if self._buffer is None:
            self._buffer = bytearray(_RECORDS)
        room = memoryview(self._buffer)
        self._hold_back(True)
        while len(lead) >= _RECORDS:
            yield from self._records(memoryview(lead)[:_RECORDS])
            lead = lead[_RECORDS:]
        room[: len(lead)] = lead
        filled, turn = len(lead), TURN
        while length:
            done = os.preadv(handle, [room[filled : filled + length]], offset)
            if not done:
                raise FileTooShort
            yield from self._records(room[: filled + done])
            filled = 0
            offset += done
            length -= done
            turn -= done
            if length and turn <= 0:
                yield WRITE
                turn = TURN
        self._hold_back(False)

    def _hold_back(self, yes: bool) -> None:
        """OpenSSL writes one record at a time. Holding back what fills no packet yet spares both sides half of them."""
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, yes)

    def _records(self, content: memoryview) -> Steps[None]:
        while content:
            try:
                done = self._connection.send(content)
            except ssl.SSLWantWriteError:
                yield WRITE
            except ssl.SSLWantReadError:
                yield READ
            else:
                self.sent += done
                content = content[done:]

    def part(self) -> Steps[None]:
        with contextlib.suppress(OSError, ValueError):  # says that it ends; the other side need not answer
            self._connection.unwrap()
        self._connection.shutdown(socket.SHUT_WR)  # from here on, what is received is not decrypted any more
        yield from _hear_out(self)

    def close(self) -> None:
        self._connection.close()


def _hear_out(wire: Wire) -> Steps[None]:
    heard = 0
    while heard < _LINGERING and (some := (yield from wire.receive())):
        heard += len(some)
