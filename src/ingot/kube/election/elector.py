"""Taking part in an election: the Lease is acquired, renewed and released from a thread of its own.

The thread has its own event loop and its own connection, so work that holds up the main loop does not cost the Lease by accident.
What it finds out is in `leadership`, which any thread may ask. The thread ends when leadership is over; who wants to contend
again is a new process with a new identity. On a clean stop the Lease is handed over at once; let all work end before that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ingot.api.meta import Key
from ingot.kube.client import Client
from ingot.kube.election.contest import Contest, Look, Timing, Wait, Write
from ingot.kube.election.leadership import Clock, Leadership, seconds_since_boot
from ingot.kube.election.record import LEASES, Lease, Record
from ingot.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from ingot.kube.metrics import LEADING

log = logging.getLogger(__name__)

TIMING: Final = Timing()
_REFUSALS: Final = 3
"""Writes of one try that may be refused because somebody else was faster."""


def own_identity() -> str:
    """A name that no other process has, ever: a lock that is found under it is our own."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"


class Elector:
    """A contender for one Lease, from `contend` until the block of `async with` is left; whether it won is in `leadership`."""

    def __init__(
        self,
        connect: Callable[[], Client],
        lease: Key,
        *,
        identity: str = "",
        timing: Timing = TIMING,
        clock: Clock = seconds_since_boot,
        on_loss: Callable[[], None] = lambda: None,
    ) -> None:
        """`connect` makes the client for the thread: another one than that of the main loop, and without a guard.

        `on_loss` is called in the thread when leadership is over and nobody asked for it: the main loop may hear of it too late.
        """
        self._connect = connect
        self._on_loss = on_loss
        self._lease = lease
        self._timing = timing
        self._clock = clock
        self._trouble = ""
        self._holder = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = threading.Event()
        self._nudge: asyncio.Event | None = None
        self.identity: Final = identity or own_identity()
        self.leadership: Final = Leadership(clock)
        self._contest = Contest(self.identity, timing, self.leadership, clock)
        self._thread = threading.Thread(target=self._run, name=f"election {lease}", daemon=True)
        LEADING.labels(lease.name).set_function(lambda: float(self.leadership.held))

    @property
    def holder(self) -> str:
        """Who led when we last looked; "" while we do not know."""
        return self._holder

    @property
    def trouble(self) -> str:
        """Why the last try told us nothing; "" when it did."""
        return self._trouble

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def contend(self) -> None:
        """Begin. Whoever might win should be able to work: call it when all is prepared."""
        if self._thread.ident is None:
            self._thread.start()

    async def stop(self) -> None:
        """Stop contending; hand the Lease over if we hold it."""
        self._stop.set()
        if self._thread.ident is None:
            return
        if self._loop is not None and self._nudge is not None:
            # A loop that is closed has nothing left to be told.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._nudge.set)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            asyncio.run(self._contend())
        except Exception as error:  # the edge of the thread: when nobody renews, nobody may go on working
            log.exception("the election for Lease %s ended by an error", self._lease)
            self.leadership.end(f"the election for Lease {self._lease} ended by an error: {error}")
            self._on_loss()

    async def _contend(self) -> None:
        self._nudge = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        async with self._connect() as client:
            while not (self._stop.is_set() or self.leadership.over):
                await self._try(client)
                await self._rest()
            if not self._stop.is_set():
                self._on_loss()
            elif not self.leadership.over:
                # Whoever asks from here on is told no; only then do the others hear that they may.
                self.leadership.end("the process is stopping and has handed over the Lease")
                await self._release(client)

    async def _try(self, client: Client) -> None:
        led = self.leadership.held
        try:
            async with asyncio.timeout(self._patience()):
                await self._attempt(client)
        except TimeoutError:
            self._troubled("the API did not answer in time")
        except KubeError as error:
            self._troubled(str(error))
        else:
            self._trouble = ""
            if self.leadership.held and not led:
                log.info("Lease %s: %s leads now", self._lease, self.identity)

    async def _attempt(self, client: Client) -> None:
        for _ in range(_REFUSALS):
            step: Look | Write | Wait = self._contest.begin()
            if isinstance(step, Look):
                lease = await self._read(client)
                step = self._contest.saw(*_what_it_says(lease))
            if isinstance(step, Wait):
                self._waits_for(step.holder)
                return
            assert isinstance(step, Write)
            if await self._written(client, step):
                self._holder = step.record.holder
                return
        log.debug("Lease %s: others were faster %d times in a row", self._lease, _REFUSALS)

    async def _read(self, client: Client) -> Lease | None:
        try:
            return await client.get(LEASES, self._lease)
        except NotFound:
            return None

    async def _written(self, client: Client, write: Write) -> bool:
        sent = self._clock()
        spec = {"spec": write.record.spec()}
        try:
            if write.version:
                lease = await client.patch(LEASES, self._lease, spec, resource_version=write.version)
            else:
                metadata = {"name": self._lease.name, "namespace": self._lease.namespace}
                lease = await client.create(LEASES, {"metadata": metadata, **spec})
        except (Conflict, AlreadyExists):
            self._contest.refused()
            return False
        except NotFound:
            if not write.version:
                raise
            self._contest.refused()
            return False
        self._contest.wrote(Record.of(lease), lease.metadata.resource_version, sent=sent)
        return True

    async def _release(self, client: Client) -> None:
        """Best effort: without it the others wait until the Lease expires."""
        try:
            async with asyncio.timeout(self._timing.renew_deadline / 2):
                for _ in range(_REFUSALS):
                    write = self._contest.release()
                    if write is None or await self._written(client, write):
                        return
                    # Our last renewal may have been carried out although its answer was lost: then it is still ours.
                    self._contest.saw(*_what_it_says(await self._read(client)))
        except (TimeoutError, KubeError) as error:
            log.warning("Lease %s was not handed over: %s", self._lease, error or "the API did not answer")

    def _patience(self) -> float:
        longest = self._timing.renew_deadline / 2
        return min(longest, self.leadership.left) if self.leadership.held else longest

    async def _rest(self) -> None:
        """Until the next try is due; no longer than we lead, so that a loss is noticed the moment it happens."""
        pause = self._timing.pause()
        if self.leadership.over:
            return
        if self.leadership.held:
            pause = min(pause, self.leadership.left)
        assert self._nudge is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._nudge.wait()

    def _waits_for(self, holder: str) -> None:
        if holder != self._holder:
            log.info("Lease %s: %s leads; %s stands by", self._lease, holder, self.identity)
            self._holder = holder

    def _troubled(self, why: str) -> None:
        if why != self._trouble:
            log.warning("Lease %s: %s", self._lease, why)
            self._trouble = why


def _what_it_says(lease: Lease | None) -> tuple[Record | None, str]:
    return (None, "") if lease is None else (Record.of(lease), lease.metadata.resource_version)
