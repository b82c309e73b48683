"""Inspection: the first, another on request, none; and what a crash in the middle costs."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from msgspec.structs import replace
from rack import Rack
from scripted import DETAILS

from ingot.api.baremetalhost import Annotation, BareMetalHost, ErrorType
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.meta import Key
from ingot.kube import Informer
from ingot.provisioner import Busy, Failed

BUSY = Busy("the ramdisk boots")


def asks(host: BareMetalHost) -> bool:
    return Annotation.INSPECT in host.metadata.annotations


async def is_available(rack: Rack) -> Key:
    key = await rack.host()
    await rack.until(key, lambda host: host.state == "available" and host.status.powered_on)
    await rack.settle()
    return key


def another_second(rack: Rack) -> None:
    """Orders have times for names, and times are whole seconds."""
    rack.operator.ahead += timedelta(seconds=1)


async def test_another_inspection_is_made_when_it_is_asked_for(rack: Rack) -> None:
    key = await is_available(rack)
    machine = rack.backend.machines[key]
    machine.details = replace(DETAILS, ram_mebibytes=16384)
    await rack.annotate(key, Annotation.INSPECT)
    host = await rack.until(key, lambda host: host.state == "available" and not asks(host))
    found = host.hardware()
    assert found is not None
    assert found.ram_mebibytes == 16384
    data = await rack.hardware_data(key)
    assert data.spec.hardware is not None
    assert data.spec.hardware.ram_mebibytes == 16384
    assert machine.orders.count("inspect") == 1
    assert machine.orders.count("inspect anew") == 1
    assert "deploy" not in machine.orders


async def test_watchers_see_hardware_data_go_and_come(rack: Rack) -> None:
    key = await is_available(rack)
    seen: list[str] = []
    watch = Informer(rack.client, HARDWARE_DATA, namespace=rack.namespace)
    watch.subscribe(
        lambda change: seen.append(
            "came" if change.old is None else "went" if change.new is None else "changed"
        )
    )
    following = asyncio.create_task(watch.run())
    await watch.synced()
    before = await rack.hardware_data(key)
    await rack.annotate(key, Annotation.INSPECT)
    await rack.until(key, lambda host: host.state == "available" and not asks(host))
    await rack.settle()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert (await rack.hardware_data(key)).metadata.uid != before.metadata.uid
    assert seen[0] == "came"
    assert seen[-1] == "came"
    assert "went" in seen


async def test_the_request_goes_when_the_inspection_has_begun(rack: Rack) -> None:
    key = await is_available(rack)
    rack.backend.hold("inspect", BUSY)
    await rack.annotate(key, Annotation.INSPECT)
    host = await rack.until(key, lambda host: host.state == "inspecting" and not asks(host))
    assert host.status.operation_history.inspect.end is None


async def test_another_inspection_costs_three_writes_of_the_host(rack: Rack) -> None:
    key = await is_available(rack)
    async with rack.host_writes() as writes:
        await rack.annotate(key, Annotation.INSPECT)
        await rack.until(key, lambda host: host.state == "available" and not asks(host))
        await rack.settle()
    # The request itself; the inspection that begins; the request that goes; what was found.
    assert len(writes) == 1 + 3


async def test_who_asks_while_an_inspection_runs_gets_another_one(rack: Rack) -> None:
    key = await is_available(rack)
    rack.backend.hold("inspect", BUSY)
    await rack.annotate(key, Annotation.INSPECT)
    await rack.until(key, lambda host: rack.sentence(host) == BUSY.why and not asks(host))
    await rack.annotate(key, Annotation.INSPECT)
    await rack.settle()
    assert asks(await rack.get(key))
    another_second(rack)
    rack.backend.let_go("inspect")
    rack.backend.tell(key)
    await rack.until(key, lambda host: host.state == "available" and not asks(host))
    assert rack.backend.machines[key].orders.count("inspect anew") == 2


async def test_an_operator_that_dies_in_the_middle_inspects_once(rack: Rack) -> None:
    key = await is_available(rack)
    rack.backend.hold("inspect", BUSY)
    await rack.annotate(key, Annotation.INSPECT)
    await rack.until(key, lambda host: rack.sentence(host) == BUSY.why)
    another_second(rack)
    await rack.operator.restart()
    rack.backend.let_go("inspect")
    rack.backend.tell(key)
    await rack.until(key, lambda host: host.state == "available")
    names = {order.renewal for order in rack.backend.machines[key].inspections if order.renewal}
    assert len(names) == 1
    assert rack.backend.machines[key].orders.count("inspect anew") == 1


async def test_an_operator_that_dies_before_the_order_went_out_neither_forgets_nor_repeats_it(
    rack: Rack,
) -> None:
    key = await is_available(rack)
    rack.backend.away = "connection refused"
    await rack.annotate(key, Annotation.INSPECT)
    await rack.settle()
    await rack.operator.end()
    rack.backend.away = ""
    await rack.operator.start()
    await rack.until(key, lambda host: host.state == "available" and not asks(host))
    await rack.settle()
    assert rack.backend.machines[key].orders.count("inspect anew") == 1


async def test_the_first_inspection_is_content_with_what_was_ever_found(rack: Rack) -> None:
    rack.backend.hold("inspect", BUSY)
    key = await rack.host()
    await rack.until_state(key, "inspecting")
    await rack.operator.restart()
    rack.backend.let_go("inspect")
    rack.backend.tell(key)
    await rack.until_state(key, "available")
    assert {order.renewal for order in rack.backend.machines[key].inspections} == {""}


async def test_an_inspection_that_failed_is_told_and_tried_again_when_the_host_changes(rack: Rack) -> None:
    key = await is_available(rack)
    rack.backend.script("inspect", Failed("the ramdisk did not report"))
    await rack.annotate(key, Annotation.INSPECT)
    host = await rack.until_error(key, "the ramdisk did not report")
    assert (host.status.error_type, host.state) == (ErrorType.INSPECTION, "inspecting")
    assert host.hardware() is not None
    await rack.change(key, {"description": "with a new cable"})
    await rack.until_well(key, "available")
    await rack.settle()
    assert "InspectionError" in await rack.event_reasons()


async def test_a_host_can_be_deleted_while_it_is_inspected_anew(rack: Rack) -> None:
    key = await is_available(rack)
    rack.backend.hold("inspect", BUSY)
    await rack.annotate(key, Annotation.INSPECT)
    await rack.until_state(key, "inspecting")
    await rack.delete(key)
    await rack.until_gone(key)


async def test_an_inspection_that_gets_disabled_is_skipped(rack: Rack) -> None:
    rack.backend.hold("inspect", BUSY)
    key = await rack.host(bootMACAddress="00:00:5e:00:53:01")
    await rack.until_state(key, "inspecting")
    await rack.change(key, {"inspectionMode": "disabled"})
    await rack.until_well(key, "available")
    await rack.settle()
    assert "InspectionSkipped" in await rack.event_reasons()


async def test_a_disabled_inspection_cannot_be_asked_for(rack: Rack) -> None:
    key = await rack.host(
        annotations={Annotation.INSPECT: ""}, inspectionMode="disabled", bootMACAddress="00:00:5e:00:53:01"
    )
    await rack.until(key, lambda host: host.status.powered_on)
    await rack.settle()
    assert (await rack.get(key)).state == "available"
    assert rack.backend.machines[key].inspections == []


async def test_the_word_disabled_in_the_annotation_skips_inspection(rack: Rack) -> None:
    key = await rack.host(annotations={Annotation.INSPECT: "disabled"}, bootMACAddress="00:00:5e:00:53:01")
    host = await rack.until(key, lambda host: host.status.powered_on)
    assert rack.backend.machines[key].inspections == []
    assert asks(host)


async def test_a_fast_inspection_is_told_to_the_back_end(rack: Rack) -> None:
    key = await rack.host(inspectionMode="fast")
    await rack.until(key, lambda host: host.status.powered_on)
    access = rack.backend.machines[key].access
    assert access is not None
    assert access.inspection == "fast"


async def test_the_boot_mode_in_use_is_that_of_the_last_inspection_or_deployment(rack: Rack) -> None:
    key = await is_available(rack)
    await rack.change(key, {"bootMode": "legacy"})
    await rack.settle()
    assert (await rack.get(key)).status.provisioning.boot_mode == "UEFI"
    await rack.annotate(key, Annotation.INSPECT)
    host = await rack.until(key, lambda host: host.state == "available" and not asks(host))
    assert host.status.provisioning.boot_mode == "legacy"


async def test_who_asks_for_an_inspection_when_the_host_is_made_gets_one(rack: Rack) -> None:
    key = await rack.host(annotations={Annotation.INSPECT: ""})
    await rack.until(key, lambda host: host.state == "available" and not asks(host))
    orders = rack.backend.machines[key].orders
    assert "inspect" in orders
    assert "inspect anew" not in orders
