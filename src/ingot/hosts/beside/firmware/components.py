"""HostFirmwareComponents of a host: which firmware its parts have, and which updates were begun.

`status.updates` repeats what was last begun. It is written when the back end has taken the order, and emptied when the order
failed: so what stands in the spec and not there has still to be done, whoever looks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from msgspec.structs import replace

from ingot.api.hostfirmwarecomponents import (
    HOST_FIRMWARE_COMPONENTS,
    ConditionType,
    FirmwareComponentStatus,
    FirmwareUpdate,
    HostFirmwareComponents,
)
from ingot.hosts.beside.firmware.beside import make, own, write_status
from ingot.hosts.beside.firmware.judging import (
    components_conditions,
    condition,
    has_newly_failed,
    is_judged,
    updates_that_differ,
)
from ingot.hosts.beside.firmware.settings import VALIDATION_FAILED
from ingot.hosts.host_pass import Pass
from ingot.kube import Conflict
from ingot.provisioner import Busy, Component, NotRegistered, Ready


async def components_of(p: Pass) -> HostFirmwareComponents | None:
    """The object beside the host, if there is one; one that somebody else made is taken over."""
    informer = p.tools.companions.firmware_components
    found = informer.get(p.key)
    return None if found is None else await own(p, informer, HOST_FIRMWARE_COMPONENTS, found)


async def judge_components(p: Pass, components: HostFirmwareComponents | None) -> None:
    """Judge what is wanted, unless that has been done."""
    if components is not None and not is_judged(components, components.status.conditions):
        await _write(p, components)


async def read_components(p: Pass, components: HostFirmwareComponents | None) -> Busy | NotRegistered | None:
    """Read which firmware the parts have. A machine that does not tell gets no object of its own."""
    match await p.tools.backend.firmware_components(p.ref):
        case Ready(found):
            if components is None and found:
                informer = p.tools.companions.firmware_components
                components = await make(p, informer, HOST_FIRMWARE_COMPONENTS, {"updates": []})
            if components is not None:
                await _write(p, components, parts=found)
            return None
        case not_yet:
            return not_yet


async def updates_begun(p: Pass, ordered: Collection[FirmwareUpdate]) -> None:
    """The back end has taken the order for these. What somebody added meanwhile is not among them, and still to be done."""
    components = p.tools.companions.firmware_components.get(p.key)
    while components is not None and ordered:
        known = [*components.status.updates, *ordered]
        try:
            return await _write(p, components, begun=[one for one in components.spec.updates if one in known])
        except Conflict:
            # Somebody edits it at this moment. If it were left to the next pass, that would order all of it once more.
            components = await p.tools.client.get(HOST_FIRMWARE_COMPONENTS, p.key)


async def updates_failed(p: Pass, since: datetime | None) -> None:
    """The order failed, or nobody knows what became of it: what was begun since then counts as not begun."""
    components = p.tools.companions.firmware_components.get(p.key)
    if components is not None and not _were_begun_before(components, since):
        await _write(p, components, begun=[])


def _were_begun_before(components: HostFirmwareComponents, time: datetime | None) -> bool:
    """Whether the updates belong to an earlier order, which was fulfilled: firmware is not written twice for nothing.

    A change that was noticed before that time, and is still there, has not been begun since; one that is gone since before that
    time was begun before.
    """
    noted = condition(components.status.conditions, ConditionType.CHANGE_DETECTED)
    if time is None or noted is None:
        return False
    return noted.last_transition_time < time or (
        noted.status == "True" and noted.last_transition_time == time
    )


def _settled(components: HostFirmwareComponents) -> HostFirmwareComponents:
    """Updates that are not wanted any more cannot be undone; they are just not spoken of."""
    if updates_that_differ(components):
        return components
    return replace(components, status=replace(components.status, updates=components.spec.updates))


async def _write(
    p: Pass,
    components: HostFirmwareComponents,
    *,
    parts: Iterable[Component] | None = None,
    begun: list[FirmwareUpdate] | None = None,
) -> None:
    before = components.status
    status = before if begun is None else replace(before, updates=begun)
    if parts is not None:
        status = replace(status, components=_versions(before.components, parts, at=p.tools.now()))
    after = _settled(replace(components, status=status))
    made = replace(after.status, conditions=components_conditions(after, at=p.tools.now()))
    informer = p.tools.companions.firmware_components
    await write_status(p, informer, HOST_FIRMWARE_COMPONENTS, components, old=before, new=made)
    if has_newly_failed(before.conditions, made.conditions):
        found = condition(made.conditions, ConditionType.VALID)
        p.tools.recorder.record(
            components,
            type="Warning",
            reason=VALIDATION_FAILED,
            controller="hostfirmwarecomponents",
            message=f"Invalid Firmware Components: {found.message if found is not None else ''}",
        )


def _versions(
    before: list[FirmwareComponentStatus], parts: Iterable[Component], *, at: datetime
) -> list[FirmwareComponentStatus]:
    known = {found.component: found for found in before}
    return [_version(known.get(part.name), part, at) for part in parts]


def _version(
    before: FirmwareComponentStatus | None, part: Component, at: datetime
) -> FirmwareComponentStatus:
    made = FirmwareComponentStatus(
        component=part.name,
        initial_version=part.initial_version,
        current_version=part.current_version,
        last_version_flashed=part.last_version_flashed,
        updated_at=before.updated_at if before is not None else None,
    )
    # The first look is no update.
    return made if before is None or made == before else replace(made, updated_at=at)
