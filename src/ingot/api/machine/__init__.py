"""Machine and MachineSet: nodes of a cluster that are to be, made from hosts.

The kinds are OpenShift's; what a Machine says to a bare metal provider is in its provider spec.

    parts          what both kinds have in common
    machine        Machine, and the annotations around it
    machineset     MachineSet
    provider       BareMetalMachineProviderSpec, read strictly
"""

from __future__ import annotations

from ingot.api.machine.machine import (
    FINALIZER,
    MACHINES,
    Annotation,
    ErrorReason,
    LastOperation,
    Machine,
    MachineStatus,
    NodeAddress,
)
from ingot.api.machine.machineset import (
    MACHINE_SETS,
    LabelSelector,
    LabelSelectorRequirement,
    MachineSet,
    MachineSetSpec,
    MachineSetStatus,
    MachineTemplate,
)
from ingot.api.machine.parts import (
    LifecycleHook,
    LifecycleHooks,
    MachineCondition,
    MachineSpec,
    ProviderSpec,
    TemplateMetadata,
)
from ingot.api.machine.provider import (
    BareMetalMachineProviderSpec,
    InvalidProviderSpec,
    MachineImage,
    read_provider_spec,
)

__all__ = [
    "FINALIZER",
    "MACHINES",
    "MACHINE_SETS",
    "Annotation",
    "BareMetalMachineProviderSpec",
    "ErrorReason",
    "InvalidProviderSpec",
    "LabelSelector",
    "LabelSelectorRequirement",
    "LastOperation",
    "LifecycleHook",
    "LifecycleHooks",
    "Machine",
    "MachineCondition",
    "MachineImage",
    "MachineSet",
    "MachineSetSpec",
    "MachineSetStatus",
    "MachineSpec",
    "MachineStatus",
    "MachineTemplate",
    "NodeAddress",
    "ProviderSpec",
    "TemplateMetadata",
    "read_provider_spec",
]
