"""How often a caller may call, and how many calls are on their way to Ironic at once.

A machine that calls and calls is slowed down alone: it is counted by what it says it is, and by the address it comes from, which
many machines may share. Ironic's API has 64 threads for everybody; the agents never get all of them, so the operator
is heard while a thousand machines boot. Who has to wait too long is told to come again: agents do.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

COUNTED_AT_ONCE: Final = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """So many in a burst, and so many in each second after that."""

    burst: float
    each_second: float


FOR_A_MACHINE: Final = Rate(burst=20, each_second=1)
FOR_AN_ADDRESS: Final = Rate(burst=2_000, each_second=200)


class Buckets:
    """One bucket for each name. Only the names that called lately are remembered."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> bool:
        """Whether this call is within the rate."""
        now = self._clock()
        left, at = self._known.pop(name, (self._rate.burst, now))
        left = min(self._rate.burst, left + (now - at) * self._rate.each_second)
        allowed = left >= 1
        self._known[name] = (left - 1 if allowed else left, now)
        if len(self._known) > COUNTED_AT_ONCE:
            self._known.popitem(last=False)
        return allowed


class TooBusy(Exception):
    """Too many calls wait already, or this one waited too long."""


class Gate:
    """Lets a few calls through at once; the others wait, but not for ever and not without number."""

    def __init__(self, *, at_once: int = 24, waiting: int = 2_000, patience: float = 30.0) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most_waiting = waiting
        self._patience = patience
        self._waiting = 0

    @asynccontextmanager
    async def through(self) -> AsyncIterator[None]:
        if self._waiting >= self._most_waiting:
            raise TooBusy
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise TooBusy from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
