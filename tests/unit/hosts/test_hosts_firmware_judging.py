"""What is thought of a wish for the firmware, in tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ingot.api.firmwareschema import SettingSchema
from ingot.api.hostfirmwarecomponents import HostFirmwareComponents
from ingot.api.hostfirmwaresettings import HostFirmwareSettings
from ingot.api.meta import Condition
from ingot.hosts.beside.firmware.judging import (
    components_conditions,
    has_newly_failed,
    has_work,
    is_judged,
    settings_conditions,
    settings_that_differ,
    updates_that_differ,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)
PRESENT = {"Turbo": "On", "Cores": "4", "Serial": "X1"}
SCHEMA = {
    "Turbo": SettingSchema(attribute_type="Enumeration", allowable_values=["On", "Off"]),
    "Cores": SettingSchema(attribute_type="Integer", upper_bound=8),
    "Serial": SettingSchema(attribute_type="String", read_only=True),
}
BIOS = {"component": "bios", "url": "https://firmware.example/bios-2"}
BMC = {"component": "bmc", "url": "https://firmware.example/bmc-2"}


def settings(wanted: dict[str, Any], *, conditions: list[Condition] | None = None) -> HostFirmwareSettings:
    document = {
        "metadata": {"name": "h1", "namespace": "rack", "generation": 3},
        "spec": {"settings": wanted},
        "status": {"settings": PRESENT, "conditions": msgspec.to_builtins(conditions or [])},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=HostFirmwareSettings)


def components(wanted: list[Any], begun: list[Any]) -> HostFirmwareComponents:
    document = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "HostFirmwareComponents",
        "metadata": {"name": "h1", "namespace": "rack", "generation": 3},
        "spec": {"updates": wanted},
        "status": {"updates": begun},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=HostFirmwareComponents)


def judged(found: HostFirmwareSettings, at: datetime = AT) -> list[Condition]:
    return settings_conditions(found, present=PRESENT, schema=SCHEMA, at=at)


@pytest.mark.parametrize(
    ("wanted", "differ", "valid"),
    [
        ({}, {}, True),
        ({"Turbo": "On"}, {}, True),
        ({"Cores": 4}, {}, True),
        ({"Cores": "4"}, {}, True),
        ({"Turbo": "Off", "Cores": 4}, {"Turbo": "Off"}, True),
        ({"Cores": 8}, {"Cores": "8"}, True),
        ({"Cores": 9}, {"Cores": "9"}, False),
        ({"Turbo": "Maybe"}, {"Turbo": "Maybe"}, False),
        ({"Unheard": "x"}, {"Unheard": "x"}, False),
        ({"Serial": "X2"}, {"Serial": "X2"}, False),
        ({"Serial": "X1"}, {}, True),
    ],
)
def test_what_is_wanted_is_compared_as_text_and_judged_by_the_schema(
    wanted: dict[str, Any], differ: dict[str, str], valid: bool
) -> None:
    found = settings(wanted)
    changed, allowed = judged(found)
    assert settings_that_differ(found, PRESENT) == differ
    assert (changed.type, changed.status, changed.reason) == ("ChangeDetected", str(bool(differ)), "Success")
    assert (allowed.type, allowed.status) == ("Valid", str(valid))
    assert allowed.reason == ("Success" if valid else "ConfigurationError")
    assert bool(allowed.message) is not valid
    assert {changed.observed_generation, allowed.observed_generation} == {3}
    assert is_judged(found, [changed, allowed])
    assert has_work(found, [changed, allowed]) is (valid and bool(differ))


def test_a_condition_keeps_the_time_since_when_it_holds() -> None:
    first = judged(settings({"Turbo": "Off"}))
    again = judged(settings({"Turbo": "Off", "Cores": 2}, conditions=first), LATER)
    assert {found.last_transition_time for found in again} == {AT}
    other = judged(settings({}, conditions=again), LATER)
    assert [found.last_transition_time for found in other] == [LATER, AT]


def test_a_failure_is_new_when_the_wish_is() -> None:
    failed = judged(settings({"Turbo": "Maybe"}))
    assert has_newly_failed([], failed)
    assert not has_newly_failed(failed, failed)
    assert has_newly_failed(failed, judged(settings({"Turbo": "Never"}, conditions=failed)))
    assert not has_newly_failed([], judged(settings({"Turbo": "Off"})))


def test_a_wish_that_is_wrong_in_hundreds_of_ways_is_told_in_a_message_that_an_api_takes() -> None:
    _, valid = judged(settings({f"Setting{number}": "x" for number in range(500)}))
    assert valid.status == "False"
    assert len(valid.message) == 4096


def test_a_wish_that_was_not_judged_yet_is_no_work() -> None:
    conditions = judged(settings({"Turbo": "Off"}))
    newer = msgspec.structs.replace(
        settings({"Turbo": "Off"}),
        metadata=msgspec.structs.replace(settings({}).metadata, generation=4),
    )
    assert not is_judged(newer, conditions)
    assert not has_work(newer, conditions)
    assert not is_judged(newer, [])


@pytest.mark.parametrize(
    ("wanted", "begun", "order", "changed"),
    [
        ([], [], [], "False"),
        ([BIOS], [], [BIOS], "True"),
        ([BIOS], [BIOS], [], "False"),
        ([BIOS, BMC], [BIOS], [BMC], "True"),
        ([], [BIOS], [], "True"),
    ],
)
def test_updates_that_were_not_begun_are_the_work(
    wanted: list[Any], begun: list[Any], order: list[Any], changed: str
) -> None:
    found = components(wanted, begun)
    assert msgspec.to_builtins(updates_that_differ(found)) == order
    conditions = components_conditions(found, at=AT)
    assert [one.status for one in conditions] == [changed, "True"]
    assert {one.reason for one in conditions} == {"OK"}


@pytest.mark.parametrize(
    "update",
    [
        {"component": "psu", "url": BIOS["url"]},
        {"component": "nic:", "url": BIOS["url"]},
        BIOS | {"url": "x"},
    ],
)
def test_an_update_that_nobody_can_do_is_invalid(update: dict[str, str]) -> None:
    found = components([update], [])
    conditions = components_conditions(found, at=AT)
    assert (conditions[1].status, conditions[1].reason) == ("False", "InvalidComponent")
    assert conditions[1].message
    assert not has_work(found, conditions)
