"""The rack fixture: the embedded API, the host controller, and a back end that follows a script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rack import Operator, Rack
from scripted import ScriptedBackend

from ingot.embedded.server import serve
from ingot.hosts import HostSettings
from ingot.kube import Client, EventRecorder


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
        operator = Operator(client, backend, recorder, settings)
        await operator.start()
        yield Rack(client, backend, operator)
        await operator.end()
