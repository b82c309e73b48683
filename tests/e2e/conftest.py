"""One installation for all end-to-end tests: starting Ironic once is enough, and hosts do not disturb each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machine_room import MachineRoom, Server


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineRoom]:
    found = MachineRoom(tmp_path_factory.mktemp("room") / "state", servers=10)
    found.up()
    yield found
    found.down()


@pytest.fixture
def server(room: MachineRoom) -> Server:
    return room.server()
