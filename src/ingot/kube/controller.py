"""Reconciling: keys in, one worker a key, results that say when to look again.

    async def reconcile(key) -> Done | Again(after, why)

Level-triggered: a key says that something about the object may be different, not what. `Done` waits for the next wake;
`Again` also looks again after a while. An exception means back-off: the log names the key, the wait doubles with every failure
in a row, and success resets it. `Conflict` is everyday life (somebody else wrote first): the key runs again at once, quietly,
and only a row of conflicts is slowed down. When `run` is cancelled no new reconcile starts, and those in flight get a few
seconds to end.
"""

from __future__ import annotations

import asyncio
import logging
import random
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from ingot.api.meta import Key
from ingot.kube.backoff import Backoff
from ingot.kube.errors import ApiError, Conflict
from ingot.kube.metrics import (
    ACTIVE_WORKERS,
    MOST_WORKERS,
    QUEUE_LENGTH,
    RECONCILE_ERRORS,
    RECONCILES,
    ControllerMeters,
)
from ingot.kube.queue import KeyQueue
from ingot.kube.workers import Workers
from ingot.trust import redact

log = logging.getLogger(__name__)

GRACE: Final = 5.0
"""Seconds that a reconcile in flight is given when the controller stops."""

BACKOFF: Final = Backoff()


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing left to do until somebody wakes the key."""


@dataclass(frozen=True, slots=True)
class Again:
    """Look again in so many seconds (a little later, so that many do not come at once); `why` is for the log."""

    after: float
    why: str


Reconcile = Callable[[Key], Awaitable[Done | Again]]


class Controller:
    """A queue of keys and the workers that reconcile them."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = 16,
        backoff: Backoff = BACKOFF,
        grace: float = GRACE,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._backoff = backoff
        self._grace = grace
        self._queue = KeyQueue()
        self._workers = Workers(name, workers, self._step)
        self._failures: dict[Key, int] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._meters = ControllerMeters(name)
        self._loop: asyncio.AbstractEventLoop | None = None
        QUEUE_LENGTH.labels(name).set_function(lambda: len(self._queue))
        ACTIVE_WORKERS.labels(name).set_function(lambda: len(self._queue.active))
        MOST_WORKERS.labels(name).set(workers)

    def wake(self, key: Key, *, low: bool = False) -> None:
        """Have this key reconciled soon. Cheap, never blocks; waking twice is waking once."""
        if self._queue.wake(key, self._now(), low=low):
            self._meters.added.inc()
            self._workers.rouse()

    def give_no_grace(self) -> None:
        """From now on, stopping means at once: what is in flight is cut off."""
        self._grace = 0.0

    async def run(self) -> None:
        """Work until cancelled."""
        self._loop = asyncio.get_running_loop()
        self._set_alarm()
        try:
            await self._workers.run(grace=lambda: self._grace)
        finally:
            self._cancel_alarm()

    async def _step(self) -> bool:
        """Reconcile one key, if one is due."""
        now = self._now()
        taken = self._queue.pop(now)
        if taken is None:
            return False
        if self._queue:
            self._workers.rouse()
        key, waited = taken
        self._meters.waited.observe(max(0.0, waited))
        await self._run_one(key, now)
        return True

    async def _run_one(self, key: Key, started: float) -> None:
        try:
            result = await self._reconcile(key)
        except asyncio.CancelledError as error:
            if _being_cancelled():
                # Not finished is not lost: if this controller runs again, so does the key.
                self._queue.wake(key, self._now())
                self._queue.done(key, self._now())
                raise
            self._failed(key, error)
        except Exception as error:  # the edge of a reconcile: whatever it is, it concerns this key alone
            self._failed(key, error)
        else:
            self._succeeded(key, result)
        self._meters.took.observe(self._now() - started)

    def _succeeded(self, key: Key, result: Done | Again) -> None:
        self._failures.pop(key, None)
        self._queue.done(key, self._now())
        match result:
            case Done():
                self._meters.succeeded.inc()
            case Again(after, why):
                self._meters.again.inc()
                log.debug("%s %s: again in %.1f s: %s", self.name, key, after, why)
                # Later by up to a tenth, never earlier: a deadline that is asked about too soon has not passed.
                self._later(key, max(0.0, after) * random.uniform(1.0, 1.1))  # noqa: S311 - jitter

    def _failed(self, key: Key, error: BaseException) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._queue.done(key, self._now())
        if isinstance(error, Conflict):
            RECONCILES.labels(self.name, "requeue").inc()
            log.debug("%s %s: %s", self.name, key, error)
            delay = 0.0 if failures == 1 else self._backoff.delay(failures)
        else:
            RECONCILES.labels(self.name, "error").inc()
            RECONCILE_ERRORS.labels(self.name).inc()
            delay = self._backoff.delay(failures)
            log.warning(
                "%s %s: failed %d in a row, again in %.3g s: %s",
                self.name,
                key,
                failures,
                delay,
                _story(error, whole=failures == 1),
            )
        self._later(key, delay)

    def _later(self, key: Key, delay: float) -> None:
        self._meters.put_off.inc()
        self._queue.later(key, self._now(), delay=delay)
        self._set_alarm()

    # The one timer

    def _set_alarm(self) -> None:
        due = self._queue.next_due()
        if due is None or (self._alarm is not None and self._alarm.when() <= due):
            return
        self._cancel_alarm()
        self._alarm = asyncio.get_running_loop().call_at(due, self._ring, due)

    def _ring(self, due: float) -> None:
        self._alarm = None
        # A loop rings up to one tick of its clock early; asking what is due right now could then find nothing, for ever.
        self._queue.release(max(self._now(), due))
        self._set_alarm()
        self._workers.rouse()

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _now(self) -> float:
        """The time of the loop, which is kept: asking which one runs is a system call, and this is asked four times a key."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop.time()


def _being_cancelled() -> bool:
    """Whether somebody wants this worker to end; a reconcile can also let a cancellation of its own slip out."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _story(error: BaseException, *, whole: bool) -> str:
    """What went wrong, without secrets; the traceback once, and none for what the API said."""
    if isinstance(error, ApiError) or not whole:
        return redact(f"{type(error).__name__}: {error}")
    return redact("".join(traceback.format_exception(error)))
