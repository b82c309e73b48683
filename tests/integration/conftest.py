"""The room of the farm's stories: started once, and shared by all tests that ask for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ironic_room import NEEDS, Room, can_run
from stories import end_stories


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Room]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    async with Room.open(tmp_path_factory.mktemp("room"), servers=100) as room:
        yield room
        await end_stories()
