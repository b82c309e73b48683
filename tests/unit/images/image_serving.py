"""An image server in a thread of its own, and a client that says exactly what it is told to say."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ingot.images.region import Region
from ingot.images.server import Image, ImageServer, Names, Shelf, entity_tag
from ingot.images.server.pieces import Piece
from ingot.trust import ServingTls

MODIFIED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NAMES = Names(b"a key for tests, long enough")
A = NAMES.name("a")


def noise(size: int, seed: str = "") -> bytes:
    return hashlib.shake_256(seed.encode()).digest(size)


def materialised(pieces: tuple[Piece, ...]) -> bytes:
    """The image as it would lie on disk, had somebody made it."""
    whole = b""
    for piece in pieces:
        if isinstance(piece, bytes):
            whole += piece
        else:
            with piece.open() as file:
                whole += file.read()
    return whole


def image_of(pieces: tuple[Piece, ...]) -> Image:
    base = next((piece for piece in pieces if isinstance(piece, Region)), Region(Path("none"), 0, 0))
    return Image(pieces, entity_tag(Region(base.path, 0, 1 << 40), "0" * 64, pieces), MODIFIED)


@contextmanager
def serving(
    shelf: Shelf, *, tls: ServingTls | None = None, ready: Callable[[], bool] = lambda: True, **limits: object
) -> Iterator[int]:
    """The port that it listens at."""
    started: list[int] = []
    problems: list[BaseException] = []
    up, over = threading.Event(), threading.Event()

    async def run() -> None:
        server = ImageServer(shelf, listen=("127.0.0.1", 0), tls=tls, ready=ready, **limits)  # type: ignore[arg-type]
        async with server:
            started.append(server.port)
            up.set()
            await asyncio.to_thread(over.wait)

    def thread() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            problems.append(error)
        finally:
            up.set()

    running = threading.Thread(target=thread)
    running.start()
    try:
        up.wait()
        if problems:
            raise problems[0]
        yield started[0]
    finally:
        over.set()
        running.join()
    if problems:
        raise problems[0]


@dataclass
class Got:
    status: int
    fields: dict[str, str]
    body: bytes


class Client:
    """One connection."""

    def __init__(
        self, port: int, context: ssl.SSLContext | None = None, *, over: socket.socket | None = None
    ) -> None:
        self.socket = over or socket.socket()
        self._came = b""
        try:
            self.socket.settimeout(30)
            self.socket.connect(("127.0.0.1", port))
            if context is not None:
                self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        except BaseException:
            self.socket.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def get(self, target: str = f"/images/{A}", method: str = "GET", **fields: str) -> Got:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.say(f"{method} {target} HTTP/1.1\r\nHost: h\r\n{lines}\r\n".encode())
        return self.hear(body=method != "HEAD")

    def say(self, content: bytes) -> None:
        self.socket.sendall(content)

    def hear(self, *, body: bool = True) -> Got:
        while b"\r\n\r\n" not in self._came:
            self._more()
        head, _, self._came = self._came.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        status = int(first.split(" ")[1])
        length = int(fields.get("content-length", "0")) if body and status != 304 else 0
        while len(self._came) < length:
            self._more()
        content, self._came = self._came[:length], self._came[length:]
        return Got(status, fields, content)

    def ended(self) -> bool:
        """Whether the other side closed the connection; waits for it, and fails when more came instead."""
        try:
            return not self._came and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _more(self) -> None:
        some = self.socket.recv(1 << 20)
        if not some:
            raise EOFError(f"the connection ended after {self._came[:200]!r}")
        self._came += some
