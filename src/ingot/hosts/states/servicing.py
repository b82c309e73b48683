"""Servicing: change the firmware of a machine in use, where its HostUpdatePolicy allows that at a reboot.

It is begun only while the machine is off and about to be switched on. That a host is serviced is written before the back end is
told (operationalStatus), and stays written until it has succeeded or there is nothing left to do: an operator that is started
in the middle finds it there, and the order has a name that the back end does not begin twice.

What was begun counts as begun (`status.updates` of HostFirmwareComponents) and is not a part of any later order. So there are
passes that have nothing to order and wait for an end: they ask with a permit that allows nothing to be begun. Who does not want
any of it any more empties the specs, and what still waits, or failed, is given up.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.api.baremetalhost import (
    BareMetalHostStatus,
    ConditionType,
    ErrorType,
    EventReason,
    OperationalStatus,
)
from ingot.hosts.beside import firmware
from ingot.hosts.beside.boots import note_boot
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Fail, Outcome, Wait
from ingot.provisioner import (
    Act,
    Busy,
    Failed,
    FirmwareChange,
    NotRegistered,
    Ready,
    Refusal,
    Service,
    Sight,
)

BEGINS: Final = "the machine is off for a reboot, and its firmware is changed before it is switched on"


def is_serviced(status: BareMetalHostStatus) -> bool:
    """Whether servicing was begun and has not come to its end."""
    return (
        status.operational_status is OperationalStatus.SERVICING or status.error_type is ErrorType.SERVICING
    )


async def begin_servicing(p: Pass) -> Outcome | None:
    """For a machine that is off and about to be switched on; None when there is nothing to do, or it is done."""
    if not firmware.work_at_reboot(p):
        return None
    _note(p, OperationalStatus.SERVICING)
    await p.save(BEGINS)
    if p.tools.settings.own_ramdisks:
        # Only a host that says it is serviced gets a ramdisk for it.
        return Wait(BEGINS, look_again=0)
    return await go_on_servicing(p)


async def go_on_servicing(p: Pass) -> Outcome | None:
    """For a host that is being serviced, or failed to be; None when it is over."""
    work = firmware.work_at_reboot(p)
    again = p.failed_with(ErrorType.SERVICING)
    waits_only = not work and not again and bool(_all_that_is_wanted(p))
    permit = _NothingNew() if waits_only else p.permit
    order = Service(
        name=firmware.order_name("service", work),
        firmware=_all_that_is_wanted(p) if waits_only else work.change,
    )
    answer = await p.tools.backend.service(p.ref, order, permit=permit, again=again)
    if isinstance(permit, _NothingNew) and permit.was_asked:
        # Something would have been begun: so nothing is going on any more, and what may be left of it is tidied up.
        order = Service(name=order.name)
        answer = await p.tools.backend.service(p.ref, order, permit=p.permit, again=again)
    match answer:
        case Busy(why, detail, begun=taken):
            if taken:
                note_boot(p, since=_since(p), again=again)
                await firmware.begun(p, work)
            elif work:
                # As in `preparing`: what is going on may be an earlier order for some of the same settings.
                firmware.firmware_may_differ(p)
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            await firmware.failed(p, work, since=_since(p))
            return Fail(ErrorType.SERVICING, message)
        case Ready():
            await firmware.begun(p, work)
            await _over(p, work)
            # The guard goes by what is written, and lets nobody switch off a machine that is being serviced.
            await p.save("the firmware has been changed, and the machine is started")
            return None


class _NothingNew:
    """The permit of those who wait for the end of what was begun."""

    def __init__(self) -> None:
        self.was_asked = False

    async def __call__(self, _act: Act, _sight: Sight) -> Refusal | None:
        self.was_asked = True
        return Refusal("everything that is wanted was begun before")


def _all_that_is_wanted(p: Pass) -> FirmwareChange:
    """What stands in the specs that the policy opens, whether it is so already or not."""
    companions = p.tools.companions
    policy = companions.update_policies.get(p.key)
    settings, components = companions.firmware_settings.get(p.key), companions.firmware_components.get(p.key)
    with_settings = policy is not None and policy.spec.firmware_settings == "onReboot"
    with_updates = policy is not None and policy.spec.firmware_updates == "onReboot"
    return FirmwareChange(
        settings={name: str(value) for name, value in settings.spec.settings.items()}
        if settings is not None and with_settings
        else {},
        updates=tuple(components.spec.updates) if components is not None and with_updates else (),
    )


async def _over(p: Pass, work: firmware.Work) -> None:
    """The machine goes on: what came of it is read back, and not tried again unasked, for its system runs."""
    _note(p, OperationalStatus.OK)
    p.completed()
    if await firmware.read_firmware(p) is None and (left := firmware.still_different(p, work)):
        shown = ", ".join(f"{name} (wanted {value})" for name, value in left.items())
        p.tell(
            EventReason.SERVICING_ERROR,
            f"The firmware took the settings and does not show them: {shown}. Look at the machine, or change spec.settings of "
            f"HostFirmwareSettings {p.key.name}",
            "Warning",
        )


def _since(p: Pass) -> datetime | None:
    """When it was begun: since then the host has not been ready, whatever happened to it meanwhile."""
    ready = (found for found in p.host.status.conditions if found.type == ConditionType.READY)
    return next((found.last_transition_time for found in ready), None)


def _note(p: Pass, status: OperationalStatus) -> None:
    p.clear_error()
    p.change(operational_status=status)
