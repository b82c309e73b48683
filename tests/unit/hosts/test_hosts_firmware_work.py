"""What work is called: the same while it goes on, another when it is asked for again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ingot.api.hostfirmwarecomponents import HostFirmwareComponents
from ingot.api.hostfirmwaresettings import HostFirmwareSettings
from ingot.hosts.beside.firmware.work import order_name, work_of

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)
BIOS = {"component": "bios", "url": "https://firmware.example/bios-2"}
BMC = {"component": "bmc", "url": "https://firmware.example/bmc-2"}


def conditions(*, changed: bool, at: datetime, generation: int, valid: bool = True) -> list[dict[str, Any]]:
    verdicts = {"ChangeDetected": changed, "Valid": valid}
    return [
        {
            "type": kind,
            "status": str(holds),
            "reason": "OK",
            "message": "",
            "lastTransitionTime": at,
            "observedGeneration": generation,
        }
        for kind, holds in verdicts.items()
    ]


def settings(
    wanted: dict[str, Any],
    present: dict[str, str],
    *,
    at: datetime = AT,
    valid: bool = True,
    generation: int = 2,
) -> HostFirmwareSettings:
    changed = any(present.get(name) != str(value) for name, value in wanted.items())
    document = {
        "metadata": {"name": "h1", "namespace": "rack", "generation": 2},
        "spec": {"settings": wanted},
        "status": {
            "settings": present,
            "conditions": conditions(changed=changed, at=at, generation=generation, valid=valid),
        },
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=HostFirmwareSettings)


def components(wanted: list[Any], begun: list[Any], *, generation: int = 2) -> HostFirmwareComponents:
    document = {
        "metadata": {"name": "h1", "namespace": "rack", "generation": generation},
        "spec": {"updates": wanted},
        "status": {
            "updates": begun,
            "conditions": conditions(changed=wanted != begun, at=AT, generation=generation),
        },
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=HostFirmwareComponents)


def name(of_settings: HostFirmwareSettings | None, of_components: HostFirmwareComponents | None) -> str:
    return order_name("prepare", work_of(of_settings, of_components), "other facts")


def test_without_a_wish_there_is_no_work() -> None:
    assert not work_of(None, None)
    assert not work_of(settings({}, {"Cores": "4"}), components([], []))
    assert not work_of(settings({"Cores": 4}, {"Cores": "4"}), components([BIOS], [BIOS]))


def test_only_what_differs_is_ordered() -> None:
    work = work_of(
        settings({"Cores": 8, "Turbo": "On"}, {"Cores": "4", "Turbo": "On"}), components([BIOS, BMC], [BIOS])
    )
    assert work.change.settings == {"Cores": "8"}
    assert [update.component for update in work.change.updates] == ["bmc"]


def test_what_cannot_be_done_or_was_not_judged_yet_is_no_work() -> None:
    assert not work_of(settings({"Cores": 8}, {"Cores": "4"}, valid=False), None)
    assert not work_of(settings({"Cores": 8}, {"Cores": "4"}, generation=1), None)


def test_an_operator_that_is_started_in_the_middle_finds_the_same_name_whatever_was_noted() -> None:
    wish = settings({"Cores": 8}, {"Cores": "4"})
    ordered, noted = components([BIOS], []), components([BIOS], [BIOS])
    assert name(wish, ordered) == name(wish, noted)
    assert work_of(wish, noted).change.updates == ()


def test_a_setting_that_is_so_already_does_not_begin_it_anew() -> None:
    present = {"Cores": "4", "Turbo": "On"}
    assert name(settings({"Cores": 8}, present), None) == name(
        settings({"Cores": 8, "Turbo": "On"}, present), None
    )


def test_the_same_wish_later_another_wish_and_another_round_have_other_names() -> None:
    present = {"Cores": "4"}
    names = {
        name(settings({"Cores": 8}, present), None),
        name(settings({"Cores": 8}, present, at=LATER), None),
        name(settings({"Cores": 16}, present), None),
        name(None, components([BIOS], [])),
        name(None, components([BIOS], [], generation=4)),
        name(None, components([BIOS, BMC], [BIOS])),
        order_name("prepare", work_of(settings({"Cores": 8}, present), None), "deprovisioned since"),
        order_name("service", work_of(settings({"Cores": 8}, present), None), "other facts"),
    }
    assert len(names) == 8
