"""The image server: `GET` and `HEAD` of `/images/NAME[/any-file-name]`, over TLS or without.

Owns the listener, within one process; `workers` has several. The event loop accepts connections, because that is where a
certificate is renewed; a thread of its own does everything else. There is no listing, no upload, nothing to configure from
outside. Why it is made this way: docs/decisions/0009-image-server.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ingot.images.server.conversation import House, Patience
from ingot.images.server.listening import listeners
from ingot.images.server.loop import Loop
from ingot.images.server.shelf import Shelf
from ingot.images.server.wire import PlainWire, TlsWire, Wire
from ingot.trust import ServingTls

log = logging.getLogger(__name__)

CONNECTIONS: Final = 2_000
THREADS: Final = 1
"""More would wait for each other: what they do for a range is shorter than handing on the lock of the interpreter."""
_GRACE: Final = 3.0
_NO_MORE_HANDLES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ImageServer:
    """Listens while the context lasts. `listen` is an address and a port, 0 for any, and `port` the real one then; or sockets
    that listen already. `ready` says whether all images are on the shelf, and is asked from other threads; while it says no, an
    image that is not there is answered with 503 in place of 404. Without `tls`, there is none."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        listen: tuple[str, int] | list[socket.socket],
        tls: ServingTls | None,
        ready: Callable[[], bool],
        patience: Patience | None = None,
        connections: int = CONNECTIONS,
        threads: int = THREADS,
    ) -> None:
        self._listen = listen
        self.port = 0
        self._tls = tls
        self._house = House(shelf, ready, patience or Patience())
        self._connections = connections
        self._threads = threads
        self._loops: list[Loop] = []
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            _allow_handles(2 * self._connections)
            most = max(1, self._connections // self._threads)
            self._loops = [Loop(self._house, most) for _ in range(self._threads)]
            stack.push_async_callback(self._stop)
            for loop in self._loops:
                loop.start()
            for listener in await self._listeners():
                stack.callback(listener.close)
                self._hear(listener)
                stack.callback(asyncio.get_running_loop().remove_reader, listener)
                self.port = listener.getsockname()[1]
            if self._tls is not None:
                renewing = asyncio.create_task(self._tls.keep())
                stack.callback(renewing.cancel)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _stop(self) -> None:
        for loop in self._loops:
            loop.stop(_GRACE)
        for loop in self._loops:
            await asyncio.to_thread(loop.join)

    async def _listeners(self) -> list[socket.socket]:
        return self._listen if isinstance(self._listen, list) else await listeners(*self._listen)

    def _hear(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:  # it may have been closed while it rested
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        """One at a time: other processes may listen here, and each takes its share."""
        try:
            connection, address = listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno in _NO_MORE_HANDLES:
                self._rest(listener, error)
            return  # otherwise, who wanted to come has gone again
        with contextlib.suppress(OSError):
            least = min(self._loops, key=lambda loop: loop.busy)
            least.take(self._wire(connection), address[0])

    def _wire(self, connection: socket.socket) -> Wire:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is None:
                return PlainWire(connection)
            return TlsWire(connection, self._tls.context)
        except OSError:
            connection.close()
            raise

    def _rest(self, listener: socket.socket, error: OSError) -> None:
        """Listen again in a moment: without one, a listener that cannot accept would be asked without end."""
        log.error("no connection can be accepted: %s", error)
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(1.0, self._hear, listener)


def _allow_handles(count: int) -> None:
    """As many open files as all connections need, and some for everybody else, as far as this process may have them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 1_024
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
