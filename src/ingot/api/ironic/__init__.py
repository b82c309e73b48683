"""Ironic: the service behind the hosts, run by Ingot for those who have it in their cluster.

An Ironic with an empty spec is a whole one. What is written in two ways, or not at all, is read here:

    names                                     versions, conditions, events
    spec, networking, switching, overrides    what is wanted
    spelling                                  the two ways to write credentials, database and certificate, as one
    dhcp                                      the addresses that are given out, derived where they are not written
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ingot.api.definition import Column, Definition
from ingot.api.ironic.names import (
    DATABASE_NAME,
    DATABASE_SUFFIX,
    LATEST,
    SUPPORTED_VERSIONS,
    ConditionReason,
    ConditionType,
    EventReason,
)
from ingot.api.ironic.networking import DHCP, DHCPRange, Ingress, Keepalived, Networking, VirtualIP
from ingot.api.ironic.overrides import AgentImages, Overrides
from ingot.api.ironic.spec import (
    TLS,
    Database,
    DeployRamdisk,
    ExtraConfig,
    Images,
    Inspection,
    IronicSpec,
    KeyReference,
    LocalReference,
    PrometheusExporter,
    ResourceReference,
)
from ingot.api.ironic.switching import NetworkingService, ProviderNetwork
from ingot.api.meta import Condition, Model, Object, Resource
from ingot.api.schema import doc, map_list

__all__ = [
    "DATABASE_NAME",
    "DATABASE_SUFFIX",
    "DEFINITION",
    "DHCP",
    "IRONICS",
    "LATEST",
    "SUPPORTED_VERSIONS",
    "TLS",
    "AgentImages",
    "ConditionReason",
    "ConditionType",
    "DHCPRange",
    "Database",
    "DeployRamdisk",
    "EventReason",
    "ExtraConfig",
    "Images",
    "Ingress",
    "Inspection",
    "Ironic",
    "IronicSpec",
    "IronicStatus",
    "Keepalived",
    "KeyReference",
    "LocalReference",
    "Networking",
    "NetworkingService",
    "Overrides",
    "PrometheusExporter",
    "ProviderNetwork",
    "ResourceReference",
    "VirtualIP",
]


class IronicStatus(Model):
    """What is true of Ironic."""

    conditions: Annotated[
        list[Condition], doc("`Ready`: Ironic answers, in the version that is wanted.", **map_list("type"))
    ] = msgspec.field(default_factory=list)
    installed_version: Annotated[str, doc("The version that runs.")] = ""
    requested_version: Annotated[str, doc("The version that was last asked for.")] = ""


class Ironic(Object):
    """One Ironic with all that belongs to it."""

    spec: Annotated[IronicSpec, doc("What is wanted of Ironic.")] = msgspec.field(default_factory=IronicSpec)
    status: Annotated[IronicStatus, doc("What is true of Ironic.")] = msgspec.field(
        default_factory=IronicStatus
    )


IRONICS: Final = Resource(
    group="ironic.metal3.io", version="v1alpha1", kind="Ironic", plural="ironics", type=Ironic
)

DEFINITION: Final = Definition(
    resource=IRONICS,
    description="The Ironic service that drives the BareMetalHosts of a cluster, with its image server and DHCP.",
    columns=(
        Column(
            "Requested Version",
            ".status.requestedVersion",
            priority=1,
            description="The version that was asked for",
        ),
        Column("Installed Version", ".status.installedVersion", description="The version that runs"),
        Column(
            "Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether Ironic answers"
        ),
    ),
)
