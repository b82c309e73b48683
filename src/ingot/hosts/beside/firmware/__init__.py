"""Firmware: the settings and components that stand beside a host, read, judged, and turned into work.

`look_after_firmware` runs in every pass of a host that the back end knows: it makes the objects, and judges what is wanted as
soon as it changes. The back end is read again only when somebody has said that the firmware may have changed
(`firmware_may_differ`): it was registered anew, inspected, prepared, serviced. Those who change firmware ask for `Work`, order
it under its name, say when it was `begun` or `failed`, and read back what came of it with `read_firmware`.
"""

from __future__ import annotations

from datetime import datetime

from ingot.api.baremetalhost import State
from ingot.hosts.beside.firmware.components import (
    components_of,
    judge_components,
    read_components,
    updates_begun,
    updates_failed,
)
from ingot.hosts.beside.firmware.judging import settings_that_differ
from ingot.hosts.beside.firmware.policies import own_policy
from ingot.hosts.beside.firmware.settings import (
    judge_settings,
    must_be_read,
    read_settings,
    settings_not_taken,
    settings_of,
)
from ingot.hosts.beside.firmware.work import Work, order_name, work_at_reboot, work_when_preparing
from ingot.hosts.host_pass import Pass
from ingot.provisioner import Busy, NotRegistered

__all__ = [
    "Work",
    "begun",
    "failed",
    "firmware_may_differ",
    "is_unread",
    "look_after_firmware",
    "order_name",
    "read_firmware",
    "settings_not_taken",
    "still_different",
    "work_at_reboot",
    "work_when_preparing",
]


async def look_after_firmware(p: Pass) -> None:
    """Have the firmware objects beside the host, as true as can be told now."""
    await own_policy(p)
    settings = await settings_of(p)
    if is_unread(p) or must_be_read(p, settings):
        # After an inspection it is read anyway, and then it is known whose firmware it is.
        if p.state not in (State.REGISTERING, State.INSPECTING) or p.status.error_type:
            await read_firmware(p)
        return
    await judge_settings(p, settings)
    await judge_components(p, await components_of(p))


async def read_firmware(p: Pass) -> Busy | NotRegistered | None:
    """Read what the back end says of the firmware now; None when that is done."""
    firmware_may_differ(p)
    not_yet = await read_settings(p, await settings_of(p)) or await read_components(p, await components_of(p))
    if not_yet is None:
        p.tools.companions.unread_firmware.discard(p.key)
    return not_yet


def firmware_may_differ(p: Pass) -> None:
    """Something happened to the machine: what was read before is not to be relied on."""
    p.tools.companions.unread_firmware.add(p.key)


def is_unread(p: Pass) -> bool:
    """Whether nobody has read the firmware since something happened to the machine."""
    return p.key in p.tools.companions.unread_firmware


async def begun(p: Pass, work: Work) -> None:
    """The back end has taken the order for this work."""
    if work.with_updates:
        await updates_begun(p, work.change.updates)


async def failed(p: Pass, work: Work, *, since: datetime | None = None) -> None:
    """The order for this work failed: what was noted as begun since then has to be done again."""
    if work.with_updates:
        await updates_failed(p, since)


def still_different(p: Pass, work: Work) -> dict[str, str]:
    """Settings that this work was to change, that are still wanted, and that are not so."""
    found = p.tools.companions.firmware_settings.get(p.key)
    if found is None:
        return {}
    differ = settings_that_differ(found, found.present())
    return {name: value for name, value in work.change.settings.items() if differ.get(name) == value}
