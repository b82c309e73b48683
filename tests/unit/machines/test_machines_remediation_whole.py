"""MachineSets, Machines and remediation together, as the operator runs them: only the host is played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio
from keeping_room import Room, an_empty_room, host_status

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import NODES
from ingot.api.machine import MACHINE_SETS, MACHINES, Annotation, Machine
from ingot.embedded.server import serve
from ingot.kube import Client, EventRecorder, Manager
from ingot.machines.machine.linking import provider_id
from ingot.machines.remediation.steps import KEPT_OFF, Mark
from ingot.machines.running import MachineSettings, machines

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with (
        serve(tmp_path_factory.mktemp("api")) as running,
        Client.from_kubeconfig(running.kubeconfig) as client,
    ):
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def room(client: Client) -> AsyncIterator[Room]:
    async with an_empty_room(client) as room, EventRecorder(client) as recorder:
        running = machines(client, recorder, MachineSettings(namespace=room.namespace, machinesets="on"))
        manager = Manager(running.informers, running.controllers, tasks=running.tasks)
        task = asyncio.create_task(manager.run())
        await manager.started()
        yield room
        for controller in running.controllers:
            controller.give_no_grace()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def host_is(room: Room, state: str, *, on: bool) -> BareMetalHost:
    return await room.change(
        BARE_METAL_HOSTS, "h1", {"status": host_status(state, on=on)}, subresource="status"
    )


async def a_running_worker(room: Room) -> tuple[str, str]:
    """A set of one, its machine on the only host, and the node of that machine: the names of the last two."""
    await room.a_host("h1")
    await room.a_set(replicas=1)
    machine = await the_machine_of_the_host(room)
    host = await host_is(room, "provisioned", on=True)
    node = f"node-{uuid4()}"
    await room.a_node(node, labels={"zone": "a"})
    await room.change(NODES, node, {"spec": {"providerID": provider_id(host)}})
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.available_replicas == 1)
    return machine.metadata.name, node


async def the_machine_of_the_host(room: Room, *, unlike: str = "") -> Machine:
    def is_taken(host: BareMetalHost) -> bool:
        consumer = host.spec.consumer_ref
        return consumer is not None and consumer.name != unlike

    host = await room.until(BARE_METAL_HOSTS, "h1", is_taken)
    assert host.spec.consumer_ref is not None
    return await room.until(MACHINES, host.spec.consumer_ref.name, lambda found: bool(found.spec.provider_id))


async def fall_ill_and_start_again(room: Room, machine: str, node: str) -> None:
    await room.annotate(MACHINES, machine, **{Annotation.REMEDIATION: ""})
    await room.until(BARE_METAL_HOSTS, "h1", lambda host: KEPT_OFF in host.metadata.annotations)
    await host_is(room, "provisioned", on=False)
    await room.gone(NODES, node)
    await room.until(BARE_METAL_HOSTS, "h1", lambda host: KEPT_OFF not in host.metadata.annotations)
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.ready_replicas == 0)
    await host_is(room, "provisioned", on=True)


async def test_a_worker_of_a_set_is_mended_and_counts_again(room: Room) -> None:
    machine, node = await a_running_worker(room)
    await fall_ill_and_start_again(room, machine, node)
    await room.a_node(node)
    host = await room.get(BARE_METAL_HOSTS, "h1")
    await room.change(NODES, node, {"spec": {"providerID": provider_id(host)}})
    await room.until(
        MACHINES, machine, lambda found: Annotation.REMEDIATION not in found.metadata.annotations
    )
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.ready_replicas == 1)
    assert (await room.get(NODES, node)).metadata.labels["zone"] == "a"
    assert (await room.get(BARE_METAL_HOSTS, "h1")).spec.image is not None


async def test_a_worker_that_does_not_come_back_is_replaced_by_another_that_gets_the_host(room: Room) -> None:
    machine, node = await a_running_worker(room)
    await fall_ill_and_start_again(room, machine, node)
    await room.annotate(MACHINES, machine, **{Mark.DEADLINE: "2026-01-01T00:00:00Z"})
    await room.until(BARE_METAL_HOSTS, "h1", lambda host: host.spec.image is None)
    await host_is(room, "available", on=False)
    replacement = await the_machine_of_the_host(room, unlike=machine)
    await room.gone(MACHINES, machine)
    assert [owner.name for owner in replacement.metadata.owner_references] == ["workers"]
    await room.settled(count=1)
