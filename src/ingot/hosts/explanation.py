"""A host in words: why it is where it is, since when, what comes next and when, and what a person should do.

Pure, over the object alone, so that `ingot explain` and whoever shows a host to people say the same, on any API. Why is the
sentence that the last pass left in the conditions; the rest follows from the state. `outlook` is also the message of the
condition `Ready`, for those who have nothing but kubectl.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ingot.api.baremetalhost import (
    Annotation,
    BareMetalHost,
    BareMetalHostStatus,
    ConditionType,
    OperationalStatus,
    State,
)
from ingot.api.detachment import detachment
from ingot.api.installed import wanted

NOTHING_TO_DO: Final = "nothing; it goes on by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    host: str
    state: str
    """Where it is, in the word that `kubectl get bmh` shows."""
    status: str
    """Whether all is well, in one word."""
    since: datetime | None
    why: str
    error: str
    failures: int
    next: str
    when: str
    do: str


_NEXT: Final[dict[State, tuple[str, str]]] = {
    State.NONE: ("it is registered", "at once, when an operator runs"),
    State.UNMANAGED: ("it is registered", "when spec.bmc has an address and names a Secret"),
    State.REGISTERING: ("its hardware is inspected", "when the BMC has answered with these credentials"),
    State.INSPECTING: ("it is prepared, and then available", "when the inventory has come in"),
    State.PREPARING: ("it is available", "when RAID volumes and firmware are as asked for"),
    State.AVAILABLE: (
        "it is provisioned",
        "when spec.image or spec.customDeploy is set and spec.online is true",
    ),
    State.PROVISIONING: ("it is provisioned", "when the image is on the disk and has been started"),
    State.PROVISIONED: ("it stays", "until its image is changed or removed, or the host is deleted"),
    State.EXTERNALLY_PROVISIONED: (
        "it stays",
        "until spec.externallyProvisioned is unset, or the host is deleted",
    ),
    State.DEPROVISIONING: (
        "it is available again",
        "when what was installed is removed and the disks are cleaned",
    ),
    State.POWERING_OFF_BEFORE_DELETE: ("the back end forgets it", "when the machine is off"),
    State.DELETING: ("it is gone", "when the back end has forgotten it"),
}
_WAITS_FOR_A_PERSON: Final[dict[State, str]] = {
    State.UNMANAGED: "set spec.bmc, if the host is to be managed",
    State.AVAILABLE: "set spec.image, or claim the host, to use it",
}


def explain(host: BareMetalHost) -> Explanation:
    status = host.status
    coming, when, do = _outlook(host)
    return Explanation(
        host=str(host.key),
        state=str(host.state) or "new",
        status=str(status.operational_status) or "unknown",
        since=since(host),
        why=_why(host),
        error=status.error_message,
        failures=status.error_count,
        next=coming,
        when=when,
        do=do,
    )


def outlook(host: BareMetalHost) -> str:
    """What comes next and what to do, in one sentence."""
    coming, when, do = _outlook(host)
    return f"Next: {coming}, {when}. To do: {do}."


def since(host: BareMetalHost) -> datetime | None:
    """When the host came into its state, as far as its status tells."""
    status, history = host.status, host.status.operation_history
    if host.metadata.deletion_timestamp is not None and host.state in (
        State.POWERING_OFF_BEFORE_DELETE,
        State.DELETING,
    ):
        return history.deprovision.end or host.metadata.deletion_timestamp
    match host.state:
        case State.REGISTERING:
            return history.register.start
        case State.INSPECTING:
            return history.inspect.start
        case State.PROVISIONING:
            return history.provision.start
        case State.DEPROVISIONING:
            return history.deprovision.start
        case State.PROVISIONED:
            return history.provision.end or history.register.end
        case State.EXTERNALLY_PROVISIONED:
            return history.register.end
        case State.PREPARING | State.AVAILABLE:
            ends = (history.register.end, history.inspect.end, history.deprovision.end)
            return max((end for end in ends if end is not None), default=None)
    return status.last_updated or host.metadata.creation_timestamp


def _why(host: BareMetalHost) -> str:
    if Annotation.PAUSED in host.metadata.annotations:
        return f"it is paused: the annotation {Annotation.PAUSED} makes Ingot leave it alone"
    told = _message(host.status, ConditionType.PROGRESSING)
    return told or "nobody has looked at it yet"


def _message(status: BareMetalHostStatus, kind: ConditionType) -> str:
    return next((found.message for found in status.conditions if found.type == kind), "")


def _outlook(host: BareMetalHost) -> tuple[str, str, str]:
    """What comes next, when, and what a person should do."""
    status, state = host.status, host.state
    if Annotation.PAUSED in host.metadata.annotations:
        return "it goes on", "when the annotation is gone", f"remove the annotation {Annotation.PAUSED}"
    if status.error_type:
        return _after_an_error(status)
    if host.metadata.deletion_timestamp is not None:
        return _on_its_way_out(host)
    if status.operational_status is OperationalStatus.DETACHED:
        return (
            "it is registered again and taken over as it runs",
            f"when the annotation {Annotation.DETACHED} is gone",
            f"remove the annotation {Annotation.DETACHED} to have it managed again",
        )
    if status.operational_status is OperationalStatus.SERVICING:
        return "its system is started again", "when its firmware is as asked for", NOTHING_TO_DO
    if status.operational_status is OperationalStatus.DELAYED:
        return "it goes on", "as soon as fewer hosts boot over the network", NOTHING_TO_DO
    coming, when = _NEXT[state]
    if state is State.AVAILABLE and wanted(host.spec) is not None and not host.spec.online:
        return coming, "when spec.online is true", "set spec.online to true"
    return coming, when, _WAITS_FOR_A_PERSON.get(state, NOTHING_TO_DO)


def _on_its_way_out(host: BareMetalHost) -> tuple[str, str, str]:
    if (asked := detachment(host)) is not None and asked.delays_deletion:
        return (
            "it is deprovisioned and deleted",
            "when it is attached again",
            f"remove the annotation {Annotation.DETACHED} to have it deleted",
        )
    if host.state in (State.POWERING_OFF_BEFORE_DELETE, State.DELETING):
        return *_NEXT[host.state], NOTHING_TO_DO
    return "it is switched off and forgotten", "when what is installed is removed", NOTHING_TO_DO


def _after_an_error(status: BareMetalHostStatus) -> tuple[str, str, str]:
    mend = "mend what the error names; a change of the host or of its Secrets is tried at once"
    if status.next_try is None:
        return "it is tried again", "when somebody changes what the error names", mend
    at = status.next_try.isoformat().replace("+00:00", "Z")
    return "it is tried again", f"at {at}", f"{mend}, and so is `ingot host retry`"
