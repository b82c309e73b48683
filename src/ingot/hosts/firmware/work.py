"""Work: what is to be changed of a host's firmware now, and what that work is called.

Pure over what is written. The mark of a piece of work does not change between the moment it is ordered and the moment it is
done, whatever is noted about it meanwhile: an operator that is started in the middle finds the same mark. The same change that
is asked for later has another one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from ingot.api.hostfirmwarecomponents import HostFirmwareComponents
from ingot.api.hostfirmwaresettings import ConditionType, HostFirmwareSettings
from ingot.api.wire import wire
from ingot.hosts.firmware.judging import condition, has_work, settings_that_differ, updates_that_differ
from ingot.hosts.host_pass import Pass
from ingot.provisioner import FirmwareChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is to be changed, and the facts that the order for it is named by."""

    change: FirmwareChange
    with_updates: bool
    """Whether firmware updates are a part of it: if not, nothing is noted about them."""
    mark: tuple[Any, ...]

    def __bool__(self) -> bool:
        return bool(self.change)


def work_when_preparing(p: Pass) -> Work:
    """All that is wanted."""
    return _work(p, settings=True, updates=True)


def work_at_reboot(p: Pass) -> Work:
    """What the HostUpdatePolicy allows to be changed of a machine in use."""
    policy = p.tools.companions.update_policies.get(p.key)
    return _work(
        p,
        settings=policy is not None and policy.spec.firmware_settings == "onReboot",
        updates=policy is not None and policy.spec.firmware_updates == "onReboot",
    )


def order_name(kind: str, work: Work, *facts: Any) -> str:
    """What an order for this work is called, together with other facts that make it the one it is."""
    told = msgspec.json.encode([wire(list(work.mark)), wire(list(facts))])
    return f"{kind}-{hashlib.sha256(told).hexdigest()[:16]}"


def _work(p: Pass, *, settings: bool, updates: bool) -> Work:
    companions = p.tools.companions
    settings_found = companions.firmware_settings.get(p.key) if settings else None
    components_found = companions.firmware_components.get(p.key) if updates else None
    different = _settings(settings_found)
    due = _updates(components_found)
    return Work(
        change=FirmwareChange(settings=different, updates=tuple(due)),
        with_updates=updates,
        mark=(
            sorted(different.items()),
            _since(settings_found) if different else None,
            components_found.spec.updates if components_found is not None else [],
            components_found.metadata.generation
            if components_found is not None and components_found.spec.updates
            else None,
        ),
    )


def _settings(found: HostFirmwareSettings | None) -> dict[str, str]:
    if found is None or not has_work(found, found.status.conditions):
        return {}
    return settings_that_differ(found, found.present())


def _updates(found: HostFirmwareComponents | None) -> list[Any]:
    if found is None or not has_work(found, found.status.conditions):
        return []
    return updates_that_differ(found)


def _since(found: HostFirmwareSettings | None) -> Any:
    known = condition(found.status.conditions, ConditionType.CHANGE_DETECTED) if found is not None else None
    return known.last_transition_time if known is not None else None
