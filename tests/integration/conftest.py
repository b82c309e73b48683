"""The room of the farm's stories: started once, and shared by all tests that ask for it.

Its API is the embedded one, or that of the cluster which `python tests/cluster` has for the tests. There few stories are told.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ironic_room import NEEDS, Room, can_run
from stories import end_stories


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Room]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    # Hosts and their namespace stay on it, so it has to be one that nobody needs afterwards.
    cluster = os.environ.get("INGOT_TEST_KUBECONFIG", "") if "INGOT_TEST_THROWAWAY" in os.environ else ""
    servers = 3 if cluster else 110
    async with Room.open(tmp_path_factory.mktemp("room"), servers=servers, cluster=cluster) as room:
        yield room
        await end_stories()
