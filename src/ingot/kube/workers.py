"""Workers: tasks that take pieces of work one after the other, sleep while there is none, and let the event loop breathe.

Promises: whoever calls `rouse` because there is work has a worker look for it soon; workers are woken one by one, as long as
there is more than those who are awake can take; and all of them together never hold the loop for longer than a turn, however
little their work waits for anything.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable
from typing import Final

TURN: Final = 0.01
"""Seconds after which workers let others on the loop have their turn."""


class Workers:
    """So many tasks that call `step`, which does one piece of work; false: there was none."""

    def __init__(self, name: str, count: int, step: Callable[[], Awaitable[bool]]) -> None:
        self._name = name
        self._count = count
        self._step = step
        self._idle: collections.deque[asyncio.Future[None]] = collections.deque()
        self._one_is_coming = False
        self._turn_ends: float | None = None
        self._stopping = False

    def rouse(self) -> None:
        """There is work. Wakes one worker, unless one is on its way already: that one will call the next."""
        if self._one_is_coming:
            return
        while self._idle:
            bell = self._idle.popleft()
            if not bell.done():
                bell.set_result(None)
                self._one_is_coming = True
                return

    async def run(self, *, grace: Callable[[], float]) -> None:
        """Work until cancelled; then what is in flight gets so many seconds to end."""
        self._stopping = self._one_is_coming = False
        tasks = [
            asyncio.create_task(self._work(), name=f"{self._name}-{number}") for number in range(self._count)
        ]
        try:
            # Not gather: it would hand a cancellation on to the workers at once.
            finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                task.result()
        except asyncio.CancelledError:
            self._stopping = True
            self._rouse_all()
            await asyncio.wait(tasks, timeout=grace())
            raise
        finally:
            await _end(tasks)

    async def _work(self) -> None:
        # Kept, because asking which one runs is a system call.
        loop = asyncio.get_running_loop()
        while not self._stopping:
            if not await self._step():
                await self._until_roused(loop)
            elif self._turn_is_over(loop):
                await asyncio.sleep(0)

    async def _until_roused(self, loop: asyncio.AbstractEventLoop) -> None:
        bell: asyncio.Future[None] = loop.create_future()
        self._idle.append(bell)
        try:
            await bell
            self._one_is_coming = False
        finally:
            if bell in self._idle:
                self._idle.remove(bell)

    def _rouse_all(self) -> None:
        for bell in self._idle:
            if not bell.done():
                bell.set_result(None)
        self._idle.clear()

    def _turn_is_over(self, loop: asyncio.AbstractEventLoop) -> bool:
        if self._turn_ends is None:
            self._turn_ends = loop.time() + TURN
            # Called when the loop comes round: with it a new turn begins, for all workers.
            loop.call_soon(self._next_turn)
        return loop.time() > self._turn_ends

    def _next_turn(self) -> None:
        self._turn_ends = None


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    left = [task for task in tasks if not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)
