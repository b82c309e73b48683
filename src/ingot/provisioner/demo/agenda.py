"""What is due when: one heap and one timer for all machines."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Final

AT_A_TIME: Final = 200
"""Things that are done without letting others run in between."""
SLEEP: Final = 3600.0
"""The clock of the wall may be set meanwhile; this often it is looked at."""


class Agenda:
    """Calls what is due, in order. Times are those of `clock`, which goes on while nobody runs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for = 0.0
        self._closed = False

    def at(self, when: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when, next(self._order), call))
        if self._timer is None or when < self._timer_for:
            self._set_timer()

    def close(self) -> None:
        self._closed = True
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due and not self._closed:
            self._timer_for = self._due[0][0]
            left = min(max(self._timer_for - self._clock(), 0), SLEEP)
            self._timer = asyncio.get_running_loop().call_later(left, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self._clock()
        for _ in range(AT_A_TIME):
            if not self._due or self._due[0][0] > now:
                break
            heapq.heappop(self._due)[2]()
        self._set_timer()
