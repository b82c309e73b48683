"""A line to the API that can be cut: bytes pass through untouched, TLS and all, until a test cuts every connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from kubernetes_api import access_of


class Line:
    """Connections made to `port` go on to the API. While `open` is false, new ones are ended at once."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self.open = True
        self.connections = 0

    def cut(self) -> None:
        """End every connection in the middle of whatever it carries."""
        for writer in self._writers:
            writer.transport.abort()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.open:
            writer.transport.abort()
            return
        self.connections += 1
        onward, back = await asyncio.open_connection(*self._target)
        self._writers |= {writer, back}
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pour(reader, back))
                both.create_task(_pour(onward, writer))
        finally:
            self._writers -= {writer, back}
            for end in (writer, back):
                end.transport.abort()


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    # A connection that ends, in whatever way, is the end of the other direction too.
    with contextlib.suppress(OSError):
        while data := await source.read(2**16):
            sink.write(data)
            await sink.drain()
    sink.transport.abort()


def detour(kubeconfig: Path, through: int, folder: Path) -> Path:
    """The same kubeconfig, with the API at another port."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{through}"
    path = folder / "kubeconfig-detour"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


@contextlib.asynccontextmanager
async def line_to(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Line, Path]]:
    """A line to the API of this kubeconfig, and a kubeconfig that takes it."""
    url = urlsplit(access_of(kubeconfig).url)
    line = Line(str(url.hostname), int(url.port or 443))
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    try:
        yield line, detour(kubeconfig, server.sockets[0].getsockname()[1], folder)
    finally:
        server.close()
        line.cut()
        await server.wait_closed()
