"""The rack fixture: the embedded API, the host controller, and a back end that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rack import Rack
from scripted import ScriptedBackend

from ingot.embedded.server import serve
from ingot.hosts import HostController, HostSettings
from ingot.kube import Client, EventRecorder, Manager


@pytest.fixture
def settings() -> HostSettings:
    """What whoever runs the operator decided; tests put other values in its place."""
    return HostSettings()


@pytest.fixture
async def rack(tmp_path: Path, settings: HostSettings) -> AsyncIterator[Rack]:
    backend = ScriptedBackend()
    async with (
        serve(tmp_path) as api,
        Client.from_kubeconfig(api.kubeconfig) as client,
        EventRecorder(client) as recorder,
    ):
        hosts = HostController(client, backend, recorder, settings=settings)
        manager = Manager(hosts.informers, [hosts.controller], tasks=[hosts.follow_backend])
        running = asyncio.create_task(manager.run())
        await manager.started()
        yield Rack(client, backend)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
