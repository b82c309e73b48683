"""The image server as it is run: sockets to listen at, and processes of their own that answer there.

One process of Python has one lock, and encrypting for two hundred readers takes more than one processor; and neither disturbs the
controller any more. Each worker knows every image. It is told of one before `Shelf.everywhere` returns, and so before anybody is
told its name. A worker that ends, whatever it is, is started again and is told everything before it answers anybody; meanwhile
connections come to the others, or wait if there are none. Workers end with this process, however it ends: they hear nothing
any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from types import TracebackType
from typing import Final, Self

from ingot.images.server.listening import listeners
from ingot.images.server.messages import (
    Complete,
    Drop,
    Logged,
    Mark,
    Marked,
    Order,
    Put,
    Renewed,
    Serve,
    packed,
    reports,
)
from ingot.images.server.pieces import Image
from ingot.images.server.shelf import Shelf
from ingot.trust import ServingTls

log = logging.getLogger(__name__)

MOST: Final = 4
_COMMAND: Final = (sys.executable, "-P", "-m", "ingot.images.server.worker")
_PARTING: Final = 6.0
"""Seconds for a worker to end: a little more than it gives answers that are on their way."""
CONFIRMS_WITHIN: Final = 30.0
"""Seconds for a worker to confirm what it was told, or to be taken for dead; on a busy machine it takes some to start."""
_LONG_ENOUGH: Final = 10.0
"""A worker that lived for so many seconds is started again at once; one that cannot live, after a pause."""
_PAUSE: Final = 1.0


def as_many_as_processors() -> int:
    return min(MOST, len(os.sched_getaffinity(0)))


class _Worker:
    """One process, as long as it lives."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.process: Final = process
        self.serves = False
        self._writer = writer
        self._hearing = asyncio.create_task(self._hear(reader))
        self._marks: dict[int, asyncio.Event] = {}
        self._last = 0

    def tell(self, order: Order) -> None:
        if not self._writer.is_closing():
            self._writer.write(packed(order))

    async def has_heard(self, within: float) -> None:
        """Returns when it has, or is no more."""
        if self._hearing.done():
            return
        self._last += 1
        heard = self._marks[self._last] = asyncio.Event()
        self.tell(Mark(self._last))
        try:
            async with asyncio.timeout(within):
                await heard.wait()
        except TimeoutError:
            log.error("process %d, which serves images, does not answer and is ended", self.process.pid)
            self.kill()
            await self.process.wait()

    async def has_ended(self) -> None:
        """Returns when it says nothing any more."""
        await asyncio.shield(self._hearing)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        try:
            async for report in reports(reader):
                match report:
                    case Marked(number):
                        self._marks.pop(number).set()
                    case Logged(name, level, text):
                        logging.getLogger(name).log(level, "%s", text)
        finally:
            for heard in self._marks.values():
                heard.set()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def end(self) -> None:
        """It is told nothing any more, and ends; if it does not, it is ended. What it has to say at the end is heard."""
        try:
            async with asyncio.timeout(_PARTING):
                with contextlib.suppress(OSError):
                    self._writer.write_eof()
                await asyncio.wait([self._hearing])
                await self.process.wait()
        except TimeoutError:
            self.kill()
            await self.process.wait()
        finally:
            self._writer.close()


class ImageWorkers:
    """Listens while the context lasts. `listen` is an address and a port, 0 for any; `port` is the real one then. There are as
    many processes as processors unless `count` says otherwise. Without `tls`, there is none."""

    def __init__(
        self, shelf: Shelf, *, listen: tuple[str, int], tls: ServingTls | None, count: int | None = None
    ) -> None:
        self._shelf = shelf
        self._host, self.port = listen
        self._tls = tls
        self._count = count or as_many_as_processors()
        self.confirms_within = CONFIRMS_WITHIN
        self._listeners: list[socket.socket] = []
        self._workers: set[_Worker] = set()
        self._answers = asyncio.Event()
        """Whether any of them answers."""
        self._stack = contextlib.AsyncExitStack()

    @property
    def pids(self) -> list[int]:
        """The processes that answer."""
        return [worker.process.pid for worker in self._workers if worker.serves]

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            self._listeners = await listeners(self._host, self.port)
            self.port = self._listeners[0].getsockname()[1]
            self._shelf.follow(self)
            stack.callback(self._shelf.leave, self)
            tasks = [asyncio.create_task(self._keep()) for _ in range(self._count)]
            if self._tls is not None:
                self._tls.renewed.append(self._renewed)
                stack.callback(self._tls.renewed.remove, self._renewed)
                tasks.append(asyncio.create_task(self._tls.keep()))
            stack.push_async_callback(_ended, tasks)
            for listener in self._listeners:  # first of all: who comes from then on is refused
                stack.callback(listener.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    # What the shelf says

    def put(self, name: str, image: Image) -> None:
        self._tell(Put.of(name, image))

    def drop(self, name: str) -> None:
        self._tell(Drop(name))

    def complete(self) -> None:
        self._tell(Complete())

    async def has_heard(self) -> None:
        """Until somebody answers, and all who do know what was said so far. Those who come later hear it before they answer."""
        await self._answers.wait()
        await asyncio.gather(
            *(worker.has_heard(self.confirms_within) for worker in self._workers if worker.serves)
        )

    def _renewed(self) -> None:
        self._tell(Renewed())

    def _tell(self, order: Order) -> None:
        for worker in self._workers:
            worker.tell(order)

    # Workers

    async def _keep(self) -> None:
        """Have one worker after the other, until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                status = await self._employ()
            except Exception:
                # The edge of a task: whatever it is, the other workers serve, and this one is tried again.
                log.exception("a process to serve images cannot be started or understood")
            else:
                log.error("a process that serves images ended with status %d; it is started again", status)
            if clock() - began < _LONG_ENOUGH:
                await asyncio.sleep(_PAUSE)

    async def _employ(self) -> int:
        """From its first to its last message; the status that it ended with."""
        hiring = asyncio.create_task(self._hired())
        try:
            worker = await asyncio.shield(hiring)
        except asyncio.CancelledError:
            # It may be there already, and has our sockets: until it is gone, nobody else can listen where we did.
            await asyncio.wait([hiring])
            if hiring.exception() is None:
                await hiring.result().end()
            raise
        try:
            self._introduce(worker)
            await worker.has_heard(self.confirms_within)
            self._let_serve(worker)
            await worker.has_ended()
        finally:
            self._workers.discard(worker)
            if not self.pids:
                self._answers.clear()
            await worker.end()
        return worker.process.returncode or 0

    async def _hired(self) -> _Worker:
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as stack:
            stack.enter_context(ours)
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *_COMMAND,
                    stdin=theirs.fileno(),
                    pass_fds=[listener.fileno() for listener in self._listeners],
                    start_new_session=True,
                )
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            stack.pop_all()
        return _Worker(process, reader, writer)

    def _introduce(self, worker: _Worker) -> None:
        """Everything that there is, and from then on all that happens. In one go: nothing is put or dropped meanwhile."""
        for name, image in self._shelf.items():
            worker.tell(Put.of(name, image))
        if self._shelf.is_complete:
            worker.tell(Complete())
        self._workers.add(worker)

    def _let_serve(self, worker: _Worker) -> None:
        certificate = self._tls.certificate if self._tls is not None else None
        files = (
            (str(certificate.cert_file), str(certificate.key_file), str(certificate.ca_file))
            if certificate
            else None
        )
        handles = [listener.fileno() for listener in self._listeners]
        worker.tell(Serve(handles, files, logging.getLogger(__package__).getEffectiveLevel()))
        worker.serves = True
        self._answers.set()


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
