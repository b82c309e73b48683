"""A bell: rings for everybody who waits at that moment, and is silent again.

A thousand watchers of one collection wait here, so waiting costs a future and nothing else: a listener's alarm is set once, not
for every wait. Whoever waits must have looked before, without an `await` in between: a ring that nobody waits for is not
remembered.

Listeners are woken some at a time, those who have waited longest first, and the loop comes round in between. So a change with a
thousand watchers does not keep its writer, or anybody else, waiting; and what is written meanwhile, those whose turn is still
to come find there too, and send in one go.
"""

from __future__ import annotations

import asyncio
import collections
from types import TracebackType
from typing import Final

# A few milliseconds' worth of sending.
_AT_ONCE: Final = 64


class Bell:
    def __init__(self) -> None:
        # In the order in which they came.
        self.waiting: dict[Listener, None] = {}
        self._called: collections.deque[Listener] = collections.deque()

    def ring(self) -> None:
        are_being_woken = bool(self._called)
        self._called.extend(self.waiting)
        self.waiting.clear()
        if not are_being_woken:
            self._wake_some()

    def _wake_some(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._called))):
            # One whose alarm was faster is awake already, or waits anew; to that one it is a ring too many, and no harm.
            self._called.popleft().wake()
        if self._called:
            asyncio.get_running_loop().call_soon(self._wake_some)


class Listener:
    """Somebody who waits for a bell, again and again, until the block is left."""

    __slots__ = ("_alarm", "_bell", "_loop", "_until", "_woken")

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None
        self._until = 0.0
        self._woken: asyncio.Future[None] | None = None

    async def wait(self, until: float) -> float:
        """Return when the bell rings, or at that time of the loop's clock. Answers with what time it is.

        A clock that wakes a little early, as clocks do, counts as on time: whoever waits again would only wake again.
        """
        if self._alarm is None or until != self._until:
            self._set_alarm(until)
        self._woken = self._loop.create_future()
        self._bell.waiting[self] = None
        try:
            await self._woken
        finally:
            self._bell.waiting.pop(self, None)
        now = self._loop.time()
        return max(now, until) if self._alarm is None else now

    def wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def _set_alarm(self, until: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._until = self._loop.call_at(until, self._ring_alarm), until

    def _ring_alarm(self) -> None:
        self._alarm = None
        self.wake()

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
