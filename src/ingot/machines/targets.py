"""What a claimant sets on a host, and takes off it again: the claim and the target image, always together. Pure.

Everything is one merge patch of the spec, so that no host is ever claimed without its image or has an image without a claimant.
Leaving is two: first what is installed goes, and the claim stays until the host is empty; then the claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHost, CustomDeploy, Image, State
from ingot.api.meta import ObjectReference, SecretReference
from ingot.api.wire import wire

_EMPTYING: Final = frozenset(
    {State.PREPARING, State.MATCH_PROFILE, State.PROVISIONING, State.PROVISIONED, State.DEPROVISIONING}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the host of this claimant is to be."""

    consumer: ObjectReference
    online: bool
    image: Image | None = None
    custom_deploy: CustomDeploy | None = None
    user_data: SecretReference | None = None
    network_data: SecretReference | None = None
    meta_data: SecretReference | None = None


def difference(host: BareMetalHost, target: Target) -> dict[str, Any]:
    """The patch that makes the host the target's; empty where it is."""
    now = {
        "consumerRef": host.spec.consumer_ref,
        "online": host.spec.online,
        "image": host.spec.image,
        "customDeploy": host.spec.custom_deploy,
        "userData": host.spec.user_data,
        "networkData": host.spec.network_data,
        "metaData": host.spec.meta_data,
    }
    wanted = {
        "consumerRef": target.consumer,
        "online": target.online,
        "image": target.image,
        "customDeploy": target.custom_deploy,
        "userData": target.user_data,
        "networkData": target.network_data,
        "metaData": target.meta_data,
    }
    change = {field: _replaced(now[field], wanted[field]) for field in wanted if now[field] != wanted[field]}
    return {"spec": change} if change else {}


def emptying(host: BareMetalHost) -> dict[str, Any]:
    """The patch that has the host emptied for whoever comes next, and leaves it claimed; empty where it asks for nothing.

    Network and meta data may be the host's own, and stay: who brought its own takes it away besides.
    """
    spec = host.spec
    installed = {"image": spec.image, "customDeploy": spec.custom_deploy, "userData": spec.user_data}
    change: dict[str, Any] = {field: None for field, found in installed.items() if found is not None}
    # One that is never to be switched off has to stay on.
    if spec.online != spec.disable_power_off:
        change["online"] = spec.disable_power_off
    return {"spec": change} if change else {}


def is_emptied(host: BareMetalHost) -> bool:
    """Whether nothing of the claimant runs on the host any more."""
    if host.state is State.EXTERNALLY_PROVISIONED:
        return not host.status.powered_on or host.spec.disable_power_off
    return host.state not in _EMPTYING


RELEASE: Final[dict[str, Any]] = {"spec": {"consumerRef": None}}


def _replaced(now: Any, wanted: Any) -> Any:
    """What a merge patch has to say: fields that are there and not wanted any more are said to be null, by name."""
    told = wire(wanted)
    if not isinstance(told, dict) or now is None:
        return told
    return {**dict.fromkeys(wire(now)), **told}
