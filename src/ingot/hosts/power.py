"""Power: bring the machine to on or off as wanted, and note what it is.

What is wanted is decided by a pure function; the back end is told only when that differs from what is known.
"""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import BareMetalHost, ErrorType, EventReason, State
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Fail, Outcome, Wait
from ingot.provisioner import Busy, Failed, NotRegistered, Power, PowerOffMode, Ready

POWER_MANAGED: Final = frozenset({State.AVAILABLE, State.PROVISIONED, State.EXTERNALLY_PROVISIONED})


def wanted_power(host: BareMetalHost) -> Power | None:
    """What the user asked for; None where the machine is not ours to switch."""
    if host.state not in POWER_MANAGED:
        return None
    if host.spec.online:
        return Power.ON
    return None if host.spec.disable_power_off else Power.OFF


async def manage_power(p: Pass) -> Outcome | None:
    """Switch the machine where needed; None when it is as wanted."""
    if not await look_at_vitals(p):
        return Wait("the back end does not know the host; it is registered again", look_again=SOON)
    if p.vitals is not None and p.vitals.powered_on is not None:
        p.change(powered_on=p.vitals.powered_on)
    wanted = wanted_power(p.current)
    if wanted is None or (p.vitals is not None and p.vitals.powered_on is (wanted is Power.ON)):
        return None
    failed_before = p.failed_with(ErrorType.POWER_MANAGEMENT)
    match await p.tools.backend.set_power(
        p.ref,
        wanted,
        # A machine that did not react to a polite request gets an impolite one.
        mode=PowerOffMode.HARD if failed_before else PowerOffMode.SOFT,
        permit=p.permit,
        again=failed_before,
    ):
        case Ready():
            p.change(powered_on=wanted is Power.ON)
            reason = EventReason.POWER_ON if wanted is Power.ON else EventReason.POWER_OFF
            p.tell(reason, f"Host powered {wanted.value}")
            p.completed()
            return None
        case Busy(why, detail):
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            return Fail(ErrorType.POWER_MANAGEMENT, message)


async def look_at_vitals(p: Pass) -> bool:
    """Note what the back end knows of the machine; False when it does not know the machine."""
    found = await p.tools.backend.vitals(p.ref)
    if isinstance(found, NotRegistered):
        return False
    p.vitals = found
    return True
