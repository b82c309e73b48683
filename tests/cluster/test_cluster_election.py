"""Election against client-go: a real kube-controller-manager and our elector contend for one Lease, and take turns."""

from __future__ import annotations

import asyncio
import os
import secrets
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from control_plane import programs

from ingot.api.core import LEASES, NAMESPACES, LeaseSpec
from ingot.api.meta import Key
from ingot.kube import Client, Elector, NotFound, Timing

PATIENCE = 120
TIMING = Timing(duration=10, renew_deadline=7, retry=0.4)


@pytest.fixture
def kubeconfig() -> str:
    path = os.environ.get("INGOT_TEST_KUBECONFIG")
    if not path:
        pytest.skip("needs a real cluster: make test-cluster")
    return path


@pytest.fixture
async def client(kubeconfig: str) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(kubeconfig) as made:
        yield made


@pytest.fixture
async def lease(client: Client) -> AsyncIterator[Key]:
    key = Key(f"election-{secrets.token_hex(4)}", "contest")
    await client.create(NAMESPACES, {"metadata": {"name": key.namespace}})
    yield key
    await client.delete(NAMESPACES, Key("", key.namespace))


@asynccontextmanager
async def controller_manager(kubeconfig: str, lease: Key) -> AsyncIterator[Process]:
    """A contender written with client-go; the one controller that it runs has nothing to do."""
    process = await asyncio.create_subprocess_exec(
        str(programs() / "kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--controllers=bootstrap-signer-controller",
        "--secure-port=0",
        "--leader-elect=true",
        f"--leader-elect-resource-namespace={lease.namespace}",
        f"--leader-elect-resource-name={lease.name}",
        "--leader-elect-lease-duration=10s",
        "--leader-elect-renew-deadline=7s",
        "--leader-elect-retry-period=500ms",
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - what happens in another process has no event
            await asyncio.sleep(0.1)


async def test_ours_and_client_gos_contenders_wait_for_each_other_and_take_turns(
    kubeconfig: str, client: Client, lease: Key
):
    async def spec() -> LeaseSpec:
        try:
            return (await client.get(LEASES, lease)).spec
        except NotFound:
            return LeaseSpec()

    async def theirs() -> bool:
        return (await spec()).holder_identity not in ("", "ours", "ours-again")

    async with Elector(
        lambda: Client.from_kubeconfig(kubeconfig), lease, identity="ours", timing=TIMING
    ) as first:
        first.contend()
        async with asyncio.timeout(PATIENCE):
            await first.leadership.acquired()
        async with controller_manager(kubeconfig, lease) as other:
            # Longer than the Lease lasts: it sees our renewals.
            await asyncio.sleep(12)
            assert (await spec()).holder_identity == "ours"
            assert first.leadership.held
            await first.stop()
            await eventually(theirs)
            taken = await spec()
            assert taken.lease_transitions == 1

            second = Elector(
                lambda: Client.from_kubeconfig(kubeconfig), lease, identity="ours-again", timing=TIMING
            )
            async with second:
                second.contend()

                async def stands_by() -> bool:
                    return second.holder == taken.holder_identity

                await eventually(stands_by)
                await asyncio.sleep(12)
                assert not second.leadership.held, "we see its renewals"
                other.kill()
                async with asyncio.timeout(PATIENCE):
                    await second.leadership.acquired()
                assert (await spec()).lease_transitions == 2
