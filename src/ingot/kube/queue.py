"""Which keys are due, which wait, which are being worked on: pure bookkeeping with the clock handed in.

Promises, whatever the order of calls:

- a key is in at most one worker's hands;
- a key that was woken is handed out after that, also when it was woken while a worker had it;
- waking a key that is due already adds nothing, except that an urgent wake moves it before the low ones;
- urgent keys go before low ones, but not for ever: after a row of them the low key that waited longest has its turn;
- a wake ends the waiting for a timer, and a later timer replaces an earlier one.

Nothing here waits; the workers of `controller` do.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from typing import Final

from ingot.api.meta import Key

ROW: Final = 16
"""So many urgent keys in a row are handed out before a low one that waits."""


class KeyQueue:
    """Keys by urgency and by time."""

    def __init__(self, row: int = ROW) -> None:
        # They keep order, find a key at once, and give the first one in constant time, which a dict does not. The value is
        # when the key fell due.
        self._urgent: OrderedDict[Key, float] = OrderedDict()
        self._low: OrderedDict[Key, float] = OrderedDict()
        self._row = row
        self._urgent_in_a_row = 0
        self._active: dict[Key, bool | None] = {}
        """In a worker's hands. The value: not woken since (None), woken low (True), woken urgently (False)."""
        self._timers: dict[Key, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._sequence = itertools.count()

    def __len__(self) -> int:
        """How many keys are due."""
        return len(self._urgent) + len(self._low)

    @property
    def active(self) -> frozenset[Key]:
        return frozenset(self._active)

    @property
    def waiting(self) -> int:
        return len(self._timers)

    def wake(self, key: Key, now: float, *, low: bool = False) -> bool:
        """Make a key due. True if a worker can take it that could not before."""
        self.release(now)
        self._timers.pop(key, None)
        if key in self._active:
            self._active[key] = low and self._active[key] is not False
            return False
        if key in self._urgent or (low and key in self._low):
            return False
        if low:
            self._low[key] = now
            return True
        since = self._low.pop(key, None)
        self._urgent[key] = now if since is None else since
        return since is None

    def later(self, key: Key, now: float, *, delay: float) -> None:
        """Make a key due after that time, unless it is due, or woken, already."""
        self.release(now)
        if key in self._urgent or key in self._low or self._active.get(key) is not None:
            return
        entry = (now + delay, next(self._sequence))
        self._timers[key] = entry
        heapq.heappush(self._heap, (*entry, key))
        if len(self._heap) > 100 + 2 * len(self._timers):
            # Most of it was replaced or cancelled behind a timer that still waits. Seldom enough to cost nothing.
            self._heap = [(*timer, key) for key, timer in self._timers.items()]
            heapq.heapify(self._heap)

    def pop(self, now: float) -> tuple[Key, float] | None:
        """The next key for a worker and how long it has been due; it stays in the worker's hands until `done`."""
        self.release(now)
        due = self._next_line()
        if not due:
            return None
        key, since = due.popitem(last=False)
        self._active[key] = None
        return key, now - since

    def _next_line(self) -> OrderedDict[Key, float]:
        """The line whose first key is next, and the counting that keeps the low line moving."""
        if not self._low:
            self._urgent_in_a_row = 0
            return self._urgent
        if self._urgent and self._urgent_in_a_row < self._row:
            self._urgent_in_a_row += 1
            return self._urgent
        self._urgent_in_a_row = 0
        return self._low

    def done(self, key: Key, now: float) -> bool:
        """The worker is through with it. True if it is due again, having been woken meanwhile."""
        woken = self._active.pop(key)
        if woken is None:
            return False
        return self.wake(key, now, low=woken)

    def next_due(self) -> float | None:
        """When the first timer fires."""
        while self._heap and self._timers.get(self._heap[0][2]) != self._heap[0][:2]:
            # Replaced or cancelled; it stayed here because taking it out of the middle would cost more.
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def release(self, now: float) -> None:
        """Make those keys due whose time has come; every other call does it first."""
        if not self._heap or self._heap[0][0] > now:
            return
        while (due := self.next_due()) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._timers[key]
            if key not in self._active:
                self._urgent.setdefault(key, due)
            elif self._active[key] is None:
                self._active[key] = False
