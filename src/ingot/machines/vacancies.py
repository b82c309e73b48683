"""Whether a host can be had, and if not, why. Pure.

The one place that says so, for machines and for claims: what is claimed, going, in trouble, out of our hands, or already told
what to run is nobody's to take. A host in whose spec an image stands without a consumer is somebody's too, who just has no name.
"""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import (
    Annotation,
    BareMetalHost,
    ConditionReason,
    ConditionType,
    OperationalStatus,
    State,
    UnknownState,
)
from ingot.api.meta import ObjectReference

UNHEALTHY: Final = ("capi.metal3.io/unhealthy", "capm3.metal3.io/unhealthy")
"""Annotations on a host that somebody has given up on: a person, Metal3, or remediation when the Node does not come back."""
_FREE: Final = frozenset({State.AVAILABLE, State.READY})
_FAULTS: Final[dict[tuple[str, str], str]] = {
    (ConditionType.HEALTHY, ConditionReason.CRITICAL_ERROR): "is reported as critical by the BMC",
    (ConditionType.MANAGEABLE, ConditionReason.POWER_FAILURE): "is without a BMC that answers",
}
"""Conditions of a host that is available, has no error, and would still come to nothing."""


def why_taken(host: BareMetalHost) -> str | None:
    """Why nobody can have this host now, in a few words; None for a host that is free."""
    spec, status, annotations = host.spec, host.status, host.metadata.annotations
    if (consumer := spec.consumer_ref) is not None:
        return f"belongs to {consumer.kind} {consumer.namespace}/{consumer.name}"
    if host.metadata.deletion_timestamp is not None:
        return "is being deleted"
    if status.error_message or status.error_type:
        return "is in error"
    if Annotation.PAUSED in annotations:
        return "is paused"
    if Annotation.DETACHED in annotations or status.operational_status is OperationalStatus.DETACHED:
        return "is detached"
    if any(name in annotations for name in UNHEALTHY):
        return "is marked as unhealthy"
    if (fault := _fault(host)) is not None:
        return fault
    if spec.externally_provisioned:
        return "is provisioned by somebody else"
    if is_told_what_to_run(host):
        return "is told already what to run"
    try:
        state = host.state
    except UnknownState:
        # Asked of every host there is: one with a status that nobody understands must not keep the others from being given away.
        return "is in a state that does not exist"
    return None if state in _FREE else f"is {state or 'new'}"


def _fault(host: BareMetalHost) -> str | None:
    for found in host.status.conditions:
        if found.status == "False" and (fault := _FAULTS.get((found.type, found.reason))) is not None:
            return fault
    return None


def is_ailing(host: BareMetalHost) -> bool:
    """Whether its BMC warns of something that keeps nobody from using it yet."""
    return any(
        found.type == ConditionType.HEALTHY and found.reason == ConditionReason.WARNING
        for found in host.status.conditions
    )


def is_told_what_to_run(host: BareMetalHost) -> bool:
    """Whether something is to be installed on it; what somebody else installs counts."""
    spec = host.spec
    has_image = spec.image is not None and bool(spec.image.url or spec.image.format == "coreos")
    return has_image or spec.custom_deploy is not None or spec.externally_provisioned


def claimant(reference: ObjectReference) -> str:
    """Who is meant. Versions of an API come and go; its group, kind and names tell who it is."""
    group = reference.api_version.rpartition("/")[0]
    return f"{reference.kind}.{group} {reference.namespace}/{reference.name}"


def belongs_to(host: BareMetalHost, consumer: ObjectReference) -> bool:
    """Whether this is the host of that consumer."""
    found = host.spec.consumer_ref
    return found is not None and claimant(found) == claimant(consumer)


def has_software_raid(host: BareMetalHost) -> bool:
    return host.spec.raid is not None and bool(host.spec.raid.software_raid_volumes)


def needs_cleaning(host: BareMetalHost) -> bool:
    """Whether its disks are cleaned before something is installed. What was deprovisioned and not looked at since is clean."""
    if host.spec.automated_cleaning_mode == "disabled":
        return False
    history = host.status.operation_history
    cleaned = history.deprovision.end
    if cleaned is None:
        return True
    begun_since = (history.register.start, history.inspect.start)
    return any(begun is not None and begun > cleaned for begun in begun_since)
