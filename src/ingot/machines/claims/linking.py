"""Which host a claim has, as both sides write it down. Pure.

The claim names the host in `status.bareMetalHost` from the moment it means to take it; the host names the claim in
`spec.consumerRef`, which is the lock. A claim that turns away from a host, because it goes or has to choose another one, says so
on the host first, in an annotation: whoever still means to take that host for it finds another version of the host, or the mark.
"""

from __future__ import annotations

from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim, ObjectPlace
from ingot.api.meta import Key, ObjectReference
from ingot.machines.targets import RELEASE

GIVEN_UP_BY: Final = "ingot.metal3.io/given-up-by"
"""On a host: which version of which claim was the last that turned away from it. A later version may mean it anew."""


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


def is_given_up(host: BareMetalHost, claim: HostClaim) -> bool:
    """Whether the claim, in this version, does not mean this host any more although it names it."""
    return host.metadata.annotations.get(GIVEN_UP_BY) == _version(claim)


def giving_up(claim: HostClaim) -> dict[str, Any]:
    """The patch by which a claim turns away from a host."""
    return {"metadata": {"annotations": {GIVEN_UP_BY: _version(claim)}}}


def _version(claim: HostClaim) -> str:
    return f"{claim.metadata.uid}/{claim.metadata.resource_version}"


def release(claim: HostClaim) -> dict[str, Any]:
    """The patch that lets an emptied host go."""
    return {**RELEASE, **giving_up(claim)}
