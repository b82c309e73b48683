"""A bell: rings for everybody who waits at that moment, and is silent again.

A thousand watchers of one collection wait here, so waiting costs a future and nothing else: a listener's alarm is set once, not
for every wait. Whoever waits must have looked before, without an `await` in between: a ring that nobody waits for is not
remembered.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class Bell:
    def __init__(self) -> None:
        self.waiting: set[Listener] = set()

    def ring(self) -> None:
        for listener in self.waiting:
            listener.wake()
        self.waiting.clear()


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
        self._bell.waiting.add(self)
        try:
            await self._woken
        finally:
            self._bell.waiting.discard(self)
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
