"""An API for the tests of a module, a namespace for each of them, and a payload. The API is that of the cluster which
`INGOT_TEST_KUBECONFIG` names, or else an embedded one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio
from image_room import build_payload

from ingot.api.core import NAMESPACES
from ingot.embedded.server import serve
from ingot.kube import Client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    if given := os.environ.get("INGOT_TEST_KUBECONFIG"):
        yield Path(given)
        return
    async with serve(tmp_path_factory.mktemp("api")) as running:
        yield running.kubeconfig


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(kubeconfig) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(client: Client) -> str:
    """A namespace that nobody else uses."""
    name = f"images-{uuid4()}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    return build_payload(tmp_path / "payload")
