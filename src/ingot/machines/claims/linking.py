"""Which host a claim has, as both sides write it down. Pure.

The claim names the host in `status.bareMetalHost` from the moment it means to take it; the host names the claim in
`spec.consumerRef`, which is the lock, and with the UIDs of both in an annotation: a name alone does not tell whether the claim
that had the host is still there, or whether the host was restored from a backup. A claim that passes by a host which it meant to
take and still could, because it goes, was given another one or may not have it any more, makes a newer version of the host: a
patch that is on its way to take it is refused.
"""

from __future__ import annotations

from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim, ObjectPlace
from ingot.api.meta import Key, ObjectReference

PASSED_BY: Final = "ingot.metal3.io/passed-by-claim"
"""On a host: which version of which claim was the last that passed by, having meant to take it."""
TAKEN_FOR: Final = "ingot.metal3.io/taken-for-claim"
"""On a host: the claim that has it, the UID of that claim, and the UID of the host itself."""


def consumer_of(claim: HostClaim) -> ObjectReference:
    """How the claim is named on its host."""
    return consumer(claim.key)


def consumer(claim: Key) -> ObjectReference:
    return ObjectReference(
        api_version=HOST_CLAIMS.api_version,
        kind=HOST_CLAIMS.kind,
        name=claim.name,
        namespace=claim.namespace,
    )


def claim_of(host: BareMetalHost) -> Key | None:
    """The claim that has the host; None where nobody has it, or somebody who is no claim."""
    consumer = host.spec.consumer_ref
    if consumer is None or consumer.kind != HOST_CLAIMS.kind:
        return None
    is_ours = consumer.api_version.rpartition("/")[0] == HOST_CLAIMS.group
    return Key(consumer.namespace, consumer.name) if is_ours else None


def named_host(claim: HostClaim) -> Key | None:
    """The host that the claim has or means to take."""
    place = claim.status.bare_metal_host
    return Key(place.namespace, place.name) if place is not None and place.name and place.namespace else None


def place_of(key: Key) -> ObjectPlace:
    return ObjectPlace(name=key.name, namespace=key.namespace)


def mark(claim: HostClaim, host: BareMetalHost) -> dict[str, str | None]:
    """What changes in the annotations of a host when it says that the claim has it."""
    wanted = f"{claim.key} {claim.metadata.uid} {host.metadata.uid}"
    return {TAKEN_FOR: wanted} if host.metadata.annotations.get(TAKEN_FOR) != wanted else {}


def taken_for(host: BareMetalHost) -> str:
    """The UID of the claim that has the host; "" where no claim has it, or somebody wrote its name there by other means.

    A host that was made anew from what another one was, by a backup say, is not the one that was taken.
    """
    claim, words = claim_of(host), host.metadata.annotations.get(TAKEN_FOR, "").split(" ")
    if claim is None or len(words) != 3:
        return ""
    name, uid, itself = words
    return uid if (name, itself) == (str(claim), host.metadata.uid) else ""


def passing_by(claim: HostClaim) -> dict[str, Any]:
    """The patch by which a claim passes by a host."""
    return {
        "metadata": {"annotations": {PASSED_BY: f"{claim.metadata.uid}/{claim.metadata.resource_version}"}}
    }
