"""A Machine whose node does not answer is mended, on the embedded API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
import pytest_asyncio
from claiming_wire import Wire, WiredClient
from keeping_room import FINALIZER, Room, a_room, an_api, an_empty_room, host_status

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NODES
from ingot.api.machine import MACHINES, Annotation
from ingot.api.meta import Key, Object, Resource
from ingot.kube import Client, NotFound, config
from ingot.machines.remediation.startup import MACHINE_HEALTH_CHECKS
from ingot.machines.remediation.steps import KEPT_OFF, Mark, deadline_of
from ingot.machines.vacancies import UNHEALTHY

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFINITIONS: Final = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    type=Object,
    namespaced=False,
)
HEALTH_CHECKS: Final = {
    "metadata": {"name": "machinehealthchecks.machine.openshift.io"},
    "spec": {
        "group": "machine.openshift.io",
        "scope": "Namespaced",
        "names": {
            "kind": "MachineHealthCheck",
            "plural": "machinehealthchecks",
            "singular": "machinehealthcheck",
            "listKind": "MachineHealthCheckList",
        },
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    async with an_api(tmp_path_factory.mktemp("api")) as kubeconfig:
        yield kubeconfig


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(kubeconfig) as client:
        yield client


class Patient:
    """A Machine with its host and its Node, and whoever switches the host."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.node = f"node-{uuid4()}"

    async def arrive(self, *, owner: bool = False, **node: Any) -> None:
        """`owner`: somebody would make another Machine in its place. The rest is the Node's."""
        room = self.room
        host = await room.a_host("h1", state="provisioned", on=True, consumer="m1")
        await room.a_machine(
            "m1",
            annotations={str(Annotation.HOST): f"{room.namespace}/h1"},
            ownerReferences=[await self._owner()] if owner else [],
        )
        await room.change(
            MACHINES,
            "m1",
            {"spec": {"providerID": f"baremetalhost:///{room.namespace}/h1/{host.metadata.uid}"}},
        )
        await self.register(**node)
        await room.change(MACHINES, "m1", {"status": {"nodeRef": {"name": self.node}}}, subresource="status")

    async def _owner(self) -> dict[str, Any]:
        """A host, which exists as the garbage collector demands, and makes nothing."""
        found = await self.room.get(BARE_METAL_HOSTS, "h1")
        return {
            "apiVersion": BARE_METAL_HOSTS.api_version,
            "kind": BARE_METAL_HOSTS.kind,
            "name": "h1",
            "uid": found.metadata.uid,
            "controller": True,
        }

    async def register(self, **metadata: Any) -> None:
        await self.room.a_node(self.node, **metadata)

    async def goes_off(self) -> None:
        """As far as where the Node is gone, and the host may start again."""
        await self.ask()
        await self.is_kept_off()
        await self.switch(on=False)
        await self.room.gone(NODES, self.node)
        await self.is_let_go()
        await self.switch(on=True)

    async def ask(self) -> None:
        await self.room.annotate(MACHINES, "m1", **{Annotation.REMEDIATION: ""})

    async def is_kept_off(self) -> None:
        await self.room.until(BARE_METAL_HOSTS, "h1", lambda host: KEPT_OFF in host.metadata.annotations)

    async def is_let_go(self) -> None:
        await self.room.until(BARE_METAL_HOSTS, "h1", lambda host: KEPT_OFF not in host.metadata.annotations)

    async def switch(self, *, on: bool) -> None:
        await self.room.change(
            BARE_METAL_HOSTS, "h1", {"status": host_status("provisioned", on=on)}, subresource="status"
        )

    async def waits(self, *, minutes: int) -> None:
        """The time passes, and somebody looks."""
        self.room.clock.ahead = timedelta(minutes=minutes)
        await self.room.annotate(MACHINES, "m1", look="again")

    async def marks(self) -> set[str]:
        machine = await self.room.get(MACHINES, "m1")
        return {name for name in [*Mark, Annotation.REMEDIATION] if name in machine.metadata.annotations}

    async def is_well(self) -> None:
        await self.room.until(
            MACHINES,
            "m1",
            lambda machine: (
                not any(name in machine.metadata.annotations for name in [*Mark, Annotation.REMEDIATION])
            ),
        )


@pytest_asyncio.fixture(loop_scope="module")
async def room(client: Client) -> AsyncIterator[Room]:
    async with a_room(client) as room:
        yield room


@pytest_asyncio.fixture(loop_scope="module")
async def patient(room: Room) -> Patient:
    return Patient(room)


async def test_a_machine_is_switched_off_loses_its_node_and_gets_it_back_with_its_labels(
    patient: Patient, room: Room
) -> None:
    await patient.arrive()
    await room.change(
        NODES,
        patient.node,
        {"metadata": {"labels": {"zone": "a", "disk": "ssd"}, "annotations": {"note": "x"}}},
    )
    await patient.ask()
    await patient.is_kept_off()
    host = await room.get(BARE_METAL_HOSTS, "h1")
    assert json.loads(host.metadata.annotations[KEPT_OFF]) == {"mode": "hard"}
    assert await room.find(NODES, patient.node) is not None
    await patient.switch(on=False)
    await room.gone(NODES, patient.node)
    await patient.is_let_go()
    assert await patient.marks() == {*Mark, Annotation.REMEDIATION}
    await patient.switch(on=True)
    await patient.register(labels={"zone": "b"})
    await patient.is_well()
    node = await room.get(NODES, patient.node)
    assert node.metadata.labels.items() >= {"zone": "b", "disk": "ssd"}.items()
    assert node.metadata.annotations["note"] == "x"
    assert await room.events("Remediated") == [f"Node {patient.node} is back"]


async def test_a_process_that_is_killed_after_any_step_goes_on_where_it_was(
    patient: Patient, room: Room
) -> None:
    await patient.arrive(labels={"zone": "a"})
    await room.restart()
    await patient.ask()
    await patient.is_kept_off()
    await room.restart()
    await patient.switch(on=False)
    await room.restart()
    await room.gone(NODES, patient.node)
    await room.restart()
    await patient.is_let_go()
    await room.restart()
    await patient.switch(on=True)
    await room.restart()
    await patient.register()
    await room.restart()
    await patient.is_well()
    assert (await room.get(NODES, patient.node)).metadata.labels["zone"] == "a"


async def test_while_nobody_works_the_node_comes_back_and_what_it_had_is_given_to_it_later(
    patient: Patient, room: Room
) -> None:
    await patient.arrive(labels={"zone": "a"}, owner=True)
    await patient.goes_off()
    await room.stop()
    room.clock.ahead = timedelta(hours=3)
    await patient.register()
    await room.start()
    await patient.is_well()
    assert (await room.get(NODES, patient.node)).metadata.labels["zone"] == "a"


async def test_a_host_that_does_not_go_off_keeps_its_node(patient: Patient, room: Room) -> None:
    await patient.arrive()
    await patient.ask()
    await patient.is_kept_off()
    await room.restart()
    await asyncio.sleep(0.3)
    assert await room.find(NODES, patient.node) is not None
    assert await patient.marks() == {Annotation.REMEDIATION}
    await patient.waits(minutes=6)
    (told,) = await room.events("RemediationSlow")
    assert "is still on, 5 minutes after" in told


async def test_a_node_that_others_hold_is_waited_for_before_the_host_is_switched_on(
    patient: Patient, room: Room
) -> None:
    await patient.arrive(finalizers=[FINALIZER])
    await patient.ask()
    await patient.is_kept_off()
    await patient.switch(on=False)
    await room.until(NODES, patient.node, lambda node: node.metadata.deletion_timestamp is not None)
    await asyncio.sleep(0.2)
    assert KEPT_OFF in (await room.get(BARE_METAL_HOSTS, "h1")).metadata.annotations
    await room.change(NODES, patient.node, {"metadata": {"finalizers": []}})
    await patient.is_let_go()


# Too late


async def test_a_machine_of_a_set_whose_node_does_not_come_back_is_deleted(
    patient: Patient, room: Room
) -> None:
    await patient.arrive(owner=True)
    await patient.goes_off()
    deadline = deadline_of(await room.get(MACHINES, "m1"))
    assert deadline is not None
    assert timedelta(minutes=19) < deadline - room.clock() <= timedelta(minutes=20)
    await patient.waits(minutes=21)
    await room.gone(MACHINES, "m1")
    (told,) = await room.events("RemediationTimedOut")
    assert "the Machine is deleted" in told
    marked = await room.get(BARE_METAL_HOSTS, "h1")
    assert "m1" in marked.metadata.annotations[UNHEALTHY[0]]


async def test_a_host_is_not_given_up_on_old_news(client: Client, kubeconfig: Path) -> None:
    async with an_empty_room(client) as room, WiredClient(config.load(kubeconfig)) as wired:
        wired.wire = Wire(client, [])
        room.through = wired
        await room.start()
        patient = Patient(room)
        await patient.arrive(owner=True)
        await patient.goes_off()
        await room.until(MACHINES, "m1", lambda machine: Mark.DEADLINE in machine.metadata.annotations)
        wired.wire.hold_back("Machine")
        await room.annotate(MACHINES, "m1", **{Annotation.REMEDIATION: None})
        room.clock.ahead = timedelta(minutes=21)
        await patient.switch(on=False)
        await patient.switch(on=True)
        await patient.register()
        await patient.is_well()
        assert UNHEALTHY[0] not in (await room.get(BARE_METAL_HOSTS, "h1")).metadata.annotations
        assert not [write for write in wired.wire.writes if UNHEALTHY[0] in write]


async def test_a_machine_that_nobody_would_replace_stays_and_is_well_when_its_node_comes_after_all(
    patient: Patient, room: Room
) -> None:
    await patient.arrive()
    await patient.goes_off()
    await patient.waits(minutes=21)
    (told,) = await room.events("RemediationStuck")
    assert "nobody would make another one in its place" in told
    assert (await room.get(MACHINES, "m1")).metadata.deletion_timestamp is None
    await patient.register()
    await patient.is_well()


async def test_a_health_check_says_how_long_a_node_may_take(
    patient: Patient, room: Room, client: Client
) -> None:
    await client.create(DEFINITIONS, HEALTH_CHECKS)
    try:
        await _known(room)
        await patient.arrive()
        await patient.goes_off()
        deadline = deadline_of(await room.get(MACHINES, "m1"))
        assert deadline is not None
        assert timedelta(minutes=4) < deadline - room.clock() <= timedelta(minutes=5)
    finally:
        await client.delete(DEFINITIONS, Key("", "machinehealthchecks.machine.openshift.io"))


async def _known(room: Room) -> None:
    body = {
        "metadata": {"name": "workers", "namespace": room.namespace},
        "spec": {"selector": {}, "nodeStartupTimeout": "5m"},
    }
    async with asyncio.timeout(60):
        while True:
            try:
                await room.client.create(MACHINE_HEALTH_CHECKS, body)
                return
            except NotFound:
                await asyncio.sleep(0.05)


# What comes between


async def test_when_nobody_asks_any_more_the_host_is_switched_on_and_the_node_gets_its_labels(
    patient: Patient, room: Room
) -> None:
    await patient.arrive(labels={"zone": "a"}, finalizers=[FINALIZER])
    await patient.ask()
    await patient.is_kept_off()
    await patient.switch(on=False)
    await room.until(NODES, patient.node, lambda node: node.metadata.deletion_timestamp is not None)
    await room.annotate(MACHINES, "m1", **{Annotation.REMEDIATION: None})
    await patient.is_let_go()
    await room.change(NODES, patient.node, {"metadata": {"finalizers": []}})
    await room.gone(NODES, patient.node)
    await patient.register()
    await patient.is_well()
    assert (await room.get(NODES, patient.node)).metadata.labels["zone"] == "a"


async def test_the_host_of_a_machine_that_is_deleted_meanwhile_is_not_kept_off(
    patient: Patient, room: Room
) -> None:
    await patient.arrive()
    await room.change(MACHINES, "m1", {"metadata": {"finalizers": [FINALIZER]}})
    await patient.ask()
    await patient.is_kept_off()
    await room.client.delete(MACHINES, room.key(MACHINES, "m1"))
    await patient.is_let_go()


async def test_a_host_that_is_kept_off_for_nobody_is_let_go(room: Room) -> None:
    await room.a_host("h1")
    await room.annotate(BARE_METAL_HOSTS, "h1", **{KEPT_OFF: ""})
    await room.until(BARE_METAL_HOSTS, "h1", lambda host: KEPT_OFF not in host.metadata.annotations)


async def test_a_host_that_is_never_to_be_switched_off_is_not_and_somebody_is_told(
    patient: Patient, room: Room
) -> None:
    await patient.arrive()
    await room.change(BARE_METAL_HOSTS, "h1", {"spec": {"disablePowerOff": True}})
    await patient.ask()
    (told,) = await room.events("RemediationStuck")
    assert "spec.disablePowerOff" in told
    assert KEPT_OFF not in (await room.get(BARE_METAL_HOSTS, "h1")).metadata.annotations
    await room.change(BARE_METAL_HOSTS, "h1", {"spec": {"disablePowerOff": False}})
    await patient.is_kept_off()


async def test_a_machine_without_a_host_says_so(room: Room) -> None:
    await room.a_machine("m1", annotations={str(Annotation.REMEDIATION): ""})
    assert await room.events("RemediationStuck") == [
        "The Machine has no host that could be switched off and on."
    ]


async def test_the_host_of_a_machine_that_is_well_again_is_not_switched_off_on_old_news(
    client: Client, kubeconfig: Path
) -> None:
    async with an_empty_room(client) as room, WiredClient(config.load(kubeconfig)) as wired:
        wired.wire = Wire(client, [])
        room.through = wired
        await room.start()
        patient = Patient(room)
        await patient.arrive()
        await room.change(BARE_METAL_HOSTS, "h1", {"spec": {"disablePowerOff": True}})
        await patient.ask()
        await room.events("RemediationStuck")
        wired.wire.hold_back("Machine")
        await room.annotate(MACHINES, "m1", **{Annotation.REMEDIATION: None})
        await room.change(BARE_METAL_HOSTS, "h1", {"spec": {"disablePowerOff": False}})
        await asyncio.sleep(0.5)
        host = await room.get(BARE_METAL_HOSTS, "h1")
        assert KEPT_OFF not in host.metadata.annotations
        assert not [write for write in wired.wire.writes if "BareMetalHost" in write]
