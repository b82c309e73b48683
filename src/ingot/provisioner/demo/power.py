"""Switching a machine on and off, and telling how it is.

A machine that must not be switched off is rebooted instead. That leaves no trace in its power, so that it was rebooted is kept
until whoever asked has been told, or a while has passed.
"""

from __future__ import annotations

from typing import Final

from ingot.provisioner import (
    Act,
    Busy,
    Failed,
    HostRef,
    NotRegistered,
    Permit,
    Power,
    PowerOffMode,
    Ready,
    Vitals,
)
from ingot.provisioner.demo.carrying_out import Done, Order, carry_out
from ingot.provisioner.demo.hall import Hall, Known
from ingot.provisioner.demo.machine import Reboots, Switches
from ingot.provisioner.demo.script import Verb

SLOT: Final = "power"
REMEMBERED: Final = 60.0
"""Seconds after a reboot within which a power off is taken for the question whether it has happened."""


def vitals(hall: Hall, host: HostRef) -> Vitals | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    plan = hall.plan.of(host.key)
    return Vitals(powered_on=known.machine.powered_on, power_failure=plan.power_failure, health=plan.health)


async def set_power(
    hall: Hall, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    if _is_so(hall, known, wanted):
        return Ready(None)
    if hall.plan.of(host.key).power_failure:
        return Failed("the management controller of the demo machine cannot be reached")
    answer = await carry_out(hall, known, _order(known, wanted, mode), permit=permit, again=again)
    return Ready(None) if isinstance(answer, Done) else answer


def _order(known: Known, wanted: Power, mode: PowerOffMode) -> Order:
    if wanted is Power.ON:
        return Order(
            verb=Verb.POWER_ON,
            effect=Switches(True, "power on"),
            doing="switching the power on",
            slot=SLOT,
            name=wanted.value,
        )
    hard = mode is PowerOffMode.HARD
    # Whoever pulls the plug ends what waits for a ramdisk that does not come.
    stuck = [slot for slot, work in known.record.works.items() if work.stuck and slot != SLOT]
    reboots = known.record.disable_power_off
    return Order(
        verb=Verb.POWER_OFF if hard else Verb.SOFT_POWER_OFF,
        effect=Reboots() if reboots else Switches(False, f"power off {mode.value}"),
        doing="rebooting the machine" if reboots else "switching the power off",
        slot=SLOT,
        name="reboot" if reboots else wanted.value,
        act=Act.POWER_OFF,
        interrupts=stuck if hard else (),
    )


def _is_so(hall: Hall, known: Known, wanted: Power) -> bool:
    """Whether the power is as wanted. What was tried before and has become pointless is forgotten."""
    record = known.record
    work = record.works.get(SLOT)
    if work is not None and work.under_way:
        return False
    if wanted is Power.OFF and record.disable_power_off:
        rebooted = record.rebooted
        record.rebooted = None
        if rebooted is not None:
            hall.note(known.key)
        return rebooted is not None and hall.clock() - rebooted < REMEMBERED
    if known.machine.powered_on is not (wanted is Power.ON):
        return False
    if record.works.pop(SLOT, None) is not None:
        hall.note(known.key)
    return True
