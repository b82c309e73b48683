"""A bell: rings for everybody who waits at that moment, and is silent again.

A thousand watchers of one collection wait here, so waiting costs a future and a timer, not a task. Whoever waits must have
looked before, without an `await` in between: a ring that nobody waits for is not remembered.
"""

from __future__ import annotations

import asyncio


class Bell:
    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def ring(self) -> None:
        for waiter in self._waiting:
            _wake(waiter)
        self._waiting.clear()

    async def wait(self, timeout: float) -> None:
        """Return when it rings, or when the time is up."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.add(waiter)
        timer = loop.call_later(max(timeout, 0), _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiting.discard(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
