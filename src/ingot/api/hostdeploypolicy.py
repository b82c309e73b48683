"""HostDeployPolicy: which namespaces may claim the hosts of this one.

Without a policy, and with one that says nothing, nobody may.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ingot.api.definition import Definition
from ingot.api.meta import Model, Object, Resource
from ingot.api.schema import doc


class NamespaceLabel(Model):
    name: Annotated[str, doc("A label that the namespace has to have.", required=True)] = ""
    value: Annotated[str | None, doc("Its value; any value when absent.")] = None


class HostClaimNamespaces(Model):
    """Which namespaces. Every demand that is made has to be met."""

    has_labels: Annotated[list[NamespaceLabel], doc("Labels that the namespace has to have.")] = (
        msgspec.field(default_factory=list)
    )
    name_matches: Annotated[
        str,
        doc(
            "Regular expression that has to be found somewhere in the name of the namespace; write ^tenant-[0-9]+$ to "
            "mean all of it."
        ),
    ] = ""
    names: Annotated[list[str] | None, doc("Namespaces by name; with an empty list, none.")] = None


class HostDeployPolicySpec(Model):
    host_claim_namespaces: Annotated[
        HostClaimNamespaces | None, doc("Namespaces whose HostClaims may get hosts of this namespace.")
    ] = None


class HostDeployPolicyStatus(Model):
    """Nothing is said here; the kind has the field."""


class HostDeployPolicy(Object):
    """Who may claim hosts here."""

    spec: Annotated[HostDeployPolicySpec, doc("Who may claim hosts of this namespace.")] = msgspec.field(
        default_factory=HostDeployPolicySpec
    )
    status: Annotated[HostDeployPolicyStatus, doc("Not used.")] = msgspec.field(
        default_factory=HostDeployPolicyStatus
    )


HOST_DEPLOY_POLICIES: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="HostDeployPolicy",
    plural="hostdeploypolicies",
    type=HostDeployPolicy,
)

DEFINITION: Final = Definition(
    resource=HOST_DEPLOY_POLICIES,
    description="Which namespaces may claim the BareMetalHosts of the namespace that the policy is in.",
    columns=(),
)
