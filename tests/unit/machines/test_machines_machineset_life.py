"""The life of a MachineSet on a Kubernetes API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import msgspec
import pytest
import pytest_asyncio
from keeping_room import FINALIZER, IMAGE, Room, a_room, an_api, names

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NODES
from ingot.api.machine import MACHINE_SETS, MACHINES, Annotation, Machine
from ingot.api.meta import Model, Object, Resource, now
from ingot.kube import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")


class ScaleSpec(Model):
    replicas: int = 0


class ScaleStatus(Model):
    replicas: int = 0
    selector: str = ""


class Scale(Object):
    spec: ScaleSpec = msgspec.field(default_factory=ScaleSpec)
    status: ScaleStatus = msgspec.field(default_factory=ScaleStatus)


SCALES: Final = Resource(
    group=MACHINE_SETS.group, version=MACHINE_SETS.version, kind="Scale", plural="machinesets", type=Scale
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with (
        an_api(tmp_path_factory.mktemp("api")) as kubeconfig,
        Client.from_kubeconfig(kubeconfig) as client,
    ):
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def room(client: Client) -> AsyncIterator[Room]:
    async with a_room(client) as room:
        yield room


async def with_nodes(room: Room, machines: list[Machine], **how: Any) -> list[str]:
    """A node for each machine."""
    made = []
    for machine in machines:
        name = f"node-{uuid4()}"
        await room.a_node(name, **how)
        await room.change(
            MACHINES, machine.metadata.name, {"status": {"nodeRef": {"name": name}}}, subresource="status"
        )
        made.append(name)
    return made


# Up and down


async def test_a_set_makes_machines_from_its_template_and_counts_them(room: Room) -> None:
    await room.a_set(replicas=3)
    machine_set = await room.settled(count=3)
    machines = await room.machines()
    assert len(machines) == 3
    for machine in machines:
        assert machine.metadata.name.startswith("workers-")
        assert machine.metadata.labels == {"set": "workers"}
        assert machine.spec.provider_spec.value == {"image": IMAGE}
        owner = machine.metadata.owner_references[0]
        assert (owner.uid, owner.controller) == (machine_set.metadata.uid, True)
    assert machine_set.status.fully_labeled_replicas == 3
    assert (machine_set.status.ready_replicas, machine_set.status.available_replicas) == (0, 0)
    assert machine_set.status.label_selector == "set=workers"
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
    assert len(await room.events("SuccessfulDelete")) == 2


async def test_who_is_marked_goes_first_then_who_is_not_well(room: Room) -> None:
    await room.a_set(replicas=4)
    await room.settled(count=4)
    well, ill, marked, also_well = await room.machines()
    await with_nodes(room, [well, marked, also_well])
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.ready_replicas == 3)
    await room.annotate(MACHINES, marked.metadata.name, **{"machine.openshift.io/delete-machine": "yes"})
    await room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 3}})
    await room.settled(count=3)
    assert names(await room.machines()) == names([well, ill, also_well])
    await room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 2}})
    await room.settled(count=2)
    assert names(await room.machines()) == names([well, also_well])


async def test_the_oldest_go_first_where_the_set_says_so(room: Room) -> None:
    await room.a_set(replicas=1, deletePolicy="Oldest")
    await room.settled(count=1)
    first = names(await room.machines())
    await asyncio.sleep(1.1)
    await room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 2}})
    await room.settled(count=2)
    await room.change(MACHINE_SETS, "workers", {"spec": {"replicas": 1}})
    left = await room.until_machines(lambda found: len(found) == 1)
    assert names(left) != first


async def test_a_machine_that_somebody_deletes_is_replaced_before_it_is_gone(room: Room) -> None:
    await room.a_set(replicas=2)
    await room.settled(count=2)
    one, two = await room.machines()
    await room.change(MACHINES, one.metadata.name, {"metadata": {"finalizers": [FINALIZER]}})
    await room.client.delete(MACHINES, one.key)
    machines = await room.until_machines(lambda found: len(found) == 2)
    assert one.metadata.name not in names(machines)
    assert two.metadata.name in names(machines)
    assert await room.find(MACHINES, one.metadata.name) is not None
    await room.settled(count=2)


async def test_whoever_scales_a_set_without_knowing_its_kind_sees_what_there_is(room: Room) -> None:
    key = await room.a_set(replicas=1)
    await room.settled(count=1)
    await room.client.patch(SCALES, key, {"spec": {"replicas": 3}}, subresource="scale")
    await room.settled(count=3)
    scale = await room.client.patch(SCALES, key, {}, subresource="scale")
    assert (scale.spec.replicas, scale.status.replicas) == (3, 3)
    assert scale.status.selector == "set=workers"
    counted = await room.client.list(MACHINES, namespace=room.namespace, labels=scale.status.selector)
    assert len(counted.items) == 3


# Joining and leaving


async def test_a_machine_that_fits_and_belongs_to_nobody_joins_instead_of_a_new_one(room: Room) -> None:
    await room.a_machine("alone", labels={"set": "workers"})
    await room.a_machine("other", labels={"set": "others"})
    await room.a_set(replicas=2)
    await room.settled(count=2)
    machines = {machine.metadata.name: machine for machine in await room.machines()}
    assert len(machines) == 3
    assert [owner.name for owner in machines["alone"].metadata.owner_references] == ["workers"]
    assert machines["other"].metadata.owner_references == []
    assert await room.events("Adopted") == ["Took in Machine alone"]


async def test_a_machine_of_another_set_with_the_same_labels_is_left_to_it(room: Room) -> None:
    await room.a_set("one", replicas=2, labels={"role": "worker"})
    await room.settled("one", count=2)
    first = names(await room.machines())
    await room.a_set("two", replicas=1, labels={"role": "worker"})
    await room.settled("two", count=1)
    assert (await room.get(MACHINE_SETS, "one")).status.replicas == 2
    assert len(await room.machines()) == 3
    assert names(await room.machines()) > first


async def test_a_machine_whose_labels_do_not_fit_any_more_is_let_go_and_replaced(room: Room) -> None:
    await room.a_set(replicas=2)
    await room.settled(count=2)
    stray, stays = await room.machines()
    await room.change(MACHINES, stray.metadata.name, {"metadata": {"labels": {"set": "quarantine"}}})
    await room.until_machines(lambda found: len(found) == 3)
    let_go = await room.until(
        MACHINES, stray.metadata.name, lambda machine: not machine.metadata.owner_references
    )
    assert let_go.metadata.deletion_timestamp is None
    await room.settled(count=2)
    assert stays.metadata.name in names(await room.machines())


# Deleting


async def test_the_machines_of_a_set_that_is_deleted_go_with_it(room: Room) -> None:
    key = await room.a_set(replicas=3)
    await room.settled(count=3)
    await room.client.delete(MACHINE_SETS, key)
    await room.gone(MACHINE_SETS, "workers")
    await room.until_machines(lambda found: not found)


async def test_machines_that_are_to_stay_belong_to_nobody_afterwards_and_to_the_next_set_that_fits(
    room: Room,
) -> None:
    key = await room.a_set(replicas=2)
    await room.settled(count=2)
    before = names(await room.machines())
    await room.client.delete(MACHINE_SETS, key, propagation="Orphan")
    await room.gone(MACHINE_SETS, "workers")
    left = await room.until_machines(
        lambda found: all(not machine.metadata.owner_references for machine in found)
    )
    assert names(left) == before
    await room.a_set("next", replicas=2, labels={"set": "workers"})
    await room.settled("next", count=2)
    assert names(await room.machines()) == before


# The status


async def test_machines_are_ready_when_their_nodes_are_and_available_after_a_while(room: Room) -> None:
    await room.a_set(replicas=2, minReadySeconds=3600)
    await room.settled(count=2)
    machines = await room.machines()
    one, _ = await with_nodes(room, machines, since=now())
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.ready_replicas == 2)
    assert (await room.get(MACHINE_SETS, "workers")).status.available_replicas == 0
    room.clock.ahead = timedelta(hours=1)
    await room.annotate(MACHINE_SETS, "workers", look="again")
    await room.until(MACHINE_SETS, "workers", lambda found: found.status.available_replicas == 2)
    condition = {"type": "Ready", "status": "Unknown", "lastTransitionTime": now().isoformat()}
    await room.change(NODES, one, {"status": {"conditions": [condition]}}, subresource="status")
    found = await room.until(MACHINE_SETS, "workers", lambda found: found.status.ready_replicas == 1)
    assert found.status.available_replicas == 1
    await room.client.delete(NODES, room.key(NODES, one))


async def test_a_set_that_cannot_be_kept_says_why_until_it_can(room: Room) -> None:
    await room.a_set(replicas=1)
    await room.settled(count=1)
    await room.change(MACHINE_SETS, "workers", {"spec": {"selector": {"matchLabels": {"set": "else"}}}})
    found = await room.until(MACHINE_SETS, "workers", lambda found: bool(found.status.error_reason))
    assert found.status.error_reason == "InvalidConfiguration"
    assert "does not fit the labels" in found.status.error_message
    assert found.status.replicas == 1
    assert len(await room.machines()) == 1
    await room.change(MACHINE_SETS, "workers", {"spec": {"selector": {"matchLabels": {"set": "workers"}}}})
    await room.until(MACHINE_SETS, "workers", lambda found: not found.status.error_reason)
    await room.settled(count=1)


async def test_a_template_that_the_api_refuses_is_said_and_tried_again_when_it_is_another(room: Room) -> None:
    labels = {"set": "workers", "bad": "no label!"}
    await room.a_set(replicas=1, template={"metadata": {"labels": labels}, "spec": {}})
    found = await room.until(MACHINE_SETS, "workers", lambda found: bool(found.status.error_reason))
    assert "no label!" in found.status.error_message
    assert "no label!" in (await room.events("FailedCreate"))[0]
    change = {"spec": {"template": {"metadata": {"labels": {"bad": "good"}}}}}
    await room.change(MACHINE_SETS, "workers", change)
    await room.settled(count=1)
    await room.until(MACHINE_SETS, "workers", lambda found: not found.status.error_reason)


# As many as there are hosts

FOLLOWS: Final = {str(Annotation.AUTOSCALE): ""}
RACK_3: Final = {"image": IMAGE, "hostSelector": {"matchLabels": {"rack": "3"}}}


async def test_a_set_has_as_many_machines_as_there_are_hosts_for_it(room: Room) -> None:
    await room.a_host("h1", labels={"rack": "3"})
    await room.a_host("h2", labels={"rack": "4"})
    await room.a_set(replicas=0, annotations=FOLLOWS, provider=RACK_3)
    await room.settled(count=1)
    await room.a_host("h3", labels={"rack": "3"})
    found = await room.settled(count=2)
    assert found.spec.replicas == 2
    await room.client.delete(BARE_METAL_HOSTS, room.key(BARE_METAL_HOSTS, "h1"))
    await room.settled(count=1)
    # One that somebody has who is not of this set is not for it; one that its own machine has is.
    (mine,) = await room.machines()
    await room.a_machine("stranger")
    await room.a_host("h4", labels={"rack": "3"}, consumer="stranger")
    await room.a_host("h5", consumer=mine.metadata.name)
    await room.settled(count=2)


async def test_with_a_host_of_a_machine_that_is_not_there_the_number_stays(room: Room) -> None:
    await room.a_host("h1", labels={"rack": "3"}, consumer="ghost")
    await room.a_host("h2", labels={"rack": "3"})
    await room.a_set(replicas=0, annotations=FOLLOWS, provider=RACK_3)
    (told,) = await room.events("NotScaledToHosts")
    assert f"Machine {room.namespace}/ghost, which does not exist" in told
    assert (await room.get(MACHINE_SETS, "workers")).spec.replicas == 0
    await room.a_machine("ghost", labels={"set": "others"})
    await room.settled(count=1)
