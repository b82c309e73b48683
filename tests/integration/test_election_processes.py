"""An election among real processes: one is killed, one stands still for too long, and never do two of them write."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from election_contender import LEASE, LOST

from ingot.api.core import LEASES, SECRETS
from ingot.embedded.server import Running, serve
from ingot.kube import Client

PATIENCE = 120


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serve(tmp_path / "state") as running:
        yield running


@pytest.fixture
async def client(server: Running) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as made:
        yield made


@asynccontextmanager
async def contender(server: Running, name: str, *, block: float = 0) -> AsyncIterator[Process]:
    script = Path(__file__).with_name("election_contender.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(server.kubeconfig), name, str(block), stdout=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def says(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        return (await process.stdout.readline()).decode().strip()


async def holder(client: Client) -> str:
    return (await client.get(LEASES, LEASE)).spec.holder_identity


async def written(client: Client, *, at_least: int, by: str) -> list[str]:
    """Who wrote, in the order of the writes, once this one has written so many more times."""
    async with asyncio.timeout(PATIENCE):
        before = -1
        while True:
            items = (await client.list(SECRETS, namespace="default")).items
            mine = len([item for item in items if item.metadata.name.startswith(f"{by}-")])
            before = mine if before < 0 else before
            if mine >= before + at_least:
                ordered = sorted(items, key=lambda item: int(item.metadata.resource_version))
                return [item.metadata.name.rpartition("-")[0] for item in ordered]
            await asyncio.sleep(0.05)


async def test_the_lease_survives_a_busy_loop_and_passes_on_from_the_dead_and_the_frozen(
    server: Running, client: Client
):
    async with AsyncExitStack() as stack:
        # Its main loop is held up for longer than the deadline: the thread renews all the same.
        first = await stack.enter_async_context(contender(server, "first", block=7))
        assert await says(first) == "leads"
        second = await stack.enter_async_context(contender(server, "second"))
        assert await says(first) == "goes on"
        await written(client, at_least=3, by="first")
        assert await holder(client) == "first"

        first.kill()
        assert await says(second) == "leads"
        await written(client, at_least=3, by="second")
        assert await holder(client) == "second"

        third = await stack.enter_async_context(contender(server, "third"))
        second.send_signal(signal.SIGSTOP)
        assert await says(third) == "leads"
        await written(client, at_least=3, by="third")
        second.send_signal(signal.SIGCONT)
        async with asyncio.timeout(PATIENCE):
            assert await second.wait() == LOST
        writers = await written(client, at_least=3, by="third")

    order = [name for name, following in zip(writers, [*writers[1:], ""], strict=True) if name != following]
    assert order == ["first", "second", "third"]
    assert await holder(client) == "third"
