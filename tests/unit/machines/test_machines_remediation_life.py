"""A Machine whose node does not answer is mended, on the embedded API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import pytest_asyncio
from keeping_room import Room, a_room, host_status

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NODES
from ingot.api.machine import MACHINES, Annotation
from ingot.embedded.server import serve
from ingot.kube import Client
from ingot.machines.remediation.steps import KEPT_OFF, Mark

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    async with (
        serve(tmp_path_factory.mktemp("api")) as running,
        Client.from_kubeconfig(running.kubeconfig) as client,
    ):
        yield client


class Patient:
    """A Machine with its host and its Node, and whoever switches the host."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.node = f"node-{uuid4()}"

    async def arrive(self, **metadata: object) -> None:
        room = self.room
        host = await room.a_host("h1", state="provisioned", on=True, consumer="m1")
        await room.a_machine("m1", annotations={str(Annotation.HOST): f"{room.namespace}/h1"}, **metadata)
        await room.change(
            MACHINES,
            "m1",
            {"spec": {"providerID": f"baremetalhost:///{room.namespace}/h1/{host.metadata.uid}"}},
        )
        await self.register()
        await room.change(MACHINES, "m1", {"status": {"nodeRef": {"name": self.node}}}, subresource="status")

    async def register(self, **metadata: object) -> None:
        await self.room.a_node(self.node, **metadata)

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
