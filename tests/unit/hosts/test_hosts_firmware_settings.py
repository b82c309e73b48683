"""HostFirmwareSettings and FirmwareSchema beside a host: when they are made, read, judged, written and removed."""

from __future__ import annotations

import asyncio

from firmware_objects import schemas, settings_of, until_settings, verdict, want, writes
from rack import IMAGE, Rack

from ingot.api.core import EVENTS
from ingot.api.firmwareschema import FIRMWARE_SCHEMAS, SettingSchema
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.api.meta import Key
from ingot.provisioner import Busy, Failed


async def test_a_registered_host_has_its_settings_and_their_schema_beside_it(rack: Rack) -> None:
    key = await rack.host()
    host = await rack.until_state(key, "available")
    found = await settings_of(rack, key)
    assert found.present() == {"ProcTurboMode": "Enabled", "QuietBoot": "true"}
    assert found.status.last_updated is not None
    (owner,) = found.metadata.owner_references
    assert (owner.uid, owner.controller) == (host.metadata.uid, None)
    for kind, status in (("ChangeDetected", "False"), ("Valid", "True")):
        condition = verdict(found.status.conditions, kind)
        assert (condition.status, condition.reason) == (status, "Success")
        assert condition.observed_generation == found.metadata.generation
    assert found.status.schema is not None
    assert found.status.schema.namespace == rack.namespace
    schema = await rack.client.get(FIRMWARE_SCHEMAS, Key(rack.namespace, found.status.schema.name))
    assert schema.spec.schema["ProcTurboMode"].allowable_values == ["Enabled", "Disabled"]
    assert schema.spec.hardware_vendor == "Acme"
    assert not schema.metadata.owner_references


async def test_a_new_host_costs_two_writes_of_its_settings_and_one_of_the_schema(rack: Rack) -> None:
    since = await rack.client.latest_version(HOST_FIRMWARE_SETTINGS)
    key = await rack.host()
    await rack.until(key, lambda host: host.status.powered_on)
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert len(await writes(rack, HOST_FIRMWARE_SETTINGS, since)) == 2
    assert len(await writes(rack, FIRMWARE_SCHEMAS, since)) == 1


async def test_settings_that_a_user_made_first_are_taken_over_and_applied(rack: Rack) -> None:
    body = {"metadata": {"name": "h1"}, "spec": {"settings": {"ProcTurboMode": "Disabled"}}}
    await rack.client.create(HOST_FIRMWARE_SETTINGS, body, namespace=rack.namespace)
    key = await rack.host()
    host = await rack.until_state(key, "available")
    found = await settings_of(rack, key)
    assert found.metadata.owner_references[0].uid == host.metadata.uid
    assert found.present()["ProcTurboMode"] == "Disabled"
    assert verdict(found.status.conditions, "ChangeDetected").status == "False"
    assert rack.backend.machines[key].settings["ProcTurboMode"] == "Disabled"


async def test_passwords_are_neither_shown_nor_set(rack: Rack) -> None:
    machine = rack.backend.machines[Key(rack.namespace, "h1")]
    machine.settings |= {"AdminPassword": "hunter2", "SetupKey": "hunter3"}
    machine.schema |= {
        "AdminPassword": SettingSchema(attribute_type="Password"),
        "SetupKey": SettingSchema(attribute_type="Password"),
    }
    key = await rack.host()
    await rack.until_state(key, "available")
    assert set((await settings_of(rack, key)).present()) == {"ProcTurboMode", "QuietBoot"}
    (schema,) = await schemas(rack)
    assert set(schema.spec.schema) == {"ProcTurboMode", "QuietBoot"}


async def test_a_setting_that_is_not_possible_is_told_once_and_changes_nothing(rack: Rack) -> None:
    # Made before the firmware is known, so that no rule of the API can refuse it.
    body = {"metadata": {"name": "h1"}, "spec": {"settings": {"ProcTurboMode": "Sometimes", "Warp": 9}}}
    await rack.client.create(HOST_FIRMWARE_SETTINGS, body, namespace=rack.namespace)
    key = await rack.host()
    await rack.until_state(key, "available")
    found = await settings_of(rack, key)
    valid = verdict(found.status.conditions, "Valid")
    assert (valid.status, valid.reason) == ("False", "ConfigurationError")
    assert "setting ProcTurboMode: 'Sometimes' is not one of 'Enabled', 'Disabled'." in valid.message
    assert "setting Warp: the firmware of this host has no such setting" in valid.message
    assert verdict(found.status.conditions, "ChangeDetected").status == "True"
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    told = [
        event
        for event in (await rack.client.list(EVENTS, namespace=rack.namespace)).items
        if event.reason == "ValidationFailed"
    ]
    assert [(event.type, event.count) for event in told] == [("Warning", 1)]
    assert told[0].message.startswith("Invalid BIOS setting: setting ProcTurboMode")
    assert told[0].involved_object.kind == "HostFirmwareSettings"
    assert told[0].source.component == "metal3-hostfirmwaresettings-controller"
    assert told[0].reporting_component == "metal3.io/hostfirmwaresettings-controller"
    assert "prepare" not in rack.backend.machines[key].orders


async def test_a_host_without_firmware_settings_says_so_and_names_no_schema(rack: Rack) -> None:
    machine = rack.backend.machines[Key(rack.namespace, "h1")]
    machine.settings, machine.schema = {}, {}
    key = await rack.host()
    await rack.until_state(key, "available")
    found = await settings_of(rack, key)
    assert found.present() == {}
    assert found.status.schema is None
    assert verdict(found.status.conditions, "Valid").status == "True"
    assert await schemas(rack) == []


async def test_a_host_does_not_become_available_before_its_firmware_was_read(rack: Rack) -> None:
    rack.backend.hold("firmware_settings", Busy("asking the BMC"))
    key = await rack.host()
    host = await rack.until_state(key, "preparing")
    assert "firmware" in rack.sentence(host)
    await rack.settle()
    assert (await rack.get(key)).state == "preparing"
    rack.backend.let_go("firmware_settings")
    rack.backend.tell(key)
    await rack.until_state(key, "available")
    assert (await settings_of(rack, key)).present()


async def test_the_firmware_is_read_after_an_inspection_and_not_in_between(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("looking"))
    key = await rack.host()
    await rack.until_state(key, "inspecting")
    await until_settings(rack, key, lambda found: not found.present())
    rack.backend.machines[key].settings["QuietBoot"] = "false"
    rack.backend.tell(key)
    await rack.settle()
    assert not (await settings_of(rack, key)).present()
    rack.backend.let_go("inspect")
    rack.backend.tell(key)
    await rack.until_state(key, "available")
    assert (await settings_of(rack, key)).present()["QuietBoot"] == "false"


async def test_the_firmware_of_a_machine_whose_inspection_fails_is_shown(rack: Rack) -> None:
    rack.backend.hold("inspect", Failed("no disks found"))
    key = await rack.host()
    await rack.until_error(key, "no disks found")
    await rack.change(key, {"online": False})
    await until_settings(rack, key, lambda found: bool(found.present()))


async def test_a_new_record_of_the_machine_is_a_reason_to_read_its_firmware(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    machine = rack.backend.machines[key]
    machine.settings["QuietBoot"] = "false"
    rack.backend.rename(key, "another-id")
    rack.backend.tell(key)
    await until_settings(rack, key, lambda found: found.present()["QuietBoot"] == "false")
    assert (await rack.get(key)).state == "provisioned"


async def test_a_wish_for_a_host_in_use_is_judged_and_waits(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await want(rack, key, {"ProcTurboMode": "Disabled"})
    found = await until_settings(
        rack, key, lambda found: verdict(found.status.conditions, "ChangeDetected").status == "True"
    )
    assert verdict(found.status.conditions, "Valid").status == "True"
    await rack.settle()
    assert (await rack.get(key)).state == "provisioned"
    assert "prepare" not in rack.backend.machines[key].orders


async def test_settings_that_somebody_deleted_are_made_again(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    old = await settings_of(rack, key)
    await rack.client.delete(HOST_FIRMWARE_SETTINGS, key)
    found = await until_settings(rack, key, lambda found: found.metadata.uid != old.metadata.uid)
    found = await until_settings(rack, key, lambda found: bool(found.present()))
    assert found.status.schema == old.status.schema


async def test_the_policy_for_updates_goes_with_its_host(rack: Rack) -> None:
    body = {"metadata": {"name": "h1"}, "spec": {"firmwareSettings": "onReboot"}}
    await rack.client.create(HOST_UPDATE_POLICIES, body, namespace=rack.namespace)
    key = await rack.host()
    host = await rack.until_state(key, "available")
    (owner,) = (await rack.client.get(HOST_UPDATE_POLICIES, key)).metadata.owner_references
    assert owner.uid == host.metadata.uid


# The schema


async def test_many_hosts_with_the_same_firmware_share_one_schema_that_is_written_once(rack: Rack) -> None:
    keys = await asyncio.gather(*(rack.host(f"h{number}") for number in range(12)))
    for key in keys:
        await rack.until_state(key, "available")
    (schema,) = await schemas(rack)
    named = {(await settings_of(rack, key)).status.schema for key in keys}
    assert {found.name for found in named if found is not None} == {schema.metadata.name}
    assert schema.metadata.generation == 1
    assert not schema.metadata.owner_references


async def test_a_schema_goes_with_the_last_settings_that_name_it(rack: Rack) -> None:
    one, two = await rack.host("h1"), await rack.host("h2")
    for key in (one, two):
        await rack.until_state(key, "available")
    await rack.delete(one)
    await rack.until_gone(one)
    await rack.settle()
    assert len(await schemas(rack)) == 1
    await rack.delete(two)
    await rack.until_gone(two)
    await _until_no_schema(rack)


async def test_a_schema_that_was_left_while_no_operator_ran_is_removed(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    await rack.operator.end()
    machine = rack.backend.machines[key]
    machine.schema = {"QuietBoot": machine.schema["QuietBoot"]}
    (old,) = await schemas(rack)
    await rack.client.patch(
        HOST_FIRMWARE_SETTINGS, key, {"status": {"schema": None, "conditions": []}}, subresource="status"
    )
    await rack.operator.start()
    await until_settings(rack, key, lambda found: found.status.schema is not None)
    rack.backend.tell(key)

    async def another_took_its_place() -> bool:
        left = [schema.metadata.name for schema in await schemas(rack)]
        return left != [old.metadata.name] and len(left) == 1

    await rack.until_true(another_took_its_place, lambda: "the schemas are not the ones that are used")


async def test_a_schema_that_somebody_else_made_is_used_and_not_removed(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    (schema,) = await schemas(rack)
    foreign = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "somebody"}}}
    await rack.client.patch(FIRMWARE_SCHEMAS, schema.key, foreign)
    await rack.delete(key)
    await rack.until_gone(key)
    await rack.until_missing(HOST_FIRMWARE_SETTINGS, key)
    await rack.settle()
    assert len(await schemas(rack)) == 1


async def test_a_schema_that_somebody_removed_is_made_again(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    (old,) = await schemas(rack)
    await rack.client.delete(FIRMWARE_SCHEMAS, old.key)
    new = await rack.until_object(
        FIRMWARE_SCHEMAS, old.key, lambda found: found.metadata.uid != old.metadata.uid
    )
    assert new.spec == old.spec


async def _until_no_schema(rack: Rack) -> None:
    async def is_gone() -> bool:
        return not await schemas(rack)

    await rack.until_true(is_gone, lambda: "the schema stays although nobody names it")
