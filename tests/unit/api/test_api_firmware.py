"""Which firmware settings can be set, and to what."""

from __future__ import annotations

import msgspec
import pytest

from ingot.api.firmwareschema import FirmwareSchemaSpec, SettingSchema, schema_name
from ingot.api.hostfirmwaresettings import HostFirmwareSettings, problems_with_settings

SCHEMA = msgspec.convert(
    {
        "schema": {
            "BootMode": {"attribute_type": "Enumeration", "allowable_values": ["Bios", "Uefi"]},
            "Cores": {"attribute_type": "Integer", "lower_bound": 1, "upper_bound": 64},
            "AssetTag": {"attribute_type": "String", "min_length": 2, "max_length": 5},
            "Sriov": {"attribute_type": "Boolean"},
            "SetupKey": {"attribute_type": "Password"},
            "Model": {"attribute_type": "String", "read_only": True},
            "Odd": {},
        }
    },
    FirmwareSchemaSpec,
).schema
PRESENT = dict.fromkeys([*SCHEMA, "AdminPassword"], "now")


def problems(**wanted: int | str) -> list[str]:
    return list(problems_with_settings(wanted, present=PRESENT, schema=SCHEMA))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BootMode", "Uefi"),
        ("Cores", 1),
        ("Cores", "64"),
        ("AssetTag", "ab"),
        ("AssetTag", "abcde"),
        ("AssetTag", 12),
        ("Sriov", "true"),
        ("Sriov", "false"),
        ("Odd", "whatever"),
    ],
)
def test_a_value_that_the_schema_allows_can_be_set(name: str, value: int | str) -> None:
    assert problems(**{name: value}) == []


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("BootMode", "Legacy", "'Legacy' is not one of 'Bios', 'Uefi'"),
        ("Cores", 0, "0 is less than 1"),
        ("Cores", "65", "65 is more than 64"),
        ("Cores", "many", "'many' is not a whole number"),
        ("Cores", "1_0", "'1_0' is not a whole number"),
        ("AssetTag", "a", "shorter than 2"),
        ("AssetTag", "abcdef", "longer than 5"),
        ("Sriov", "yes", "neither 'true' nor 'false'"),
        ("SetupKey", "hunter2", "passwords cannot be set"),
        ("AdminPassword", "hunter2", "passwords cannot be set"),
        ("Model", "other", "does not allow it to be changed"),
        ("NoSuchThing", "1", "has no such setting"),
    ],
)
def test_a_value_that_cannot_be_set_is_told_with_the_reason(
    name: str, value: int | str, sentence: str
) -> None:
    (problem,) = problems(**{name: value})
    assert problem.startswith(f"setting {name}: ")
    assert sentence in problem
    assert "hunter2" not in problem


def test_a_setting_that_is_in_the_schema_and_not_reported_cannot_be_set() -> None:
    assert list(problems_with_settings({"Sriov": "true"}, present={}, schema=SCHEMA)) != []


def test_every_problem_is_told_at_once() -> None:
    assert len(problems(Cores=0, Sriov="yes", BootMode="Uefi")) == 2


def test_a_setting_can_be_a_number_or_a_string() -> None:
    found = msgspec.json.decode(
        b'{"spec": {"settings": {"Cores": 4, "BootMode": "Uefi"}}}', type=HostFirmwareSettings
    )
    assert found.spec.settings == {"Cores": 4, "BootMode": "Uefi"}


def test_a_schema_has_the_name_that_it_has_elsewhere_in_metal3() -> None:
    """The example and its name are those of the tests of baremetal-operator."""
    text = {"attribute_type": "String", "min_length": 0, "max_length": 20}
    choice = {"attribute_type": "Enumeration", "allowable_values": ["Enabled", "Disabled"]}
    schema = {
        "AssetTag": text | {"unique": True},
        "CustomPostMessage": text | {"unique": False, "read_only": False},
        "L2Cache": text | {"read_only": True},
        "NetworkBootRetryCount": {
            "attribute_type": "Integer",
            "lower_bound": 0,
            "upper_bound": 20,
            "read_only": False,
        },
        "ProcVirtualization": choice | {"read_only": False},
        "SecureBoot": choice | {"read_only": True},
    }
    made = msgspec.convert(schema, dict[str, SettingSchema])
    assert schema_name(made) == "schema-4bcc035f"
    assert schema_name(dict(reversed(made.items()))) == "schema-4bcc035f"
    assert schema_name({"AssetTag": made["AssetTag"]}) != "schema-4bcc035f"


def test_settings_are_kept_undecoded_and_hold_on_to_no_bytes_but_their_own() -> None:
    page = b'{"status": {"settings": {"Cores": "4"}, "x": "' + b"y" * 100_000 + b'"}}'
    kept = msgspec.json.decode(page, type=HostFirmwareSettings).compact()
    assert isinstance(kept.status.settings, msgspec.Raw)
    assert bytes(kept.status.settings) == b'{"Cores": "4"}'
    assert kept.present() == {"Cores": "4"}
    assert HostFirmwareSettings().present() == {}
