"""Stories that are told at the same time: tests that mostly wait, each with servers of its own.

    @story
    async def test_a_host_is_powered_off(room: Room) -> None: ...

When the first story of a session is awaited, all that were collected begin; each test then waits for its own. Together they take
the time of the longest, not of all; so those that take minutes, because Ironic waits for that long, are marked as `long_story`
and begin first. A story takes the room and, where it is a table of stories, the values of its row. Who has another room than most
has `Stories` of his own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from ironic_room import Room

Tell = Callable[..., Awaitable[None]]

AT_ONCE = 10
"""With more of them Ironic is only slower, until its own clocks run out."""


class Stories:
    """Those that are told in one room."""

    def __init__(self) -> None:
        self._stories: dict[tuple[str, str], Tell] = {}
        self._long: set[Tell] = set()
        self._told: dict[str, asyncio.Task[None]] = {}

    def story(self, tell: Tell) -> Tell:
        """The test that waits for this story."""

        async def test(room: Room, request: pytest.FixtureRequest, **_: Any) -> None:
            if not self._told:
                self._begin(room, request.session.items)
            await self._told[request.node.nodeid]

        asks = inspect.signature(tell)
        request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY)
        test.__dict__["__signature__"] = asks.replace(parameters=[*asks.parameters.values(), request])
        test.__name__, test.__doc__, test.__module__ = tell.__name__, tell.__doc__, tell.__module__
        self._stories[tell.__module__, tell.__name__] = tell
        return pytest.mark.asyncio(loop_scope="session")(test)

    def long_story(self, tell: Tell) -> Tell:
        """The same, of one that is begun before the others."""
        self._long.add(tell)
        return self.story(tell)

    def _begin(self, room: Room, items: Iterable[pytest.Item]) -> None:
        turns = asyncio.Semaphore(AT_ONCE)

        async def told(tell: Tell, row: dict[str, Any]) -> None:
            async with turns:
                await tell(room, **row)

        collected = [
            (item, tell)
            for item in items
            if isinstance(item, pytest.Function)
            and (tell := self._stories.get((item.module.__name__, item.originalname)))
        ]
        for item, tell in sorted(collected, key=lambda one: one[1] not in self._long):
            row = item.callspec.params if hasattr(item, "callspec") else {}
            self._told[item.nodeid] = asyncio.create_task(told(tell, row))

    async def all_told(self, room: Room, items: Iterable[pytest.Item]) -> None:
        """For who needs the room for himself: wait until every story is over, however it went."""
        if not self._told:
            self._begin(room, items)
        await asyncio.gather(*self._told.values(), return_exceptions=True)

    async def end(self) -> None:
        """Those that nobody waited for, because the session ends early, end here."""
        for task in self._told.values():
            task.cancel()
        await asyncio.gather(*self._told.values(), return_exceptions=True)


_usual = Stories()
story, long_story = _usual.story, _usual.long_story
all_told, end_stories = _usual.all_told, _usual.end
