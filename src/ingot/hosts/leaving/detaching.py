"""Detaching: the back end lets a host go, the machine runs on, and nobody touches it until it is attached again.

Owns what the annotation `baremetalhost.metal3.io/detached` means for a pass. A host is let go where nothing is under way at its
machine, elsewhere only by force; until then the pass goes on and says what it waits for. While it is detached nothing is asked
of the back end and nothing of the host's companions changes. Attaching it again is nothing special: it is registered and, where
a system runs, taken over as it is. Leaves the deletion of a detached host to `deleting`.
"""

from __future__ import annotations

from ingot.api.baremetalhost import Annotation, ErrorType, OperationalStatus, State
from ingot.api.detachment import Detachment, detachment, may_be_let_go
from ingot.hosts.host_pass import Pass
from ingot.hosts.leaving.leftovers import NEVER_REGISTERED
from ingot.hosts.outcome import Fail, Outcome, Stay, Wait
from ingot.provisioner import Act, Busy, Failed, Ready, Refusal, Sight

DETACHED = (
    f"the host is detached: nobody manages it until its annotation {Annotation.DETACHED} is removed, and its BMC address "
    "can be changed until then"
)


async def detach_or_attach(p: Pass) -> Outcome | None:
    """Follow the annotation; None when the state's handler has its turn."""
    if p.state is State.DELETING:
        return None
    asked = detachment(p.host)
    if asked is None:
        if p.detached:
            _attach(p)
        return None
    if p.detached:
        return Stay(DETACHED)
    if not may_be_let_go(p.current):
        p.note = _waits_for(p)
        return None
    return await _detach(p, asked)


def _attach(p: Pass) -> None:
    """What was wrong before is still wrong, until the next attempt says otherwise."""
    failed = p.status.error_type is not ErrorType.NONE
    p.change(operational_status=OperationalStatus.ERROR if failed else OperationalStatus.OK)


async def _detach(p: Pass, asked: Detachment) -> Outcome:
    async def permit(act: Act, sight: Sight) -> Refusal | None:
        if p.state is not p.host.state:
            # The guard goes by what is written, and this pass has just come to where the host can be let go.
            await p.save("the host is being detached")
        return await p.permit(act, sight)

    if p.state not in NEVER_REGISTERED:
        match await p.tools.backend.detach(p.ref, force=asked.force, permit=permit):
            case Busy(why, detail):
                return Wait(why, detail)
            case Failed(message):
                return Fail(ErrorType.DETACH, message)
            case Ready():
                pass
    if p.failed_with(ErrorType.DETACH):
        p.clear_error()
    p.change(operational_status=OperationalStatus.DETACHED)
    return Stay(DETACHED)


def _waits_for(p: Pass) -> str:
    return (
        f"it is detached as soon as it is available or provisioned, and is {p.state or 'new'} now; "
        f'with {{"force": true}} in the annotation {Annotation.DETACHED} that is not waited for'
    )
