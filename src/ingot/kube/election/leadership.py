"""Whether this process may act: a question that any thread can ask at any moment, and that needs no event loop to answer.

Leadership is granted until a moment on the clock, and granted anew by each renewal. It ends by itself when that moment comes,
whatever the threads that renew it or work under it are doing; and once it has ended it never comes back: who lost it stops, and
starts as somebody new. The clock goes on while the machine sleeps, so a machine that wakes up finds that it leads no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import math
import threading
import time
from collections.abc import Callable
from typing import Final

from ingot.kube.errors import NotLeading

Clock = Callable[[], float]

# Unlike the clock behind time.monotonic, this one counts the time that the machine was suspended.
_BOOT_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def seconds_since_boot() -> float:
    return time.clock_gettime(_BOOT_CLOCK)


class _State(enum.Enum):
    STANDBY = "standby"
    LEADING = "leading"
    OVER = "over"


class Leadership:
    """Granted by an election; asked by everybody who is about to change something."""

    def __init__(self, clock: Clock = seconds_since_boot) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._state = _State.STANDBY
        self._until = -math.inf
        self._why = ""
        self._listeners: list[Callable[[], None]] = []

    @property
    def held(self) -> bool:
        """Whether to act is allowed right now."""
        return self._now() is _State.LEADING

    @property
    def over(self) -> bool:
        """Whether it was held, or hoped for, and never will be again."""
        return self._now() is _State.OVER

    @property
    def why_over(self) -> str:
        return self._why

    @property
    def left(self) -> float:
        """Seconds until it ends by itself; none for who does not lead."""
        return max(0.0, self._until - self._clock()) if self.held else 0.0

    def check(self) -> None:
        """Raises `NotLeading` unless it is held: the guard before a write."""
        if self.held:
            return
        raise NotLeading(self._why or "this process does not lead; another one does the work")

    def grant(self, until: float) -> None:
        """Lead until that moment on the clock. In vain for who has lost it already, and for a moment that has passed."""
        with self._lock:
            changed = self._expire()
            if self._state is not _State.OVER and until > self._clock():
                changed = self._state is _State.STANDBY
                self._state, self._until = _State.LEADING, max(self._until, until)
        if changed:
            self._tell()

    def end(self, why: str) -> None:
        """Lead no more, from this moment on."""
        with self._lock:
            self._finish(why)
        self._tell()

    async def acquired(self) -> None:
        """Returns once it is held; raises `NotLeading` when it is over instead."""
        await self._until_state(lambda state: state is not _State.STANDBY)
        if self.over:
            self.check()

    async def ended(self) -> str:
        """Returns why, once it is over."""
        await self._until_state(lambda state: state is _State.OVER)
        return self._why

    def _now(self) -> _State:
        with self._lock:
            ended = self._expire()
            state = self._state
        if ended:
            self._tell()
        return state

    def _expire(self) -> bool:
        if self._state is not _State.LEADING or self._clock() < self._until:
            return False
        self._finish("the Lease was not renewed in time, and another process may lead by now")
        return True

    def _finish(self, why: str) -> None:
        if self._state is not _State.OVER:
            self._state, self._why = _State.OVER, why

    async def _until_state(self, reached: Callable[[_State], bool]) -> None:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def listener() -> None:
            # A loop that was closed has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(changed.set)

        with self._lock:
            self._listeners.append(listener)
        try:
            while not reached(self._now()):
                await changed.wait()
                changed.clear()
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
