"""The same Ironic, read by our client and by openstacksdk."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
import openstack_sdk
import pytest

from backend.world import DEADLINE, Bench, World
from ingot.lab.client import Lab
from ingot.provisioner import Failed, Ready
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.inventory import Inventory
from ingot.provisioner.ironic.model import BiosSetting, FirmwareComponent, FullNode, HistoryEntry, Node, Port

pytestmark = pytest.mark.asyncio(loop_scope="session")

SDK_WORDS = {
    "automated_clean": "is_automated_clean_enabled",
    "instance_uuid": "instance_id",
    "maintenance": "is_maintenance",
    "uuid": "id",
}
SDK_CANNOT_READ = {
    "disable_power_off",
    "health",
    "inspection_finished_at",
    "network_data",
    "provision_updated_at",
}
"""Fields of a node that this openstacksdk does not know."""


async def test_what_our_client_reads_is_what_openstacksdk_reads(world: World, lab: Lab):
    """Two readers written by different people: what both misread is not read at all."""
    bench = Bench(world, lab)
    assert isinstance(await bench.register(password="wrong"), Failed)
    assert isinstance(await bench.register(), Ready)
    assert isinstance(await bench.inspect(), Ready)
    async with IronicClient(world.ironic_access) as client, asyncio.timeout(DEADLINE):
        version = await client.version()
        ours = await Reading.of(client, bench.ref.backend_id)
        while True:
            theirs = await asyncio.to_thread(openstack_sdk.read, world.ironic_access, version)
            before, ours = ours, await Reading.of(client, bench.ref.backend_id)
            if before == ours:
                # Ironic looks at its hosts and notes what it found whenever it likes; here it did not while both read.
                break

    assert {node.uuid for node in ours.listed} == {one["node"]["id"] for one in theirs}
    seen = next(one for one in theirs if one["node"]["id"] == ours.node.uuid)
    sdk = seen["node"]
    named = {SDK_WORDS.get(name, name): value for name, value in msgspec.to_builtins(ours.node).items()}
    assert named.keys() - sdk.keys() == SDK_CANNOT_READ
    different = {
        name: (named[name], sdk[name])
        for name in named.keys() & sdk.keys()
        if _same(named[name]) != _same(sdk[name])
    }
    assert different == {}
    assert next(one for one in ours.listed if one.uuid == ours.node.uuid) == ours.node.remembered()

    ports = {(port.address, port.node_uuid, port.pxe_enabled) for port in ours.ports}
    assert ports == {(one["address"], one["node_id"], one["is_pxe_enabled"]) for one in seen["ports"]}
    assert {address for address, _, _ in ports} == set(bench.plate.macs)

    for setting, other in zip(ours.bios, seen["bios"]["bios"], strict=True):
        assert msgspec.to_builtins(setting) == {name: other[name] for name in setting.__struct_fields__}
    for part, other in zip(ours.firmware, seen["firmware"]["firmware"], strict=True):
        assert msgspec.to_builtins(part) == {name: other[name] for name in part.__struct_fields__}
    assert ours.history
    for entry, other in zip(ours.history, seen["history"]["history"][: len(ours.history)], strict=True):
        assert (entry.event, entry.severity) == (other["event"], other["severity"])
    inventory = seen["inventory"]["inventory"]
    assert ours.inventory.memory is not None
    assert ours.inventory.memory.physical_mb == inventory["memory"]["physical_mb"]
    assert [nic.mac_address for nic in ours.inventory.interfaces or ()] == [
        nic["mac_address"] for nic in inventory["interfaces"]
    ]


@dataclass(frozen=True)
class Reading:
    """All that our client reads of a node, and the list of all nodes."""

    node: FullNode
    listed: list[Node]
    ports: list[Port]
    bios: list[BiosSetting]
    firmware: list[FirmwareComponent]
    history: list[HistoryEntry]
    inventory: Inventory

    @classmethod
    async def of(cls, client: IronicClient, uuid: str) -> Reading:
        return cls(
            node=await client.node(uuid),
            listed=[node async for page in client.pages_of_nodes() for node in page],
            ports=await client.ports(node_uuid=uuid),
            bios=await client.bios_settings(uuid),
            firmware=await client.firmware(uuid),
            history=await client.history(uuid),
            inventory=(await client.inventory(uuid)).inventory,
        )


def _same(value: Any) -> Any:
    """Nothing is nothing, and a moment is a moment, however they are written."""
    if isinstance(value, str) and value.endswith(("Z", "+00:00")):
        return value.removesuffix("Z").removesuffix("+00:00")
    return value or None
