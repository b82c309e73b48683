"""An HTTP server that does what it is told, also when that is wrong, and a proxy. Written by hand, so that it can lie."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


@dataclass(frozen=True)
class Says:
    """A status, and nothing else worth reading."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cuts:
    """Announces everything and hangs up after so many bytes, once they have arrived."""

    after: int


@dataclass(frozen=True)
class Stalls:
    """Sends so many bytes, and then nothing more."""

    after: int


@dataclass(frozen=True)
class Lies:
    """Answers with these headers and this body, whatever was asked for."""

    status: int
    headers: dict[str, str]
    body: bytes


Fault = Says | Cuts | Stalls | Lies


@dataclass
class File:
    content: bytes
    etag: str | None = None
    ranges: bool = True
    length: bool = True
    """Without it the file ends where the connection does."""

    def __post_init__(self) -> None:
        self.etag = self.etag or f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


class UnrulyServer:
    """Files by path, and what goes wrong with the next requests, in order."""

    def __init__(self, *, tls: bool = False) -> None:
        self.files: dict[str, File] = {}
        self.faults: list[Fault | None] = []
        self.asked: list[Asked] = []
        self.port = 0
        self.scheme = "https" if tls else "http"
        self.arrived: Callable[[], int] | None = None
        """How many bytes the other side has kept, where somebody knows: what is still on the line is lost with it."""
        self._stopping = asyncio.Event()
        self._news = asyncio.Event()

    def url(self, path: str = "/image.iso") -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await read_request(reader)
            if asked is None:
                return
            self.asked.append(asked)
            self._news.set()
            fault = self.faults.pop(0) if self.faults else None
            await self._answer(asked, fault, writer)
        except (ConnectionError, ssl.SSLError):
            pass  # the other side went away, which is its right
        finally:
            writer.close()

    async def _answer(self, asked: Asked, fault: Fault | None, writer: asyncio.StreamWriter) -> None:
        if isinstance(fault, Says):
            return await _send(writer, fault.status, {"Content-Length": "0", **fault.headers}, b"")
        if isinstance(fault, Lies):
            return await _send(writer, fault.status, fault.headers, fault.body)
        file = self.files.get(asked.path)
        if file is None:
            return await _send(writer, 404, {"Content-Length": "0"}, b"")
        status, headers, body = self._whole_or_range(asked, file)
        sent = len(body) if fault is None else fault.after
        await _send(writer, status, headers, body[:sent])
        if isinstance(fault, Stalls):
            await self._stopping.wait()
        if isinstance(fault, Cuts) and self.arrived:
            expected = len(file.content) - len(body) + sent
            for _ in range(10_000):
                if self.arrived() >= expected:
                    break
                await asyncio.sleep(0.002)
        return None

    def _whole_or_range(self, asked: Asked, file: File) -> tuple[int, dict[str, str], bytes]:
        headers = {"ETag": file.etag} if file.etag else {}
        status, body = 200, file.content
        wanted = re.fullmatch(r"bytes=(\d+)-", asked.range or "")
        if wanted and file.ranges and asked.headers.get("if-range") in (None, file.etag):
            first, size = int(wanted[1]), len(file.content)
            if first >= size:
                return 416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"}, b""
            status, body = 206, file.content[first:]
            headers["Content-Range"] = f"bytes {first}-{size - 1}/{size}"
        if file.length:
            headers["Content-Length"] = str(len(body))
        return status, headers, body

    async def was_asked(self, times: int) -> None:
        """Wait until it was asked so many times."""
        while len(self.asked) < times:
            self._news.clear()
            await self._news.wait()

    def stop(self) -> None:
        self._stopping.set()


@asynccontextmanager
async def unruly(trusted: ssl.SSLContext | None = None) -> AsyncIterator[UnrulyServer]:
    server = UnrulyServer(tls=trusted is not None)
    async with _listening(server.handle, trusted) as port:
        server.port = port
        yield server
        server.stop()


class Proxy:
    """Tunnels with CONNECT, forwards the rest, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await read_request(reader)
            if asked is None:
                return
            self.asked.append(asked)
            target = asked.path if asked.method == "CONNECT" else asked.path.split("/")[2]
            host, _, port = target.partition(":")
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            if asked.method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Fine\r\n\r\n")
            else:
                path = "/" + asked.path.split("/", 3)[3]
                lines = [f"{asked.method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in asked.headers.items())]
                far_writer.write("\r\n".join([*lines, "", ""]).encode())
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def proxying() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    async with _listening(proxy.handle, None) as port:
        proxy.port = port
        yield proxy


@asynccontextmanager
async def _listening(handle: Any, trusted: ssl.SSLContext | None) -> AsyncIterator[int]:
    tasks: set[asyncio.Task[None]] = set()

    async def kept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handle(reader, writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(kept, "127.0.0.1", 0, ssl=trusted)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        return None
    method, path, _ = head[0].split(" ")
    headers = (line.partition(": ") for line in head[1:] if line)
    return Asked(method, path, {name.lower(): value for name, _, value in headers})


async def _send(writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes) -> None:
    lines = [f"HTTP/1.1 {status} As I said", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
