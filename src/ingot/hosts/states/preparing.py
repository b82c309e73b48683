"""Preparing: bring RAID volumes and firmware into the shape that was asked for, before the host becomes available.

Where nothing is asked for that is not so already, the back end is not even called. Otherwise it gets one order, under a name that
is worked out from what is written: an operator that is started in the middle gives the same order, and the back end goes on with
it. What was ordered counts as applied from the moment that the back end has taken it, and no more if it failed. Afterwards
the firmware is read back: what it took and does not show is an error, and is ordered once more when the host is tried again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.api.baremetalhost import ConditionType, ErrorType, State
from ingot.hosts.beside import firmware
from ingot.hosts.beside.boots import note_boot
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Advance, Fail, Outcome, Wait
from ingot.hosts.states.profiles import root_device
from ingot.hosts.states.raid import raid_begun, raid_done, raid_failed, raid_to_make
from ingot.provisioner import Busy, Failed, NotRegistered, Preparation, Ready

BEGINS: Final = f"{State.PREPARING} starts"
MOST_NAMED: Final = 5
"""Settings that are named one by one where all of them are wrong."""


def is_unprepared(p: Pass) -> bool:
    """Whether the host has to go through preparing before it can be used."""
    return bool(_order(p, firmware.work_when_preparing(p)))


async def preparing(p: Pass) -> Outcome:
    if firmware.is_unread(p) and (not_yet := await firmware.read_firmware(p)) is not None:
        return _reading(not_yet)
    work = firmware.work_when_preparing(p)
    order = _order(p, work)
    # What waited here before may still be going on, also when nothing of it is wanted any more.
    if order or p.host.state is State.PREPARING:
        held = await _prepare(p, work, order)
        if held is not None:
            return held
        if is_unprepared(p):
            return Wait("what is wanted changed meanwhile, and is prepared next", look_again=SOON)
    p.change_provisioning(root_device_hints=root_device(p.host.spec))
    p.completed()
    return Advance(State.AVAILABLE)


async def _prepare(p: Pass, work: firmware.Work, order: Preparation) -> Outcome | None:
    """Have the order carried out; None when it is."""
    again = p.failed_with(ErrorType.PREPARATION)
    begins = p.host.state is not State.PREPARING
    if begins:
        # The guard goes by what is written.
        await p.save(BEGINS)
    match await p.tools.backend.prepare(p.ref, order, permit=p.permit, again=again):
        case Busy(why, detail, begun=taken):
            if taken:
                note_boot(p, since=_busy_since(p), again=begins or again)
                await _note(p, work, order)
            elif order:
                # What is going on may be an earlier order for some of the same settings: they are read again when it has ended.
                firmware.firmware_may_differ(p)
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            p.change_provisioning(raid=raid_failed(p.host.spec.raid, p.status.provisioning.raid))
            await firmware.failed(p, work, since=_busy_since(p))
            return Fail(ErrorType.PREPARATION, message)
        case Ready():
            await _note(p, work, order)
    return await _read_back(p, work, order)


async def record_is_new(p: Pass) -> None:
    """The back end knows the machine under another name now, and nothing of what it did under the old one."""
    firmware.firmware_may_differ(p)
    if p.state is State.PREPARING and p.status.provisioning.id:
        p.change_provisioning(raid=None)
        await firmware.failed(p, firmware.work_when_preparing(p), since=_busy_since(p))


def _busy_since(p: Pass) -> datetime | None:
    """Since when the host has been on its way; what was applied before that is done."""
    found = (one for one in p.host.status.conditions if one.type == ConditionType.PROGRESSING)
    return next((one.last_transition_time for one in found if one.status == "True"), None)


async def _note(p: Pass, work: firmware.Work, order: Preparation) -> None:
    """The back end has taken the order."""
    if order.raid is not None:
        applied = p.status.provisioning.raid
        p.change_provisioning(raid=raid_begun(p.host.spec.raid, order.raid, applied))
    await firmware.begun(p, work)


async def _read_back(p: Pass, work: firmware.Work, order: Preparation) -> Outcome | None:
    if (not_yet := await firmware.read_firmware(p)) is not None:
        return _reading(not_yet)
    if order.raid is not None:
        applied = p.status.provisioning.raid
        p.change_provisioning(raid=raid_done(p.host.spec.raid, order.raid, applied))
    if left := firmware.still_different(p, work):
        await firmware.settings_not_taken(p)
        return Fail(ErrorType.PREPARATION, _refused_by_firmware(p, left))
    return None


def _reading(not_yet: Busy | NotRegistered) -> Wait:
    why = f"the firmware of the machine is read: {not_yet.why}"
    return Wait(why) if isinstance(not_yet, Busy) else Wait(why, look_again=SOON)


def _refused_by_firmware(p: Pass, left: dict[str, str]) -> str:
    found = p.tools.companions.firmware_settings.get(p.key)
    present = found.present() if found is not None else {}
    named = [f"{name} (wanted {value}, is {present.get(name, 'absent')})" for name, value in left.items()]
    shown = ", ".join(named[:MOST_NAMED]) + (", …" if len(named) > MOST_NAMED else "")
    return (
        f"the firmware took the settings and does not show them: {shown}. Look at the machine, or change "
        f"spec.settings of HostFirmwareSettings {p.key.name}"
    )


def _order(p: Pass, work: firmware.Work) -> Preparation:
    wanted, applied = p.host.spec.raid, p.status.provisioning.raid
    emptied = p.status.operation_history.deprovision.end
    return Preparation(
        name=firmware.order_name("prepare", work, wanted, emptied),
        raid=raid_to_make(wanted, applied),
        root_device=root_device(p.host.spec),
        firmware=work.change,
    )
