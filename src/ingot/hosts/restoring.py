"""Restoring: a host that was moved here starts from the status it had elsewhere.

Objects are moved between clusters without their status, so whoever moves a host leaves a copy of it in an annotation. It counts
for a host that has no status yet (`lastUpdated` is not set) and for no other. It is written before anything else is thought of,
and only then the annotation goes: after a crash in between, the status is there and the annotation is only in the way.

Which record of the back end is the host's is taken over with it, but not where another host here has that record: every user of a
host can write an annotation, and it must not lead to somebody else's machine. The host is then looked for by name and MAC.

A status that cannot be read is not guessed at. Such a host may run something, so it is left alone until a person mends or
removes the annotation, and until then it counts as having no status.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from ingot.api.baremetalhost import Annotation, BareMetalHostStatus, ErrorType, EventReason, State
from ingot.api.meta import Malformed
from ingot.api.strict import problem_with
from ingot.hosts.beside.hardware import details_in_hardware_data
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Block, Outcome

_ENDED: Final = frozenset({State.POWERING_OFF_BEFORE_DELETE, State.DELETING})


async def restore_status(p: Pass) -> Outcome | None:
    """Take over the status of the annotation where it counts, and remove the annotation."""
    text = p.host.metadata.annotations.get(Annotation.STATUS)
    if text is None:
        return None
    if p.host.status.last_updated is None:
        try:
            status = status_in(text)
        except Malformed as error:
            if p.deleting:
                return None
            p.stays_new = True
            return Block(ErrorType.REGISTRATION, str(error), EventReason.INVALID_ANNOTATION_VALUE)
        found = await details_in_hardware_data(p)
        status = _without_record_of_another(p, status)
        p.status = status if found is None else replace(status, hardware=found)
        await p.save("the status was taken over from where the host was managed before")
    await p.patch_host({"metadata": {"annotations": {Annotation.STATUS: None}}})
    return None


def status_in(text: str) -> BareMetalHostStatus:
    """The status that an annotation holds. Raises `Malformed`, saying what is wrong and what to do."""
    problem = problem_with(text, BareMetalHostStatus)
    if problem is None:
        status = msgspec.json.decode(text, type=BareMetalHostStatus)
        state = status.provisioning.state
        if state not in set(State):
            problem = f"has the state {state!r}, which is no state of a host"
        elif state in _ENDED:
            problem = f"says that the host is {state}, and nobody deleted it here"
        else:
            return _without_null_hardware(status)
    raise Malformed(
        f"the host is left alone: the status to take over, in its annotation {Annotation.STATUS}, {problem}. "
        "Correct the annotation, or remove it to have the host inspected as a new one."
    )


def _without_record_of_another(p: Pass, status: BareMetalHostStatus) -> BareMetalHostStatus:
    record = status.provisioning.id
    taken = bool(record) and any(
        other.status.provisioning.id == record and other.key != p.key for other in p.tools.hosts.items()
    )
    return replace(status, provisioning=replace(status.provisioning, id="")) if taken else status


def _without_null_hardware(status: BareMetalHostStatus) -> BareMetalHostStatus:
    raw = status.hardware
    if not isinstance(raw, msgspec.UnsetType) and bytes(raw).strip() == b"null":
        return replace(status, hardware=msgspec.UNSET)
    return status
