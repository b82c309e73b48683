"""Which host a claim has, as both sides write it down. Pure.

The claim names the host in `status.bareMetalHost` from the moment it means to take it; the host names the claim in
`spec.consumerRef`, which is the lock. When the claim goes, the host keeps its UID in an annotation: whoever still believes, from
an old copy of the claim, that it means to take this host, sees there that it does not any more.
"""

from __future__ import annotations

from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim, ObjectPlace
from ingot.api.meta import Key, ObjectReference
from ingot.machines.targets import RELEASE

RELEASED_BY: Final = "ingot.metal3.io/released-by"
"""On a host: the UID of the last claim that was done with it."""


def consumer_of(claim: HostClaim) -> ObjectReference:
    """How the claim is named on its host."""
    return ObjectReference(
        api_version=HOST_CLAIMS.api_version,
        kind=HOST_CLAIMS.kind,
        name=claim.metadata.name,
        namespace=claim.metadata.namespace,
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


def is_given_up(host: BareMetalHost, claim: HostClaim) -> bool:
    """Whether this very claim was done with the host already: it is gone, and only our copy of it is not."""
    return host.metadata.annotations.get(RELEASED_BY) == claim.metadata.uid


def given_up(claim: HostClaim) -> dict[str, Any]:
    """The patch that marks a host which the claim never got, or has no more."""
    return {"metadata": {"annotations": {RELEASED_BY: claim.metadata.uid}}}


def release(claim: HostClaim) -> dict[str, Any]:
    """The patch that lets an emptied host go."""
    return {**RELEASE, **given_up(claim)}
