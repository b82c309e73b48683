"""The room fixture: an embedded API for the tests of a module, and a namespace of it for each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
import pytest_asyncio
from machine_site import Room

from ingot.api.core import NAMESPACES
from ingot.embedded.server import Running, serve
from ingot.kube import Client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine_api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with serve(tmp_path_factory.mktemp("api")) as running:
        yield running


@asynccontextmanager
async def _room(api: Running) -> AsyncIterator[Room]:
    async with Client.from_kubeconfig(api.kubeconfig) as client:
        name = f"machines-{uuid4()}"
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        yield Room(client, api.kubeconfig, name)


@pytest_asyncio.fixture(loop_scope="module")
async def room(machine_api: Running) -> AsyncIterator[Room]:
    async with _room(machine_api) as room:
        yield room


@pytest_asyncio.fixture(loop_scope="module")
async def other_room(machine_api: Running) -> AsyncIterator[Room]:
    async with _room(machine_api) as room:
        yield room
