"""Deleting: switch the machine off, make the back end forget it, and let the objects go.

The finalizer of the host comes off last: while it is on, there is something left to do, and after a crash it is done again.
"""

from __future__ import annotations

from ingot.api.baremetalhost import FINALIZER, ErrorType, State
from ingot.hosts.deprovisioning import GIVE_UP_AFTER
from ingot.hosts.hardware import release_hardware_data
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Advance, Fail, Gone, Outcome, Wait
from ingot.hosts.power import look_at_vitals
from ingot.hosts.secrets import release_bmc_secret
from ingot.provisioner import Busy, Failed, NotRegistered, Power, PowerOffMode, Ready


async def powering_off(p: Pass) -> Outcome:
    if p.host.spec.disable_power_off or not await look_at_vitals(p):
        return Advance(State.DELETING)
    match await p.tools.backend.set_power(
        p.ref,
        Power.OFF,
        mode=PowerOffMode.HARD,
        permit=p.permit,
        again=p.failed_with(ErrorType.POWER_MANAGEMENT),
    ):
        case Busy(why, detail):
            return Wait(why, detail)
        case Ready():
            p.change(powered_on=False)
            return Advance(State.DELETING)
        case NotRegistered():
            return Advance(State.DELETING)
        case Failed(message):
            if p.status.error_count > GIVE_UP_AFTER:
                return Advance(State.DELETING)
            return Fail(ErrorType.POWER_MANAGEMENT, message)


async def deleting(p: Pass) -> Outcome:
    match await p.tools.backend.delete(p.ref, permit=p.permit):
        case Busy(why, detail):
            return Wait(why, detail)
        case Failed(message):
            return Fail(ErrorType.REGISTRATION, message)
        case Ready():
            await release_hardware_data(p)
            await release_bmc_secret(p)
            left = [finalizer for finalizer in p.host.metadata.finalizers if finalizer != FINALIZER]
            await p.patch_host({"metadata": {"finalizers": left}})
            return Gone()
