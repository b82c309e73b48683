"""MachineSets, Machines, remediation and hosts together, as the operator runs them, over the demo back end.

What a kubelet does is done by the test: a machine that runs registers its Node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio
from keeping_room import Room, an_api, an_empty_room

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import NODES, SECRETS
from ingot.api.machine import MACHINE_SETS, MACHINES, Annotation
from ingot.hosts import HostController
from ingot.kube import Client, EventRecorder, Manager
from ingot.machines.machine.linking import provider_id
from ingot.machines.remediation.steps import Mark
from ingot.machines.running import MachineSettings, machines
from ingot.machines.vacancies import UNHEALTHY, why_taken
from ingot.provisioner.demo import Behaviour, DemoProvisioner, HostScript, Script

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = Script(default=HostScript(others=Behaviour(seconds=0)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with (
        an_api(tmp_path_factory.mktemp("api")) as kubeconfig,
        Client.from_kubeconfig(kubeconfig) as client,
    ):
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def room(client: Client) -> AsyncIterator[Room]:
    async with (
        an_empty_room(client) as room,
        EventRecorder(client) as recorder,
        DemoProvisioner(script=AT_ONCE) as backend,
    ):
        hosts = HostController(client, backend, recorder, namespace=room.namespace)
        given = machines(client, recorder, MachineSettings(namespace=room.namespace, machinesets="on"))
        manager = Manager(
            [*hosts.informers, *given.informers],
            [*hosts.controllers, *given.controllers],
            tasks=[hosts.follow_backend, *given.tasks],
        )
        running = asyncio.create_task(manager.run())
        await manager.started()
        yield room
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class Worker:
    """The only machine of a set, on the only host."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.machine = ""
        self.node = f"node-{uuid4()}"

    async def arrive(self) -> None:
        room = self.room
        await room.client.create(
            SECRETS,
            {
                "metadata": {"name": "bmc", "namespace": room.namespace},
                "stringData": {"username": "admin", "password": "swordfish"},
            },
        )
        await room.client.create(
            BARE_METAL_HOSTS,
            {
                "metadata": {"name": "h1", "namespace": room.namespace},
                "spec": {
                    "online": True,
                    "bmc": {"address": "redfish://192.0.2.1/redfish/v1/Systems/1", "credentialsName": "bmc"},
                    "bootMACAddress": "02:00:00:00:00:01",
                },
            },
        )
        await room.a_set(replicas=1)
        await self.is_installed()
        await self.register(zone="a")
        await room.until(MACHINE_SETS, "workers", lambda found: found.status.available_replicas == 1)

    async def is_installed(self) -> None:
        """Until a machine that was not there before runs on the host."""
        before = self.machine

        def is_there(host: BareMetalHost) -> bool:
            consumer = host.spec.consumer_ref
            runs = host.status.provisioning.state == "provisioned" and host.status.powered_on
            return runs and consumer is not None and consumer.name != before

        host = await self.room.until(BARE_METAL_HOSTS, "h1", is_there)
        assert host.spec.consumer_ref is not None
        self.machine = host.spec.consumer_ref.name
        await self.room.until(MACHINES, self.machine, lambda found: bool(found.spec.provider_id))

    async def register(self, **labels: str) -> None:
        host = await self.room.get(BARE_METAL_HOSTS, "h1")
        await self.room.a_node(self.node, labels=labels)
        await self.room.change(NODES, self.node, {"spec": {"providerID": provider_id(host)}})

    async def stop_answering(self) -> None:
        """And be switched off and on again."""
        room = self.room
        await room.annotate(MACHINES, self.machine, **{Annotation.REMEDIATION: ""})
        await room.gone(NODES, self.node)
        await room.until(BARE_METAL_HOSTS, "h1", lambda host: host.status.powered_on)


@pytest_asyncio.fixture(loop_scope="module")
async def worker(room: Room) -> Worker:
    worker = Worker(room)
    await worker.arrive()
    return worker


async def test_a_worker_of_a_set_is_mended_and_counts_again(worker: Worker, room: Room) -> None:
    installed = (await room.get(BARE_METAL_HOSTS, "h1")).status.operation_history.provision.end
    await worker.stop_answering()
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.ready_replicas == 0)
    await worker.register()
    await room.until(
        MACHINES, worker.machine, lambda found: Annotation.REMEDIATION not in found.metadata.annotations
    )
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.ready_replicas == 1)
    assert (await room.get(NODES, worker.node)).metadata.labels["zone"] == "a"
    host = await room.get(BARE_METAL_HOSTS, "h1")
    assert host.status.operation_history.provision.end == installed, "nothing was installed anew"
    assert await room.events("PowerOff") == ["Host powered off"]


async def test_a_worker_that_does_not_come_back_is_replaced_and_its_host_waits_for_a_person(
    worker: Worker, room: Room
) -> None:
    first = worker.machine
    await worker.stop_answering()
    await room.until(MACHINES, first, lambda found: Mark.DEADLINE in found.metadata.annotations)
    await room.annotate(MACHINES, first, **{Mark.DEADLINE: "2026-01-01T00:00:00Z"})
    await room.gone(MACHINES, first)
    host = await room.get(BARE_METAL_HOSTS, "h1")
    assert (host.spec.consumer_ref, host.spec.image) == (None, None)
    assert why_taken(host) == "is marked as unhealthy"
    assert first in host.metadata.annotations[UNHEALTHY[0]]
    # Somebody has looked at it.
    await room.annotate(BARE_METAL_HOSTS, "h1", **{UNHEALTHY[0]: None})
    await worker.is_installed()
    await room.settled(count=1)
    (told,) = await room.events("RemediationTimedOut")
    assert "2026-01-01T00:00:00Z" in told
