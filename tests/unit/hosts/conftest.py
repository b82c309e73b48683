"""The rack fixture: a namespace of the embedded API, the host controller, and a back end that follows a script.

One API serves all tests of this folder, in the event loop that they all run in: whoever waits in that loop gives the API and the
controller their turn, so that a test can tell when both have nothing left to do.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from rack import Operator, Rack
from scripted import ScriptedBackend

from ingot.api.core import NAMESPACES
from ingot.embedded.server import Running, serve
from ingot.hosts import HostSettings
from ingot.kube import Client, EventRecorder

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    in_one_loop = pytest.mark.asyncio(loop_scope="session")
    for item in items:
        if (
            item.path.parent == HERE
            and isinstance(item, pytest.Function)
            and inspect.iscoroutinefunction(item.obj)
        ):
            item.add_marker(in_one_loop, append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with serve(tmp_path_factory.mktemp("api")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def client(api: Running) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(api.kubeconfig) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(client: Client) -> str:
    """A namespace that nobody else uses."""
    name = f"rack-{uuid4()}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


@pytest.fixture
def settings() -> HostSettings:
    """What whoever runs the operator decided; tests put other values in its place."""
    return HostSettings()


@pytest_asyncio.fixture(loop_scope="session")
async def rack(client: Client, namespace: str, settings: HostSettings) -> AsyncIterator[Rack]:
    backend = ScriptedBackend()
    async with EventRecorder(client) as recorder:
        operator = Operator(client, backend, recorder, settings, namespace=namespace)
        await operator.start()
        yield Rack(client, backend, operator, namespace=namespace)
        await operator.end()
