"""Machine: a node of a cluster that is to be, made from a host."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Final

import msgspec

from ingot.api.definition import AGE, Column, Definition
from ingot.api.machine.parts import MachineCondition, MachineSpec
from ingot.api.meta import Model, Object, ObjectReference, Resource
from ingot.api.schema import ATOMIC_LIST, ATOMIC_MAP, JsonObject, doc, map_list

FINALIZER: Final = "machine.machine.openshift.io"
"""On a Machine: its host has not been given back yet."""


class Annotation(enum.StrEnum):
    """Annotations that machines and those who look after them write and read."""

    HOST = "metal3.io/BareMetalHost"
    """On a Machine: the host it got, as NAMESPACE/NAME."""
    HOST_VERSION = "ingot.metal3.io/host-version"
    """On a Machine that is about to take that host: the version of the host that it takes, and no other."""
    INSTANCE_STATE = "machine.openshift.io/instance-state"
    """On a Machine: the provisioning state of that host."""
    IMAGE_SOURCE = "ingot.metal3.io/image-source"
    """On a Machine: who said what is installed: provider spec, cluster or release."""
    TARGET = "ingot.metal3.io/target"
    """On a Machine: what its host was told to run on its behalf, as a short mark (`api.installed.mark_of`)."""
    TARGET_REPLACED = "ingot.metal3.io/target-replaced"
    """On a Machine whose host was told by somebody to run something else: the mark of that, which people were told of."""
    MACHINE = "machine.openshift.io/machine"
    """On a Node: the Machine that became it, as NAMESPACE/NAME."""
    REMEDIATION = "host.metal3.io/external-remediation"
    """On a Machine: power-cycle the host, because the node does not answer."""
    AUTOSCALE = "metal3.io/autoscale-to-hosts"
    """On a MachineSet: keep as many replicas as there are hosts that will do."""


class ErrorReason(enum.StrEnum):
    INVALID_CONFIGURATION = "InvalidConfiguration"
    INSUFFICIENT_RESOURCES = "InsufficientResources"


class NodeAddress(Model):
    address: Annotated[str, doc("The address.")]
    type: Annotated[str, doc("What sort of address: InternalIP, Hostname, InternalDNS.")]


class LastOperation(Model):
    """What was last done for a machine."""

    description: Annotated[str, doc("What was done, in words.")] = ""
    last_updated: Annotated[datetime | None, doc("When this was last written.")] = None
    state: Annotated[str, doc("How it goes: Processing, Successful, Failed.")] = ""
    type: Annotated[str, doc("What sort of thing was done: Create, Update, Delete.")] = ""


class MachineStatus(Model):
    """What is true of a machine."""

    addresses: Annotated[list[NodeAddress], doc("How the machine can be reached.", **ATOMIC_LIST)] = (
        msgspec.field(default_factory=list)
    )
    conditions: Annotated[list[MachineCondition], doc("The machine's state.", **map_list("type"))] = (
        msgspec.field(default_factory=list)
    )
    error_message: Annotated[str, doc("What is wrong, in words; empty when all is well.")] = ""
    error_reason: Annotated[
        str, doc("What is wrong, in one word: InvalidConfiguration, InsufficientResources.")
    ] = ""
    last_operation: Annotated[LastOperation | None, doc("What was last done for the machine.")] = None
    last_updated: Annotated[datetime | None, doc("When this status was last written.")] = None
    node_ref: Annotated[ObjectReference | None, doc("The node that the machine became.", **ATOMIC_MAP)] = None
    phase: Annotated[
        str, doc("Where the machine is: Provisioning, Provisioned, Running, Deleting, Failed.")
    ] = ""
    provider_status: Annotated[JsonObject | None, doc("What the provider keeps here for itself.")] = None


class Machine(Object):
    """A node that is to be."""

    spec: Annotated[MachineSpec, doc("What is wanted of the machine.")] = msgspec.field(
        default_factory=MachineSpec
    )
    status: Annotated[MachineStatus, doc("What is true of the machine.")] = msgspec.field(
        default_factory=MachineStatus
    )


MACHINES: Final = Resource(
    group="machine.openshift.io", version="v1beta1", kind="Machine", plural="machines", type=Machine
)

_LABELS: Final = r".metadata.labels['machine\.openshift\.io/"

DEFINITION: Final = Definition(
    resource=MACHINES,
    description="A node of a cluster that is to be: takes a BareMetalHost that fits and has something installed on it.",
    columns=(
        Column("Phase", ".status.phase", description="Where the machine is"),
        Column("Type", _LABELS + "instance-type']", description="What sort of machine it is"),
        Column("Region", _LABELS + "region']", description="Its region"),
        Column("Zone", _LABELS + "zone']", description="Its zone"),
        AGE,
        Column("Node", ".status.nodeRef.name", priority=1, description="The node it became"),
        Column("ProviderID", ".spec.providerID", priority=1, description="The host it got"),
        Column(
            "State",
            r".metadata.annotations['machine\.openshift\.io/instance-state']",
            priority=1,
            description="Where that host is on its way",
        ),
    ),
)
