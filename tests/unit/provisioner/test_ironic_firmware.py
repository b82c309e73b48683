"""Reading firmware through the Ironic back end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic
from ironic_orders import NODE

from ingot.api.firmwareschema import SettingSchema
from ingot.provisioner import Component, FirmwareReport, HostRef, NotRegistered, Ready

NOTHING_SAID = {
    "allowable_values": None,
    "lower_bound": None,
    "max_length": None,
    "min_length": None,
    "read_only": None,
    "reset_required": None,
    "unique": None,
    "upper_bound": None,
    "links": [],
}


@pytest.fixture
def known(ironic: FakeIronic, host: HostRef) -> HostRef:
    return replace(host, backend_id=ironic.add_node(NODE)["uuid"])


@pytest.mark.parametrize(
    ("kind", "kept", "told"),
    [("Boolean", "1", "true"), ("Boolean", "0", "false"), ("Integer", "1", "1"), ("Boolean", None, "")],
)
async def test_what_is_true_or_false_is_told_as_a_user_writes_it(backend, ironic, known, kind, kept, told):
    ironic.bios[known.backend_id] = [
        NOTHING_SAID | {"name": "QuietBoot", "value": kept, "attribute_type": kind}
    ]
    found = await backend.firmware_settings(known)
    assert found.value.settings == {"QuietBoot": told}


async def test_settings_come_with_what_they_can_be_and_who_made_the_machine(backend, ironic, known):
    ironic.bios[known.backend_id] = [
        NOTHING_SAID
        | {
            "name": "Turbo",
            "value": "Enabled",
            "attribute_type": "Enumeration",
            "allowable_values": ["Enabled", "Disabled"],
            "read_only": False,
        },
        NOTHING_SAID
        | {
            "name": "Delay",
            "value": "7",
            "attribute_type": "Integer",
            "lower_bound": 0,
            "upper_bound": 9,
            "unique": True,
        },
        NOTHING_SAID | {"name": "Tag", "value": None, "attribute_type": "Invented", "max_length": 16},
    ]
    maker = {"manufacturer": "Acme", "product_name": "Anvil 9"}
    ironic.was_inspected(known.backend_id, {"system_vendor": maker})
    assert await backend.firmware_settings(known) == Ready(
        FirmwareReport(
            settings={"Turbo": "Enabled", "Delay": "7", "Tag": ""},
            schema={
                "Turbo": SettingSchema(
                    attribute_type="Enumeration", allowable_values=["Enabled", "Disabled"], read_only=False
                ),
                "Delay": SettingSchema(attribute_type="Integer", lower_bound=0, upper_bound=9, unique=True),
                "Tag": SettingSchema(max_length=16),
            },
            vendor="Acme",
            model="Anvil 9",
        )
    )


async def test_the_value_of_a_password_is_left_out(backend, ironic, known):
    setting = {"name": "SetupPassword", "value": "hunter2", "attribute_type": "Password"}
    ironic.bios[known.backend_id] = [NOTHING_SAID | setting]
    answer = await backend.firmware_settings(known)
    assert isinstance(answer, Ready)
    assert answer.value.settings == {}
    assert "SetupPassword" in answer.value.schema


async def test_components_come_with_their_versions(backend, ironic, known):
    ironic.firmware[known.backend_id] = [
        {
            "component": "bios",
            "initial_version": "1.0",
            "current_version": "1.1",
            "last_version_flashed": "1.1",
        },
        {"component": "bmc", "initial_version": "3.2", "current_version": None, "last_version_flashed": None},
    ]
    assert await backend.firmware_components(known) == Ready(
        (
            Component(name="bios", initial_version="1.0", current_version="1.1", last_version_flashed="1.1"),
            Component(name="bmc", initial_version="3.2"),
        )
    )


async def test_a_machine_that_tells_nothing_has_an_empty_report(backend, ironic, known):
    assert await backend.firmware_settings(known) == Ready(FirmwareReport())
    assert await backend.firmware_components(known) == Ready(())
    assert ironic.asked("inventory") == 0


async def test_a_driver_without_such_an_interface_has_an_empty_report(backend, ironic, known):
    ironic.no_firmware = True
    assert await backend.firmware_settings(known) == Ready(FirmwareReport())
    assert await backend.firmware_components(known) == Ready(())


async def test_a_host_that_ironic_does_not_know_has_to_be_registered(backend, host):
    assert isinstance(await backend.firmware_settings(host), NotRegistered)
    assert isinstance(await backend.firmware_components(host), NotRegistered)
