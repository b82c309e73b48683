"""What is wanted of the firmware against what it is: whether there is something to do, and whether it can be done.

Pure. The conditions `ChangeDetected` and `Valid` of HostFirmwareSettings and HostFirmwareComponents are this judgement, each
with the generation that it was made for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from ingot.api.admission import check
from ingot.api.firmwareschema import SettingSchema
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS, FirmwareUpdate, HostFirmwareComponents
from ingot.api.hostfirmwarecomponents import ConditionReason as ComponentsReason
from ingot.api.hostfirmwaresettings import ConditionReason as SettingsReason
from ingot.api.hostfirmwaresettings import ConditionType, HostFirmwareSettings, problems_with_settings
from ingot.api.meta import Condition, Object
from ingot.api.wire import wire

LONGEST_MESSAGE: Final = 4096
"""Hundreds of settings can be wrong at a time, and the API takes no condition of any length."""


def settings_that_differ(settings: HostFirmwareSettings, present: Mapping[str, str]) -> dict[str, str]:
    """Those that are wanted otherwise than they are. Values are compared as text, as firmware tells them."""
    wanted = {name: str(value) for name, value in settings.spec.settings.items()}
    return {name: value for name, value in wanted.items() if present.get(name) != value}


def settings_conditions(
    settings: HostFirmwareSettings,
    *,
    present: Mapping[str, str],
    schema: Mapping[str, SettingSchema],
    at: datetime,
) -> list[Condition]:
    """The conditions of the settings as they are wanted now."""
    differ = settings_that_differ(settings, present)
    # What is so already needs no permission: it is not going to be set.
    problems = list(problems_with_settings(differ, present=present, schema=schema))
    reason = SettingsReason.CONFIGURATION_ERROR if problems else SettingsReason.SUCCESS
    before = settings.status.conditions
    changed = _condition(
        settings, before, ConditionType.CHANGE_DETECTED, bool(differ), SettingsReason.SUCCESS, at
    )
    valid = _condition(settings, before, ConditionType.VALID, not problems, reason, at, " ".join(problems))
    return _kept(before, changed, valid)


def updates_that_differ(components: HostFirmwareComponents) -> list[FirmwareUpdate]:
    """Those that are wanted and were not begun."""
    return [update for update in components.spec.updates if update not in components.status.updates]


def components_conditions(components: HostFirmwareComponents, *, at: datetime) -> list[Condition]:
    """The conditions of the updates as they are wanted now."""
    before = components.status.conditions
    differ = components.spec.updates != components.status.updates
    kind = HOST_FIRMWARE_COMPONENTS
    problems = check(kind.group, kind.kind, wire(components), None) if differ else []
    reason = ComponentsReason.INVALID_COMPONENT if problems else ComponentsReason.OK
    message = "; ".join(str(problem) for problem in problems)
    changed = _condition(components, before, ConditionType.CHANGE_DETECTED, differ, ComponentsReason.OK, at)
    valid = _condition(components, before, ConditionType.VALID, not problems, reason, at, message)
    return _kept(before, changed, valid)


def condition(conditions: Sequence[Condition], kind: str) -> Condition | None:
    return next((found for found in conditions if found.type == kind), None)


def is_judged(obj: Object, conditions: Sequence[Condition]) -> bool:
    """Whether the conditions speak of what is wanted now."""
    found = [condition(conditions, kind) for kind in ConditionType]
    return all(one is not None and one.observed_generation == obj.metadata.generation for one in found)


def has_work(obj: Object, conditions: Sequence[Condition]) -> bool:
    """Whether something is wanted that is not so, and can be done."""
    return is_judged(obj, conditions) and all(
        found.status == "True" for found in conditions if found.type in tuple(ConditionType)
    )


def has_newly_failed(before: Sequence[Condition], after: Sequence[Condition]) -> bool:
    """Whether these conditions say of something, for the first time, that it cannot be done."""
    was, now = condition(before, ConditionType.VALID), condition(after, ConditionType.VALID)
    if now is None or now.status == "True":
        return False
    return was is None or (was.status, was.message, was.observed_generation) != (
        now.status,
        now.message,
        now.observed_generation,
    )


def _condition(
    obj: Object,
    before: Sequence[Condition],
    kind: ConditionType,
    holds: bool,
    reason: str,
    at: datetime,
    message: str = "",
) -> Condition:
    made = Condition(
        type=str(kind),
        status="True" if holds else "False",
        reason=str(reason),
        message=message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…",
        observed_generation=obj.metadata.generation,
        last_transition_time=at,
    )
    was = condition(before, kind)
    return (
        made
        if was is None or was.status != made.status
        else replace(made, last_transition_time=was.last_transition_time)
    )


def _kept(before: Sequence[Condition], *made: Condition) -> list[Condition]:
    ours = {found.type for found in made}
    return [*made, *(found for found in before if found.type not in ours)]
