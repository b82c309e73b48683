"""A site to work on with `ingot host`: the embedded API, the host controller, and the demo back end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from host_site import SCRIPT, Site

from ingot.embedded.server import serve
from ingot.hosts import HostController
from ingot.kube import Client, EventRecorder, Manager
from ingot.provisioner.demo import DemoProvisioner


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with (
        serve(tmp_path / "state") as api,
        Client.from_kubeconfig(api.kubeconfig) as client,
        EventRecorder(client) as recorder,
        DemoProvisioner(tmp_path / "machines.sqlite", SCRIPT) as backend,
    ):
        hosts = HostController(client, backend, recorder)
        manager = Manager(hosts.informers, hosts.controllers, tasks=[hosts.follow_backend])
        running = asyncio.create_task(manager.run())
        await manager.started()
        yield Site(client, api.kubeconfig)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
