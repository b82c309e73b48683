"""The world of this folder: started with its first test, ended after its last."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ironic_room import NEEDS, can_run

from backend.world import World
from ingot.lab.client import Lab
from ingot.provisioner.ironic import IronicProvisioner
from ingot.services.environment import ensure


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    await asyncio.to_thread(ensure)
    world = World(tmp_path_factory.mktemp("world"))
    try:
        world.start_farm()
        world.start_ironic()

        async def ramdisk_url() -> str:
            async with Lab.open(world.state) as lab:
                await lab.servers()
                assert lab.file.ramdisk_url
                return lab.file.ramdisk_url

        async with IronicProvisioner(
            world.use_ramdisk(await world.ready(ramdisk_url)), world.push
        ) as backend:
            world.backend = backend
            await world.ready(backend.check)
            yield world
    finally:
        for name in list(world.processes):
            world.stop(name, signal.SIGKILL)


@pytest_asyncio.fixture(loop_scope="session")
async def lab(world: World) -> AsyncIterator[Lab]:
    async with Lab.open(world.state) as opened:
        yield opened
