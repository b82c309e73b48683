"""HostClaim: somebody wants a host, whichever fits, with something installed on it.

The claim may be in another namespace than the host, if a HostDeployPolicy beside the host allows that. Its Secrets are its own:
they are read in the namespace of the claim.
"""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Final

import msgspec

from ingot.api.baremetalhost import CustomDeploy, Image
from ingot.api.definition import Definition
from ingot.api.hostselector import HostSelector
from ingot.api.meta import Condition, Model, Object, ObjectReference, Resource, SecretReference
from ingot.api.schema import ATOMIC_MAP, doc

FINALIZER: Final = "metal3.io/hostclaim"


class ConditionType(enum.StrEnum):
    ASSOCIATED = "Associated"
    SYNCHRONIZED = "Synchronized"
    PROVISIONED = "Provisioned"
    AVAILABLE_FOR_PROVISIONING = "AvailableForProvisioning"
    READY = "Ready"


class HostClaimSelector(HostSelector):
    """Which hosts will do, and where they are."""

    in_namespace: Annotated[
        str, doc("Only hosts of this namespace; those of every namespace that allows it when empty.")
    ] = ""


class HostClaimSpec(Model):
    """What is wanted."""

    powered_on: Annotated[bool, doc("Whether the host is to be on.", required=True)] = False
    consumer_ref: Annotated[
        ObjectReference | None, doc("Who uses the host that is claimed.", **ATOMIC_MAP)
    ] = None
    custom_deploy: Annotated[
        CustomDeploy | None, doc("Install by a named deploy step, instead of or together with an image.")
    ] = None
    failure_domain: Annotated[
        str,
        doc("Prefer hosts with this value of the label infrastructure.cluster.x-k8s.io/failure-domain."),
    ] = ""
    host_selector: Annotated[HostClaimSelector, doc("Which hosts will do.")] = msgspec.field(
        default_factory=HostClaimSelector
    )
    image: Annotated[Image | None, doc("What to install on the host.")] = None
    meta_data: Annotated[
        SecretReference | None,
        doc(
            "Secret with additional metadata for the first boot, in the namespace of the claim.", **ATOMIC_MAP
        ),
    ] = None
    network_data: Annotated[
        SecretReference | None,
        doc(
            "Secret with the network configuration of the installed system, in the namespace of the claim.",
            **ATOMIC_MAP,
        ),
    ] = None
    user_data: Annotated[
        SecretReference | None,
        doc(
            "Secret with what the installed system reads at its first boot (cloud-init, Ignition), in the namespace of "
            "the claim.",
            **ATOMIC_MAP,
        ),
    ] = None


class ObjectPlace(Model):
    """Where an object is."""

    name: Annotated[str, doc("Its name.", required=True)] = ""
    namespace: Annotated[str, doc("Its namespace.", required=True)] = ""


class HostClaimStatus(Model):
    """What the claim got."""

    bare_metal_host: Annotated[ObjectPlace | None, doc("The host that the claim got.")] = None
    conditions: Annotated[
        list[Condition],
        doc(
            "`Associated`: a host was found. `Synchronized`: it was told what is wanted. `Provisioned`: it has it. "
            "`Ready` sums them up."
        ),
    ] = msgspec.field(default_factory=list)
    hardware_data: Annotated[ObjectPlace | None, doc("What that host is made of.")] = None
    last_updated: Annotated[datetime | None, doc("When this status was last written.")] = None
    powered_on: Annotated[bool, doc("Whether the host is on, as last seen.")] = False


class HostClaim(Object):
    """A wish for a host."""

    spec: Annotated[HostClaimSpec, doc("What is wanted.")] = msgspec.field(default_factory=HostClaimSpec)
    status: Annotated[HostClaimStatus, doc("What the claim got.")] = msgspec.field(
        default_factory=HostClaimStatus
    )


HOST_CLAIMS: Final = Resource(
    group="metal3.io", version="v1alpha1", kind="HostClaim", plural="hostclaims", type=HostClaim
)

DEFINITION: Final = Definition(
    resource=HOST_CLAIMS,
    description="A wish for a BareMetalHost that meets some demands, with something installed on it.",
    columns=(),
)
