"""A process that serves images: `python -m ingot.images.server.worker`, started by `workers` and by nobody else.

Its standard input is a socket to the process that makes the images. From there it hears which images there are and when to begin;
there it says what it logs. When the other side is gone, however it went, so is this one, after a moment for answers on their way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from pathlib import Path

from ingot.images.server.http import ImageServer
from ingot.images.server.messages import (
    Complete,
    Drop,
    Logged,
    Mark,
    Marked,
    Put,
    Renewed,
    Serve,
    orders,
    packed,
)
from ingot.images.server.shelf import Shelf
from ingot.trust import Certificate, ServingTls

log = logging.getLogger(__name__)


class _Telling(logging.Handler):
    """Has the other process log what this one has to say."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._loop = loop
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        said = packed(Logged(record.name, record.levelno, self.format(record)))
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._writer.write, said)


class _Worker:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._shelf = Shelf()
        self._tls: ServingTls | None = None

    async def run(self, reader: asyncio.StreamReader) -> None:
        async with contextlib.AsyncExitStack() as stack:
            async for order in orders(reader):
                match order:
                    case Put():
                        self._shelf.put(order.name, order.image)
                    case Drop():
                        self._shelf.drop(order.name)
                    case Complete():
                        self._shelf.complete()
                    case Serve():
                        await stack.enter_async_context(self._server(order))
                    case Renewed():
                        self._look()
                    case Mark(number):
                        self._writer.write(packed(Marked(number)))

    def _server(self, order: Serve) -> ImageServer:
        logging.getLogger().setLevel(order.level)
        if order.certificate is not None:
            certificate = Certificate(*map(Path, order.certificate))
            self._tls = ServingTls(lambda: certificate)
        listeners = [socket.socket(fileno=handle) for handle in order.listeners]
        return ImageServer(
            self._shelf, listen=listeners, tls=self._tls, ready=lambda: self._shelf.is_complete
        )

    def _look(self) -> None:
        try:
            if self._tls is not None:
                self._tls.look()
        except (OSError, ValueError) as error:
            # They are being replaced once more; the server itself looks again in some seconds.
            log.warning("the serving certificate cannot be loaded: %s", error)


async def _work(control: socket.socket) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=control)
    logging.getLogger().addHandler(_Telling(asyncio.get_running_loop(), writer))
    await _Worker(writer).run(reader)
    await asyncio.sleep(0)  # what threads said last is written
    writer.close()
    with contextlib.suppress(OSError):  # nobody listens any more
        await writer.wait_closed()


if __name__ == "__main__":
    asyncio.run(_work(socket.socket(fileno=0)))
