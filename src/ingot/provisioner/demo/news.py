"""The stream of hosts to look at again. Several changes of one host that were not fetched yet are one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ingot.provisioner import EVERYTHING, Change


class News:
    """Every listener hears everything that is told while it listens."""

    def __init__(self) -> None:
        self._listeners: set[_Listener] = set()
        self._closed = False

    def tell(self, change: Change) -> None:
        for listener in self._listeners:
            listener.add(change)

    async def listen(self) -> AsyncIterator[Change]:
        listener = _Listener()
        self._listeners.add(listener)
        try:
            while not self._closed:
                await listener.wake.wait()
                listener.wake.clear()
                waiting, listener.waiting = listener.waiting, {}
                for change in waiting:
                    yield change
        finally:
            self._listeners.discard(listener)

    def close(self) -> None:
        """Ends all streams."""
        self._closed = True
        for listener in self._listeners:
            listener.wake.set()


class _Listener:
    def __init__(self) -> None:
        self.wake = asyncio.Event()
        self.waiting: dict[Change, None] = {}

    def add(self, change: Change) -> None:
        if change is EVERYTHING:
            self.waiting.clear()
        if EVERYTHING not in self.waiting:
            self.waiting[change] = None
        self.wake.set()
