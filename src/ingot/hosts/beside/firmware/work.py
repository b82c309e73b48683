"""Work: what is to be changed of a host's firmware now, and what that work is called.

Pure, over what is written (`work_of`). The mark of a piece of work does not change between the moment it is ordered and the
moment it is done, whatever is noted about it meanwhile: an operator that is started in the middle finds the same mark. The
same change that is asked for later has another one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ingot.api.hostfirmwarecomponents import FirmwareUpdate, HostFirmwareComponents
from ingot.api.hostfirmwaresettings import ConditionType, HostFirmwareSettings
from ingot.api.hostupdatepolicy import HostUpdatePolicySpec
from ingot.api.wire import wire
from ingot.hosts.beside.firmware.judging import condition, has_work, settings_that_differ, updates_that_differ
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
    companions = p.tools.companions
    return work_of(companions.firmware_settings.get(p.key), companions.firmware_components.get(p.key))


def work_at_reboot(p: Pass) -> Work:
    """What the HostUpdatePolicy allows to be changed of a machine in use."""
    companions = p.tools.companions
    found = companions.update_policies.get(p.key)
    policy = found.spec if found is not None else HostUpdatePolicySpec()
    return work_of(
        companions.firmware_settings.get(p.key) if policy.firmware_settings == "onReboot" else None,
        companions.firmware_components.get(p.key) if policy.firmware_updates == "onReboot" else None,
    )


def work_of(settings: HostFirmwareSettings | None, components: HostFirmwareComponents | None) -> Work:
    """What these two ask for, as far as it is not so already and can be done."""
    different = _settings(settings)
    updates = components.spec.updates if components is not None else []
    return Work(
        change=FirmwareChange(settings=different, updates=tuple(_updates(components))),
        with_updates=components is not None,
        # Updates count as begun long before they are done, so it is not what is left of them that names the work.
        mark=(
            sorted(different.items()),
            _since(settings) if different else None,
            updates,
            components.metadata.generation if components is not None and updates else None,
        ),
    )


def order_name(kind: str, work: Work, *facts: Any) -> str:
    """What an order for this work is called, together with other facts that make it the one it is."""
    told = msgspec.json.encode([wire(list(work.mark)), wire(list(facts))])
    return f"{kind}-{hashlib.sha256(told).hexdigest()[:16]}"


def _settings(found: HostFirmwareSettings | None) -> dict[str, str]:
    if found is None or not has_work(found, found.status.conditions):
        return {}
    return settings_that_differ(found, found.present())


def _updates(found: HostFirmwareComponents | None) -> list[FirmwareUpdate]:
    if found is None or not has_work(found, found.status.conditions):
        return []
    return updates_that_differ(found)


def _since(found: HostFirmwareSettings | None) -> datetime | None:
    known = condition(found.status.conditions, ConditionType.CHANGE_DETECTED) if found is not None else None
    return known.last_transition_time if known is not None else None
