"""What a claim says of itself and its host: the status that tenants read. Pure.

Condition types, and those of their reasons that are Metal3's, are what its clients know. What a host says of its faults is meant
for whoever runs the hosts, and can hold addresses and names that are no tenant's business: a claim tells what kind of fault it is
and whose turn it is, in words of its own.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from ingot.api.baremetalhost import (
    Annotation,
    BareMetalHost,
    ErrorType,
    OperationalStatus,
    State,
    UnknownState,
)
from ingot.api.hostclaim import ConditionType, HostClaim, HostClaimStatus, ObjectPlace
from ingot.api.installed import must_deprovision, wanted
from ingot.api.meta import Condition, ConditionStatus
from ingot.api.wire import differing_fields
from ingot.machines.claims.data import Role, installs
from ingot.machines.claims.linking import place_of

C = ConditionType
LONGEST_MESSAGE: Final = 4096


class Reason(enum.StrEnum):
    ASSOCIATED = "BareMetalHostAssociated"
    NO_HOST = "NoBareMetalHost"
    MISSING_HOST = "MissingBareMetalHost"
    DELETING = "HostClaimDeleting"
    SYNCED = "ConfigurationSynced"
    NOT_SYNCED = "BareMetalHostNotSynchronized"
    BAD_USER_DATA = "UserDataSecretSyncFailure"
    BAD_META_DATA = "MetaDataSecretSyncFailure"
    BAD_NETWORK_DATA = "NetworkDataSecretSyncFailure"
    BAD_PULL_SECRET = "PullSecretSyncFailure"  # noqa: S105 - a reason, no secret
    UNUSABLE = "InvalidConfiguration"
    NOT_ALLOWED = "NotAllowed"
    HOST_PAUSED = "HostPaused"
    DETACHED = "Detached"
    HOST_GOES = "HostDeleting"
    PROVISIONED = "Provisioned"
    NOT_PROVISIONED = "NotProvisioned"
    PREPARING = "Preparing"
    PROVISIONING = "Provisioning"
    DEPROVISIONING = "Deprovisioning"
    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    ERROR = "Error"
    READY = "Ready"


BAD_SECRETS: Final = {
    Role.USER_DATA: Reason.BAD_USER_DATA,
    Role.META_DATA: Reason.BAD_META_DATA,
    Role.NETWORK_DATA: Reason.BAD_NETWORK_DATA,
    Role.PULL_SECRET: Reason.BAD_PULL_SECRET,
}
PROGRESS: Final = frozenset({Reason.PREPARING, Reason.PROVISIONING, Reason.DEPROVISIONING, Reason.DELETING})
"""Reasons for which something does not hold, and nobody has to do anything about it."""


class Verdict(NamedTuple):
    """Of a condition."""

    status: ConditionStatus
    reason: Reason
    message: str

    @property
    def holds(self) -> bool:
        return self.status == "True"


def yes(reason: Reason, message: str) -> Verdict:
    return Verdict("True", reason, message)


def no(reason: Reason, message: str) -> Verdict:
    return Verdict("False", reason, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a claim stands after a look at it. `host` is the one that is the claim's, `meant` one that it means to take."""

    associated: Verdict
    synchronized: Verdict
    host: BareMetalHost | None = None
    meant: ObjectPlace | None = None
    hardware: ObjectPlace | None = None


NO_HOST_YET: Final = no(Reason.NOT_SYNCED, "There is no host yet.")


def standing_with(
    host: BareMetalHost, synchronized: Verdict, *, hardware: ObjectPlace | None = None
) -> Standing:
    """Of a claim that has its host."""
    return Standing(
        associated=yes(Reason.ASSOCIATED, f"The claim has the host {host.key}."),
        synchronized=synchronized,
        host=host,
        hardware=hardware,
    )


def standing_without(
    why: Verdict, synchronized: Verdict = NO_HOST_YET, *, meant: ObjectPlace | None = None
) -> Standing:
    """Of a claim that has none."""
    return Standing(associated=why, synchronized=synchronized, meant=meant)


# The status


def status_of(claim: HostClaim, standing: Standing, *, at: datetime) -> HostClaimStatus:
    """The status that tells how the claim stands, in place of the one it has; what has not changed keeps its times."""
    before, host = claim.status, standing.host
    after = replace(
        before,
        bare_metal_host=place_of(host.key) if host is not None else standing.meant,
        hardware_data=standing.hardware,
        powered_on=host is not None and host.status.powered_on,
        conditions=_conditions(claim, verdicts(claim, standing), at),
    )
    return replace(after, last_updated=at) if differing_fields(before, after) else before


def verdicts(claim: HostClaim, standing: Standing) -> dict[ConditionType, Verdict]:
    host = standing.host
    if host is None:
        provisioned = no(Reason.NOT_PROVISIONED, "There is no host.")
        available = no(Reason.NOT_AVAILABLE, "There is no host.")
    else:
        provisioned, available = _provisioned(claim, host), _available(host)
    parts = (standing.associated, standing.synchronized, provisioned)
    wrong = next((part for part in parts if not part.holds), None)
    fault = fault_of(host) if host is not None and wrong is None else None
    ready = wrong or fault or yes(Reason.READY, "What is asked for runs on the host.")
    return {
        C.ASSOCIATED: standing.associated,
        C.SYNCHRONIZED: standing.synchronized,
        C.PROVISIONED: provisioned,
        C.AVAILABLE_FOR_PROVISIONING: available,
        C.READY: ready,
    }


def _conditions(claim: HostClaim, told: dict[ConditionType, Verdict], at: datetime) -> list[Condition]:
    had = {condition.type: condition for condition in claim.status.conditions}
    made = []
    for kind, verdict in told.items():
        same = had.get(kind)
        message = verdict.message
        made.append(
            Condition(
                type=str(kind),
                status=verdict.status,
                reason=str(verdict.reason),
                message=message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…",
                last_transition_time=at
                if same is None or same.status != verdict.status
                else same.last_transition_time,
                observed_generation=claim.metadata.generation,
            )
        )
    return made + [condition for condition in claim.status.conditions if condition.type not in told]


def news(before: HostClaimStatus, after: HostClaimStatus) -> list[Condition]:
    """The conditions that say something else now, or say it otherwise."""
    had = {condition.type: condition for condition in before.conditions}
    return [
        found
        for found in after.conditions
        if (same := had.get(found.type)) is None
        or (same.status, same.reason, same.message) != (found.status, found.reason, found.message)
    ]


# What is told of a host

_SOMEBODY: Final = "Whoever runs the hosts has to look at it."
_FAULTS: Final = {
    ErrorType.PROVISIONING: "What is asked for could not be installed, and is tried again. If the image, its checksum or the "
    "data for the first boot are wrong, correct them in the claim; if not, whoever runs the hosts has to look at the host.",
    ErrorType.INSPECTION: f"The host could not be inspected. {_SOMEBODY}",
    ErrorType.PREPARATION: f"The host could not be prepared. {_SOMEBODY}",
    ErrorType.SERVICING: f"The host could not be serviced. {_SOMEBODY}",
}
_UNMANAGEABLE: Final = f"The hardware of the host cannot be managed at the moment. {_SOMEBODY}"


def fault_of(host: BareMetalHost) -> Verdict | None:
    """What keeps the host from doing anything, in words for a tenant; None while nothing does."""
    status, annotations = host.status, host.metadata.annotations
    if host.metadata.deletion_timestamp is not None:
        return no(Reason.HOST_GOES, "Whoever runs the hosts is removing this one.")
    if Annotation.PAUSED in annotations:
        return no(Reason.HOST_PAUSED, "Whoever runs the hosts has paused this one: nothing is changed on it.")
    if Annotation.DETACHED in annotations or status.operational_status is OperationalStatus.DETACHED:
        return no(Reason.DETACHED, "Whoever runs the hosts has detached this one: nothing is changed on it.")
    if status.error_type or status.error_message or status.operational_status is OperationalStatus.ERROR:
        return no(Reason.ERROR, _FAULTS.get(status.error_type, _UNMANAGEABLE))
    return None


_STATES: Final = {
    State.PREPARING: no(Reason.PREPARING, "The host is being prepared."),
    State.INSPECTING: no(Reason.PREPARING, "The host is being inspected."),
    State.REGISTERING: no(Reason.PREPARING, "The host is being prepared."),
    State.PROVISIONING: no(Reason.PROVISIONING, "What is asked for is being installed."),
    State.DEPROVISIONING: no(Reason.DEPROVISIONING, "What was installed is being removed."),
}


def _provisioned(claim: HostClaim, host: BareMetalHost) -> Verdict:
    state = _state(host)
    if state is State.PROVISIONED and wanted(host.spec) is not None and not must_deprovision(host):
        return yes(Reason.PROVISIONED, "What is asked for is installed.")
    if (fault := fault_of(host)) is not None:
        return fault
    if state is State.PROVISIONED:
        return _STATES[State.DEPROVISIONING]
    if (moving := _STATES.get(state) if state is not None else None) is not None:
        return moving
    if not installs(claim):
        return no(Reason.NOT_PROVISIONED, "The claim asks for nothing to be installed.")
    if not host.spec.online:
        return no(
            Reason.NOT_PROVISIONED, "The host is to be off: it is provisioned once spec.poweredOn is true."
        )
    return no(Reason.PROVISIONING, "The host begins to install what is asked for.")


def _available(host: BareMetalHost) -> Verdict:
    if _state(host) is State.AVAILABLE and fault_of(host) is None:
        return yes(Reason.AVAILABLE, "Something can be installed on the host.")
    return no(Reason.NOT_AVAILABLE, "The host is busy, or has something installed.")


def _state(host: BareMetalHost) -> State | None:
    try:
        return host.state
    except UnknownState:
        return None
