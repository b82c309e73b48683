"""Preparing: RAID volumes, firmware settings and updates before a host becomes available."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from firmware_objects import (
    components_of,
    settings_of,
    until_components,
    until_settings,
    verdict,
    want,
    want_updates,
    writes,
)
from rack import IMAGE, Rack

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, ErrorType, Image
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS, FirmwareUpdate
from ingot.api.meta import Key, now
from ingot.provisioner import Busy, Component, Failed

MIRROR = {"hardwareRAIDVolumes": [{"level": "1", "name": "root"}]}
SOFT = {"softwareRAIDVolumes": [{"level": "1"}, {"level": "0"}]}
BIOS_2 = "https://firmware.example/bios-2"
BMC_2 = "https://firmware.example/bmc-2"


async def available(rack: Rack, **spec: Any) -> Key:
    key = await rack.host(**spec)
    await rack.until_well(key, "available")
    return key


def components(rack: Rack, name: str = "h1") -> None:
    machine = rack.backend.machines[Key(rack.namespace, name)]
    for part in ("bios", "bmc"):
        machine.components[part] = Component(name=part, initial_version="1.0", current_version="1.0")


def prepared(rack: Rack, key: Key) -> int:
    return rack.backend.machines[key].orders.count("prepare")


# Nothing to do


async def test_a_host_that_asks_for_nothing_costs_the_back_end_no_call(rack: Rack) -> None:
    rack.backend.hold("prepare", Failed("nobody should have asked"))
    await available(rack)


async def test_nothing_is_done_twice_by_edits_that_have_nothing_to_do_with_it(rack: Rack) -> None:
    key = await available(rack, raid=MIRROR)
    await rack.change(key, {"description": "somebody was here"})
    await rack.settle()
    assert prepared(rack, key) == 1


# RAID


async def test_raid_volumes_are_made_and_noted(rack: Rack) -> None:
    key = await available(rack, raid=MIRROR)
    made = rack.backend.machines[key].raid
    assert made is not None
    assert made.hardware_raid_volumes is not None
    assert made.hardware_raid_volumes[0].name == "root"
    assert made.software_raid_volumes is None
    assert (await rack.get(key)).status.provisioning.raid == made


async def test_raid_that_is_asked_for_later_leads_back_through_preparing(rack: Rack) -> None:
    key = await available(rack)
    rack.backend.slow.add("prepare")
    await rack.change(key, {"raid": MIRROR})
    host = await rack.until_state(key, "preparing")
    assert rack.backend.machines[key].raid is None
    host = await rack.until(key, lambda host: host.status.provisioning.raid is not None)
    assert rack.sentence(host) == "cleaning"
    rack.backend.finish(key)
    await rack.until_well(key, "available")
    assert prepared(rack, key) == 1


async def test_null_leaves_the_volumes_of_the_controller_alone_and_an_empty_list_removes_them(
    rack: Rack,
) -> None:
    key = await available(rack, raid=MIRROR)
    await rack.change(key, {"raid": None})
    await rack.settle()
    assert prepared(rack, key) == 1
    assert (await rack.get(key)).status.provisioning.raid is not None
    await rack.change(key, {"raid": {"hardwareRAIDVolumes": []}})
    await rack.until(key, lambda host: prepared(rack, key) == 2 and host.state == "available")
    made = rack.backend.machines[key].raid
    assert made is not None
    assert made.hardware_raid_volumes == []


async def test_software_volumes_are_made_anew_after_the_disks_were_cleaned(rack: Rack) -> None:
    key = await rack.host(raid=SOFT, image=IMAGE)
    await rack.until_well(key, "provisioned")
    assert prepared(rack, key) == 1
    await rack.change(key, {"image": None})
    await rack.until(key, lambda host: prepared(rack, key) == 2 and host.state == "available")


async def test_hardware_volumes_outlive_the_image(rack: Rack) -> None:
    key = await rack.host(raid=MIRROR, image=IMAGE)
    await rack.until_well(key, "provisioned")
    await rack.change(key, {"image": None})
    host = await rack.until_well(key, "available")
    assert host.status.provisioning.raid is not None
    assert prepared(rack, key) == 1


async def test_software_volumes_that_nobody_wants_any_more_are_removed(rack: Rack) -> None:
    key = await available(rack, raid=SOFT)
    await rack.change(key, {"raid": None})
    host = await rack.until(key, lambda host: prepared(rack, key) == 2 and host.state == "available")
    made = rack.backend.machines[key].raid
    assert made is not None
    assert made.software_raid_volumes == []
    assert host.status.provisioning.raid is None


async def test_the_system_goes_where_the_software_volumes_say_and_not_where_a_profile_guesses(
    rack: Rack,
) -> None:
    key = await rack.host(raid=SOFT, image=IMAGE)
    await rack.until_well(key, "provisioned")
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    assert deployed.root_device is None


async def test_hints_that_changed_since_the_host_was_prepared_count(rack: Rack) -> None:
    key = await available(rack)
    await rack.change(key, {"rootDeviceHints": {"deviceName": "/dev/nvme0n1"}})
    await rack.settle()
    assert prepared(rack, key) == 0
    await rack.change(key, {"image": IMAGE})
    host = await rack.until_well(key, "provisioned")
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    assert deployed.root_device is not None
    assert deployed.root_device.device_name == "/dev/nvme0n1"
    assert host.status.provisioning.root_device_hints == deployed.root_device


# Firmware settings


async def test_settings_are_applied_to_an_available_host_and_read_back(rack: Rack) -> None:
    key = await available(rack)
    await want(rack, key, {"ProcTurboMode": "Disabled", "QuietBoot": "true"})
    found = await until_settings(rack, key, lambda found: found.present()["ProcTurboMode"] == "Disabled")
    assert verdict(found.status.conditions, "ChangeDetected").status == "False"
    await rack.until_well(key, "available")
    assert prepared(rack, key) == 1
    assert rack.backend.machines[key].settings == {"ProcTurboMode": "Disabled", "QuietBoot": "true"}


async def test_the_same_wish_later_is_another_order(rack: Rack) -> None:
    key = await available(rack)
    for times, value in enumerate(("Disabled", "Enabled", "Disabled"), start=1):
        await want(rack, key, {"ProcTurboMode": value})
        await until_settings(rack, key, lambda found, value=value: found.present()["ProcTurboMode"] == value)
        await rack.until_well(key, "available")
        assert prepared(rack, key) == times


async def test_settings_that_the_firmware_takes_and_does_not_keep_are_an_error_and_no_loop(
    rack: Rack,
) -> None:
    key = await available(rack)
    rack.backend.machines[key].deaf = True
    await want(rack, key, {"ProcTurboMode": "Disabled"})
    host = await rack.until_error(key, "does not show them")
    assert "ProcTurboMode (wanted Disabled, is Enabled)" in host.status.error_message
    assert (host.state, host.status.error_type) == ("preparing", ErrorType.PREPARATION)
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).status.error_count == 1
    assert prepared(rack, key) == 1
    await want(rack, key, {"ProcTurboMode": None})
    await rack.until_well(key, "available")


async def test_settings_that_were_not_kept_are_set_again_when_it_is_tried_again(rack: Rack) -> None:
    key = await available(rack)
    machine = rack.backend.machines[key]
    machine.deaf = True
    await want(rack, key, {"ProcTurboMode": "Disabled"})
    await rack.until_error(key, "does not show them")
    machine.deaf = False
    await rack.annotate(key, Annotation.RETRY)
    await rack.until_well(key, "available")
    assert machine.settings["ProcTurboMode"] == "Disabled"
    assert prepared(rack, key) == 2


# Firmware updates


async def test_a_machine_that_tells_its_components_gets_an_object_for_them(rack: Rack) -> None:
    components(rack)
    key = await available(rack)
    found = await components_of(rack, key)
    assert [(part.component, part.initial_version) for part in found.status.components] == [
        ("bios", "1.0"),
        ("bmc", "1.0"),
    ]
    assert found.metadata.owner_references[0].uid == (await rack.get(key)).metadata.uid
    for kind, status in (("ChangeDetected", "False"), ("Valid", "True")):
        condition = verdict(found.status.conditions, kind)
        assert (condition.status, condition.reason) == (status, "OK")
        assert condition.observed_generation == found.metadata.generation


async def test_only_updates_that_were_not_begun_are_ordered(rack: Rack) -> None:
    components(rack)
    key = await available(rack)
    await want_updates(rack, key, ("bios", BIOS_2))
    found = await until_components(
        rack, key, lambda found: found.status.updates == [FirmwareUpdate(component="bios", url=BIOS_2)]
    )
    await rack.until_well(key, "available")
    await want_updates(rack, key, ("bios", BIOS_2), ("bmc", BMC_2))
    found = await until_components(
        rack,
        key,
        lambda found: [part.current_version for part in found.status.components] == ["bios-2", "bmc-2"],
    )
    assert rack.backend.machines[key].flashed == [BIOS_2, BMC_2]
    assert len(found.status.updates) == 2
    assert verdict(found.status.conditions, "ChangeDetected").status == "False"
    assert all(part.updated_at is not None for part in found.status.components)


async def test_an_edit_at_the_moment_when_an_update_is_begun_does_not_have_it_done_twice(rack: Rack) -> None:
    components(rack)
    key = await available(rack)
    added: list[asyncio.Task[None]] = []

    def edit() -> None:
        edited = want_updates(rack, key, ("bios", BIOS_2), ("bmc", BMC_2))
        added.append(asyncio.create_task(edited))

    rack.backend.slow.add("prepare")
    rack.backend.when_begun = edit
    await want_updates(rack, key, ("bios", BIOS_2))
    await until_components(rack, key, lambda found: bool(found.status.updates))
    await asyncio.gather(*added)
    rack.backend.slow.clear()
    rack.backend.finish(key)
    await until_components(rack, key, lambda found: len(found.status.updates) == 2)
    await rack.until_well(key, "available")
    assert rack.backend.machines[key].flashed == [BIOS_2, BMC_2]


async def test_a_setting_that_is_added_meanwhile_is_set_too_and_what_was_set_is_not_repeated(
    rack: Rack,
) -> None:
    key = await available(rack)
    machine = rack.backend.machines[key]
    rack.backend.slow.add("prepare")
    await want(rack, key, {"ProcTurboMode": "Disabled"})
    await rack.until(key, lambda host: Rack.sentence(host) == "cleaning")
    await want(rack, key, {"ProcTurboMode": "Disabled", "QuietBoot": "false"})
    await rack.settle()
    rack.backend.finish(key)
    await rack.settle()
    assert machine.preparation is not None
    assert dict(machine.preparation.firmware.settings) == {"QuietBoot": "false"}
    rack.backend.slow.clear()
    rack.backend.finish(key)
    await rack.until_well(key, "available")
    assert machine.settings == {"ProcTurboMode": "Disabled", "QuietBoot": "false"}


async def test_updates_that_are_not_wanted_any_more_are_just_not_spoken_of(rack: Rack) -> None:
    components(rack)
    key = await available(rack)
    await want_updates(rack, key, ("bios", BIOS_2))
    await until_components(rack, key, lambda found: bool(found.status.updates))
    await rack.until_well(key, "available")
    await want_updates(rack, key)
    found = await until_components(rack, key, lambda found: not found.status.updates)
    assert verdict(found.status.conditions, "ChangeDetected").status == "False"
    await rack.settle()
    assert rack.backend.machines[key].flashed == [BIOS_2]
    await want_updates(rack, key, ("bios", BIOS_2))
    await until_components(rack, key, lambda found: bool(found.status.updates))
    await rack.until_well(key, "available")
    assert rack.backend.machines[key].flashed == [BIOS_2, BIOS_2]


async def test_an_update_that_failed_is_begun_again(rack: Rack) -> None:
    components(rack)
    key = await available(rack)
    rack.backend.slow.add("prepare")
    await want_updates(rack, key, ("bios", BIOS_2))
    await until_components(rack, key, lambda found: bool(found.status.updates))
    rack.backend.break_off(key, "the flash is worn out")
    host = await rack.until_error(key, "worn out")
    assert host.status.error_type == ErrorType.PREPARATION
    found = await components_of(rack, key)
    assert found.status.updates == []
    assert verdict(found.status.conditions, "ChangeDetected").status == "True"
    rack.backend.slow.clear()
    await rack.change(key, {"description": "somebody looked at it"})
    await rack.until_well(key, "available")
    assert rack.backend.machines[key].flashed == [BIOS_2]


async def test_a_failure_of_something_else_does_not_flash_firmware_that_was_flashed(rack: Rack) -> None:
    components(rack)
    key = await available(rack)
    await want_updates(rack, key, ("bios", BIOS_2))
    await until_components(rack, key, lambda found: bool(found.status.updates))
    await rack.until_well(key, "available")
    noted = verdict((await components_of(rack, key)).status.conditions, "ChangeDetected")
    await rack.until(key, lambda _: now() > noted.last_transition_time)
    rack.backend.script("prepare", Failed("no such controller"))
    await rack.change(key, {"raid": MIRROR})
    await rack.until_error(key, "no such controller")
    await rack.change(key, {"raid": None})
    await rack.until_well(key, "available")
    assert rack.backend.machines[key].flashed == [BIOS_2]


async def test_an_update_that_fails_before_it_was_begun_does_not_flash_what_was_flashed_before(
    rack: Rack,
) -> None:
    components(rack)
    key = await available(rack)
    await want_updates(rack, key, ("bios", BIOS_2))
    await until_components(rack, key, lambda found: bool(found.status.updates))
    await rack.until_well(key, "available")
    rack.backend.script("prepare", Failed("the BMC does not answer"))
    await want_updates(rack, key, ("bios", BIOS_2), ("bmc", BMC_2))
    await rack.until_error(key, "the BMC does not answer")
    await rack.change(key, {"description": "it does now"})
    await rack.until_well(key, "available")
    assert rack.backend.machines[key].flashed == [BIOS_2, BMC_2]


async def test_components_that_a_user_made_first_are_taken_over_and_updated(rack: Rack) -> None:
    components(rack)
    body = {"metadata": {"name": "h1"}, "spec": {"updates": [{"component": "bios", "url": BIOS_2}]}}
    await rack.client.create(HOST_FIRMWARE_COMPONENTS, body, namespace=rack.namespace)
    key = await available(rack)
    found = await components_of(rack, key)
    assert found.metadata.owner_references
    assert verdict(found.status.conditions, "Valid").status == "True"
    assert rack.backend.machines[key].flashed == [BIOS_2]


# Failing, going, being interrupted


async def test_a_failed_preparation_is_an_error_and_its_volumes_are_made_anew(rack: Rack) -> None:
    rack.backend.script("prepare", Failed("disk 0 is missing"))
    key = await rack.host(raid=MIRROR)
    host = await rack.until_error(key, "disk 0 is missing")
    assert (host.state, host.status.error_type) == ("preparing", ErrorType.PREPARATION)
    assert host.status.provisioning.raid is None
    await rack.settle()
    assert "PreparationError" in await rack.event_reasons()
    await rack.change(key, {"description": "the disk is back"})
    await rack.until_well(key, "available")
    assert prepared(rack, key) == 1


async def test_a_host_can_be_deleted_while_it_is_prepared(rack: Rack) -> None:
    rack.backend.slow.add("prepare")
    key = await rack.host(raid=MIRROR)
    await rack.until(key, lambda host: rack.sentence(host) == "cleaning")
    await rack.delete(key)
    await rack.until_gone(key)
    assert not rack.backend.machines[key].known


async def test_a_host_that_failed_to_be_prepared_can_be_deleted(rack: Rack) -> None:
    rack.backend.hold("prepare", Failed("disk 0 is missing"))
    key = await rack.host(raid=MIRROR)
    await rack.until_error(key, "disk 0 is missing")
    await rack.delete(key)
    await rack.until_gone(key)


@pytest.mark.parametrize("noted", [True, False], ids=["after it was noted", "before it could be noted"])
async def test_an_operator_that_is_started_in_the_middle_does_nothing_twice_and_loses_nothing(
    rack: Rack, noted: bool
) -> None:
    components(rack)
    key = await available(rack)
    await rack.operator.end()
    await rack.change(key, {"raid": SOFT})
    await want(rack, key, {"ProcTurboMode": "Disabled"})
    await want_updates(rack, key, ("bios", BIOS_2))
    rack.backend.slow.add("prepare")
    rack.backend.when_begun = None if noted else rack.operator.kill
    await rack.operator.start()
    if noted:
        await rack.until(key, lambda host: host.status.provisioning.raid is not None)
        await until_components(rack, key, lambda found: bool(found.status.updates))
    else:
        await rack.until(key, lambda _: prepared(rack, key) == 1)
    await rack.operator.restart()
    rack.backend.tell(key)
    await rack.settle()
    assert (await rack.get(key)).state == "preparing"
    rack.backend.finish(key)
    host = await rack.until_well(key, "available")
    machine = rack.backend.machines[key]
    assert prepared(rack, key) == 1
    assert machine.flashed == [BIOS_2]
    assert machine.settings["ProcTurboMode"] == "Disabled"
    assert host.status.provisioning.raid == machine.raid
    assert (await settings_of(rack, key)).present()["ProcTurboMode"] == "Disabled"
    assert len((await components_of(rack, key)).status.updates) == 1


async def test_a_wish_that_changes_in_the_middle_is_carried_out_after_the_first(rack: Rack) -> None:
    key = await available(rack)
    rack.backend.slow.add("prepare")
    await rack.change(key, {"raid": MIRROR})
    await rack.until(key, lambda host: host.status.provisioning.raid is not None)
    await rack.change(key, {"raid": {"hardwareRAIDVolumes": [{"level": "0"}]}})
    await rack.settle()
    applied = (await rack.get(key)).status.provisioning.raid
    assert applied is not None
    assert applied.hardware_raid_volumes is not None
    assert applied.hardware_raid_volumes[0].level == "1", "what is not begun is not noted"
    rack.backend.slow.clear()
    rack.backend.finish(key)
    await rack.until_well(key, "available")
    made = rack.backend.machines[key].raid
    assert made is not None
    assert made.hardware_raid_volumes is not None
    assert made.hardware_raid_volumes[0].level == "0"
    assert prepared(rack, key) == 2


async def test_a_host_does_not_leave_while_something_nobody_wants_any_more_goes_on(rack: Rack) -> None:
    key = await available(rack)
    rack.backend.slow.add("prepare")
    await want(rack, key, {"ProcTurboMode": "Disabled"})
    await rack.until(key, lambda host: rack.sentence(host) == "cleaning")
    await want(rack, key, {"ProcTurboMode": None})
    await rack.settle()
    assert (await rack.get(key)).state == "preparing"
    rack.backend.finish(key)
    await rack.until_well(key, "available")
    assert (await settings_of(rack, key)).present()["ProcTurboMode"] == "Disabled"


async def test_a_new_record_of_the_machine_means_that_it_is_prepared_anew(rack: Rack) -> None:
    rack.backend.slow.add("prepare")
    key = await rack.host(raid=MIRROR)
    await rack.until(key, lambda host: host.status.provisioning.raid is not None)
    rack.backend.slow.clear()
    rack.backend.rename(key, "another-id")
    host = await rack.until_well(key, "available")
    assert prepared(rack, key) == 2
    assert host.status.provisioning.raid is not None


async def test_what_is_refused_by_the_guard_is_not_noted_as_done(rack: Rack) -> None:
    key = await available(rack)
    machine = rack.backend.machines[key]
    machine.instance = Image(url=IMAGE["url"])
    await rack.change(key, {"raid": MIRROR})
    host = await rack.until_state(key, "preparing")
    await rack.settle()
    host = await rack.get(key)
    assert host.status.provisioning.raid is None
    assert "operating system is installed" in rack.sentence(host)
    assert prepared(rack, key) == 0


async def test_preparing_costs_few_writes(rack: Rack) -> None:
    key = await available(rack)
    await rack.settle()
    rack.backend.slow.add("prepare")
    since = await rack.client.latest_version(BARE_METAL_HOSTS)
    await rack.change(key, {"raid": MIRROR})
    await rack.until(key, lambda host: rack.sentence(host) == "cleaning")
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    rack.backend.finish(key)
    await rack.until_well(key, "available")
    await rack.settle()
    # The user's; that preparing starts; that it was taken; that it is done.
    assert len(await writes(rack, BARE_METAL_HOSTS, since)) == 4


async def test_a_back_end_that_does_not_say_when_it_began_is_believed_when_it_is_done(rack: Rack) -> None:
    key = await available(rack)
    rack.backend.hold("prepare", Busy("cleaning, perhaps"))
    await rack.change(key, {"raid": MIRROR})
    await rack.until(key, lambda host: rack.sentence(host) == "cleaning, perhaps")
    assert (await rack.get(key)).status.provisioning.raid is None
    rack.backend.let_go("prepare")
    rack.backend.tell(key)
    host = await rack.until_well(key, "available")
    assert host.status.provisioning.raid is not None
