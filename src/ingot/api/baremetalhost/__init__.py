"""BareMetalHost: one server, what is wanted of it and what is true of it.

`ingot.api.wire.wire` turns a host, or a part of it, into what is sent.

`status.hardware` is by far the largest part and is rarely read. It stays undecoded in the struct: `hardware()` decodes it. An
undecoded part keeps all the bytes it was read from alive; whoever keeps hosts for long keeps `compact()` ones.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ingot.api.baremetalhost.names import (
    CURRENT_NAME,
    FINALIZER,
    HELD_REBOOT_PREFIX,
    SECRET_FINALIZER,
    SECRET_LABEL,
    WRITABLE_ERROR_TYPES,
    Annotation,
    ConditionReason,
    ConditionType,
    ErrorType,
    EventReason,
    OperationalStatus,
    State,
)
from ingot.api.baremetalhost.parts import (
    INSTALL_COREOS,
    RAID,
    BootMode,
    CustomDeploy,
    FirmwareConfig,
    HardwareRAIDVolume,
    Image,
    RootDeviceHints,
    SoftwareRAIDVolume,
)
from ingot.api.baremetalhost.spec import (
    BareMetalHostSpec,
    BMCDetails,
    HostNetworkAttachmentReference,
    InspectionMode,
    NetworkInterface,
    SwitchPort,
    Taint,
)
from ingot.api.baremetalhost.status import (
    BareMetalHostStatus,
    CredentialsStatus,
    OperationHistory,
    OperationTimes,
    ProvisionStatus,
    RamdiskStatus,
)
from ingot.api.definition import AGE, Column, Definition
from ingot.api.hardwaredata import HardwareDetails
from ingot.api.meta import Malformed, Object, Resource
from ingot.api.schema import doc

__all__ = [
    "BARE_METAL_HOSTS",
    "DEFINITION",
    "FINALIZER",
    "HELD_REBOOT_PREFIX",
    "INSTALL_COREOS",
    "RAID",
    "SECRET_FINALIZER",
    "SECRET_LABEL",
    "WRITABLE_ERROR_TYPES",
    "Annotation",
    "BMCDetails",
    "BareMetalHost",
    "BareMetalHostSpec",
    "BareMetalHostStatus",
    "BootMode",
    "ConditionReason",
    "ConditionType",
    "CredentialsStatus",
    "CustomDeploy",
    "ErrorType",
    "EventReason",
    "FirmwareConfig",
    "HardwareDetails",
    "HardwareRAIDVolume",
    "HostNetworkAttachmentReference",
    "Image",
    "InspectionMode",
    "NetworkInterface",
    "OperationHistory",
    "OperationTimes",
    "OperationalStatus",
    "ProvisionStatus",
    "RamdiskStatus",
    "RootDeviceHints",
    "SoftwareRAIDVolume",
    "State",
    "SwitchPort",
    "Taint",
    "UnknownState",
]


class UnknownState(Malformed):
    """A host's status names a state that does not exist."""


class BareMetalHost(Object):
    """A server and its management controller. A host without a spec is valid: nobody manages it yet."""

    spec: Annotated[BareMetalHostSpec, doc("What is wanted of the host.")] = msgspec.field(
        default_factory=BareMetalHostSpec
    )
    status: Annotated[BareMetalHostStatus, doc("What is true of the host.")] = msgspec.field(
        default_factory=BareMetalHostStatus
    )

    @property
    def state(self) -> State:
        """Where the host is on its way, under today's name."""
        found = self.status.provisioning.state
        try:
            state = State(found)
        except ValueError:
            raise UnknownState(
                f"BareMetalHost {self.key}: status.provisioning.state is {found!r}, which is no state of a host. "
                f"Set it to one of: {', '.join(repr(str(s)) for s in State)}."
            ) from None
        return CURRENT_NAME.get(state, state)

    def hardware(self) -> HardwareDetails | None:
        """What the machine is made of, as the status has it; None before inspection."""
        raw = self.status.hardware
        if isinstance(raw, msgspec.UnsetType):
            return None
        return msgspec.json.decode(raw, type=HardwareDetails | None)

    def compact(self) -> BareMetalHost:
        """The same host, holding on to no more bytes than its own."""
        raw = self.status.hardware
        if isinstance(raw, msgspec.UnsetType):
            return self
        status = msgspec.structs.replace(self.status, hardware=raw.copy())
        return msgspec.structs.replace(self, status=status)


BARE_METAL_HOSTS: Final = Resource(
    group="metal3.io", version="v1alpha1", kind="BareMetalHost", plural="baremetalhosts", type=BareMetalHost
)

DEFINITION: Final = Definition(
    resource=BARE_METAL_HOSTS,
    description="A server that is managed through its management controller, from registration to a running image.",
    short_names=("bmh", "bmhost"),
    columns=(
        Column("Status", ".status.operationalStatus", priority=1, description="Whether all is well"),
        Column("State", ".status.provisioning.state", description="Where the host is on its way"),
        Column("Consumer", ".spec.consumerRef.name", description="Who uses the host"),
        Column("BMC", ".spec.bmc.address", priority=1, description="Address of the management controller"),
        Column("Online", ".spec.online", description="Whether the host is to be on"),
        Column("Error", ".status.errorType", description="What the host was doing when it failed"),
        AGE,
    ),
)
