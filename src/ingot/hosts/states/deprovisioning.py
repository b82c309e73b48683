"""Deprovisioning: remove what is installed, so that the machine can be used anew or let go.

What another provisioning has put there than the one that is to be undone is left alone, until a person says what becomes of it.
"""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import ErrorType, EventReason, State
from ingot.hosts.beside.boots import note_boot
from ingot.hosts.host_pass import Pass
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import SOON, Advance, Block, Fail, Outcome, Wait
from ingot.hosts.states.raid import without_software
from ingot.provisioner import Busy, Failed, NotRegistered, Ready

GIVE_UP_AFTER: Final = 3
"""Failures after which a host that is being deleted is let go as it is."""


async def deprovisioning(p: Pass) -> Outcome:
    again = p.failed_with(ErrorType.PROVISIONING)
    match await p.tools.backend.deprovision(
        p.ref,
        automated_cleaning=p.host.spec.automated_cleaning_mode != "disabled",
        permit=p.permit,
        again=again,
    ):
        case Busy(why, detail):
            note_boot(p, since=p.status.operation_history.deprovision.start, again=again)
            return Wait(why, detail)
        case NotRegistered() if p.unmanageable:
            METRICS.count("delete_without_deprovisioning")
            return Advance(State.DELETING)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message, needs_person=True):
            return Block(ErrorType.PROVISIONING, message)
        case Failed(message):
            if p.deleting and p.status.error_count > GIVE_UP_AFTER:
                METRICS.count("delete_without_deprovisioning")
                return Advance(State.POWERING_OFF_BEFORE_DELETE)
            return Fail(ErrorType.PROVISIONING, message)
        case Ready():
            p.change_provisioning(
                image=None,
                custom_deploy=None,
                root_device_hints=None,
                raid=without_software(p.status.provisioning.raid),
            )
            p.completed()
            p.tell(EventReason.DEPROVISIONING_COMPLETE, "Image deprovisioning completed")
            # Through preparing, where the hints for the next image are worked out.
            return Advance(State.POWERING_OFF_BEFORE_DELETE if p.deleting else State.PREPARING)
