"""What a machine is made of: told by its user, left by an earlier life, or found."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace
from rack import Rack
from scripted import DETAILS

from ingot.api.baremetalhost import Annotation, BareMetalHost
from ingot.api.hardwaredata import FINALIZER, HARDWARE_DATA
from ingot.api.meta import Key
from ingot.api.wire import wire

MAC = "00:00:5e:00:53:01"
UNINSPECTED = {"inspectionMode": "disabled", "bootMACAddress": MAC}
TOLD = {"hostname": "told", "cpu": {"arch": "aarch64", "count": 80}}


def hostname(host: BareMetalHost) -> str:
    found = host.hardware()
    return found.hostname if found is not None else ""


async def writes_hardware_data(rack: Rack, hardware: dict[str, Any] | None) -> Key:
    """A person describes the machine before there is a host."""
    body = {"metadata": {"name": "h1"}, "spec": {"hardware": hardware} if hardware else {}}
    await rack.client.create(HARDWARE_DATA, body, namespace=rack.namespace)
    await rack.settle()
    return Key(rack.namespace, "h1")


# By annotation


async def test_details_in_the_annotation_become_the_hosts_hardware_and_the_annotation_goes(
    rack: Rack,
) -> None:
    key = await rack.host(annotations={Annotation.HARDWARE_DETAILS: json.dumps(TOLD)}, **UNINSPECTED)
    host = await rack.until(key, lambda host: host.status.powered_on)
    assert hostname(host) == "told"
    assert Annotation.HARDWARE_DETAILS not in host.metadata.annotations
    assert host.spec.architecture == "aarch64"
    assert "inspect" not in rack.backend.machines[key].orders
    await rack.settle()
    assert {"UpdateHardwareDetails", "RemoveAnnotation"} <= set(await rack.event_reasons())


async def test_while_inspection_is_disabled_other_details_replace_those_of_before(rack: Rack) -> None:
    key = await rack.host(annotations={Annotation.HARDWARE_DETAILS: json.dumps(TOLD)}, **UNINSPECTED)
    await rack.until(key, lambda host: host.status.powered_on)
    await rack.annotate(key, Annotation.HARDWARE_DETAILS, json.dumps(TOLD | {"hostname": "renamed"}))
    await rack.until(key, lambda host: hostname(host) == "renamed")
    host = await rack.until(key, lambda host: Annotation.HARDWARE_DETAILS not in host.metadata.annotations)
    assert host.state == "available"


async def test_details_that_say_what_is_known_cost_no_write_of_the_status(rack: Rack) -> None:
    key = await rack.host(annotations={Annotation.HARDWARE_DETAILS: json.dumps(TOLD)}, **UNINSPECTED)
    before = await rack.until(key, lambda host: host.status.powered_on)
    await rack.settle()
    before = await rack.get(key)
    await rack.annotate(key, Annotation.HARDWARE_DETAILS, json.dumps(TOLD))
    await rack.until(key, lambda host: Annotation.HARDWARE_DETAILS not in host.metadata.annotations)
    await rack.settle()
    assert (await rack.get(key)).status == before.status


# By HardwareData


async def test_a_users_hardware_data_is_enough_where_inspection_is_disabled(rack: Rack) -> None:
    key = await writes_hardware_data(rack, TOLD)
    assert await rack.host(**UNINSPECTED) == key
    host = await rack.until(key, lambda host: host.status.powered_on)
    assert hostname(host) == "told"
    assert host.spec.architecture == "aarch64"
    assert "inspect" not in rack.backend.machines[key].orders
    assert rack.backend.machines[key].access is not None
    assert rack.backend.machines[key].access.architecture == "aarch64"
    data = await rack.hardware_data(key)
    assert data.spec.hardware is not None
    assert data.spec.hardware.hostname == "told"


async def test_hardware_data_that_comes_later_is_noticed(rack: Rack) -> None:
    key = await rack.host(**UNINSPECTED)
    await rack.until(key, lambda host: host.status.powered_on)
    await writes_hardware_data(rack, TOLD)
    await rack.until(key, lambda host: hostname(host) == "told" and host.spec.architecture == "aarch64")


async def test_an_inspection_replaces_what_a_user_wrote(rack: Rack) -> None:
    key = await writes_hardware_data(rack, TOLD)
    written = await rack.hardware_data(key)
    await rack.host()
    host = await rack.until_well(key, "available")
    assert hostname(host) == "h1"
    data = await rack.hardware_data(key)
    assert data.metadata.uid != written.metadata.uid
    assert data.metadata.finalizers == [FINALIZER]
    assert [owner.controller for owner in data.metadata.owner_references] == [True]


async def test_hardware_data_that_says_nothing_is_no_hardware(rack: Rack) -> None:
    key = await writes_hardware_data(rack, None)
    await rack.host(**UNINSPECTED)
    host = await rack.until(key, lambda host: host.status.powered_on)
    assert host.hardware() is None


async def test_an_architecture_that_the_user_set_stays(rack: Rack) -> None:
    key = await writes_hardware_data(rack, TOLD)
    await rack.host(architecture="riscv64", **UNINSPECTED)
    host = await rack.until(key, lambda host: host.status.powered_on)
    assert host.spec.architecture == "riscv64"


async def test_the_back_end_is_told_the_macs_of_all_interfaces(rack: Rack) -> None:
    key = await rack.host()
    await rack.until(key, lambda host: host.status.powered_on)
    access = rack.backend.machines[key].access
    assert access is not None
    assert access.nic_macs == (MAC,)


# Of which the old cannot go


async def test_findings_wait_for_hardware_data_that_somebody_holds(rack: Rack) -> None:
    held = {
        "metadata": {"name": "h1", "finalizers": ["example.org/audit"]},
        "spec": {"hardware": wire(replace(DETAILS, hostname="old"))},
    }
    await rack.client.create(HARDWARE_DATA, held, namespace=rack.namespace)
    key = await rack.host()
    host = await rack.until(key, lambda host: "somebody's finalizer" in str(host.status.conditions))
    assert host.state == "inspecting"
    await rack.client.patch(HARDWARE_DATA, key, {"metadata": {"finalizers": []}})
    host = await rack.until_well(key, "available")
    assert hostname(host) == "h1"
