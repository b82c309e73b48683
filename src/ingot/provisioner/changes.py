"""The stream of hosts to look at again, for every back end.

Every subscriber gets every change that happens while it listens; several changes of one host that were not fetched yet are
one. `later` announces a host after a while, for things that end without an event: a lock that somebody holds, for example.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ingot.api.meta import Key
from ingot.provisioner.protocol import EVERYTHING, Change


class Changes:
    """Who listens, and what they have not heard yet."""

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._closed = False

    def announce(self, change: Change) -> None:
        for listener in self._listeners:
            listener.add(change)

    def later(self, key: Key, seconds: float) -> None:
        """Announce the host after this time. Of several appointments the soonest is kept."""
        loop = asyncio.get_running_loop()
        before = self._timers.get(key)
        if self._closed or (before is not None and before.when() <= loop.time() + seconds):
            return
        if before is not None:
            before.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    async def listen(self) -> AsyncIterator[Change]:
        listener = _Listener()
        self._listeners.add(listener)
        try:
            while not self._closed:
                for change in await listener.take():
                    yield change
        finally:
            self._listeners.discard(listener)

    def close(self) -> None:
        """Ends all streams."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for listener in self._listeners:
            listener.wake.set()

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.announce(key)


class _Listener:
    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self._waiting: dict[Change, None] = {}

    def add(self, change: Change) -> None:
        if change is EVERYTHING:
            self._waiting.clear()
        if EVERYTHING not in self._waiting:
            self._waiting[change] = None
        self.wake.set()

    async def take(self) -> list[Change]:
        await self.wake.wait()
        self.wake.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken
