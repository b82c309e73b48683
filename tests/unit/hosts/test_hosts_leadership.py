"""A controller that loses the Lease in the middle of a pass does nothing to a machine any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from rack import IMAGE, Operator, Rack
from scripted import ScriptedBackend

from ingot.embedded.server import Running
from ingot.hosts import HostSettings
from ingot.kube import Client, EventRecorder, Leadership
from ingot.provisioner import Busy, Deployment, Failed, HostRef, NotRegistered, Permit, Ready


class LosesTheLease(ScriptedBackend):
    """Leadership ends after the controller has decided to deploy, and before that is begun."""

    def __init__(self, leadership: Leadership) -> None:
        super().__init__()
        self.leadership = leadership

    async def provision(
        self, host: HostRef, wanted: Deployment, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self.leadership.end("the test took it away")
        return await super().provision(host, wanted, permit=permit, again=again)


@pytest.fixture
def leadership() -> Leadership:
    made = Leadership(lambda: 0.0)
    made.grant(1.0)
    return made


@pytest_asyncio.fixture(loop_scope="session")
async def rack(api: Running, client: Client, namespace: str, leadership: Leadership) -> AsyncIterator[Rack]:
    """The user's client needs nobody's leave; the controller's does."""
    backend = LosesTheLease(leadership)
    async with (
        Client.from_kubeconfig(api.kubeconfig, guard=leadership.check) as guarded,
        EventRecorder(guarded) as recorder,
    ):
        operator = Operator(guarded, backend, recorder, HostSettings(), namespace=namespace)
        await operator.start()
        yield Rack(client, backend, operator, namespace=namespace)
        await operator.end()


async def test_what_was_decided_before_the_lease_was_lost_is_not_done_after_it(
    rack: Rack, leadership: Leadership
):
    key = await rack.host(image=IMAGE)
    async with asyncio.timeout(60):
        await leadership.ended()
    await rack.settle()
    assert "deploy" not in rack.backend.machines[key].orders
    assert (await rack.get(key)).state == "provisioning"
