"""The life of a MachineSet on the embedded API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from keeping_room import IMAGE, Room, a_room, names

from ingot.api.machine import MACHINE_SETS
from ingot.embedded.server import serve
from ingot.kube import Client

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
    async with a_room(client) as room:
        yield room


# Up and down


async def test_a_set_makes_machines_from_its_template_and_counts_them(room: Room) -> None:
    key = await room.a_set(replicas=3)
    machine_set = await room.settled(count=3)
    machines = await room.machines()
    assert len(machines) == 3
    for machine in machines:
        assert machine.metadata.name.startswith("workers-")
        assert machine.metadata.labels == {"set": "workers"}
        assert machine.spec.provider_spec.value == {"image": IMAGE}
        owner = machine.metadata.owner_references[0]
        assert (owner.uid, owner.controller) == (machine_set.metadata.uid, True)
    status = (
        await room.until(MACHINE_SETS, key.name, lambda found: bool(found.status.label_selector))
    ).status
    assert status.fully_labeled_replicas == 3
    assert (status.ready_replicas, status.available_replicas) == (0, 0)
    assert status.label_selector == "set=workers"
    assert len(await room.events("SuccessfulCreate")) == 3


async def test_a_larger_number_makes_more_and_a_smaller_one_deletes_the_newest(room: Room) -> None:
    await room.a_set(replicas=2)
    await room.settled(count=2)
    first = names(await room.machines())
    # Times are whole seconds.
    await asyncio.sleep(1.1)
    await room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 4}})
    await room.settled(count=4)
    await room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 2}})
    await room.settled(count=2)
    assert names(await room.machines()) == first
