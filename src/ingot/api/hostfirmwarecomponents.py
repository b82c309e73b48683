"""HostFirmwareComponents: the firmware versions of one host, and what they are to be updated with.

Belongs to the host of the same namespace and name. `status.updates` repeats what was last begun: an update that stands in the
spec and not there has still to be done.
"""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Final

import msgspec

from ingot.api.definition import Definition
from ingot.api.meta import Condition, Model, Object, Resource
from ingot.api.schema import doc, map_list

COMPONENTS: Final = ("bmc", "bios")
NIC_PREFIX: Final = "nic:"
"""Network adapters are told by a name after this: nic:NIC.Integrated.1."""


class ConditionType(enum.StrEnum):
    CHANGE_DETECTED = "ChangeDetected"
    VALID = "Valid"


class ConditionReason(enum.StrEnum):
    OK = "OK"
    INVALID_COMPONENT = "InvalidComponent"


class FirmwareUpdate(Model):
    """One component and the firmware it gets."""

    component: Annotated[str, doc("What to update: bmc, bios, or nic: and the name of a network adapter.")]
    url: Annotated[
        str, doc("Where the management controller fetches the new firmware: an http or https URL.")
    ]


class FirmwareComponentStatus(Model):
    """One component and its firmware."""

    component: Annotated[str, doc("Which component: bmc, bios, or nic: and the name of a network adapter.")]
    initial_version: Annotated[str, doc("Version it had when the host was registered.")]
    current_version: Annotated[str, doc("Version it has now.")] = ""
    last_version_flashed: Annotated[str, doc("Version that was last written to it.")] = ""
    updated_at: Annotated[datetime | None, doc("When it was last updated.")] = None


class HostFirmwareComponentsSpec(Model):
    """Updates that are wanted."""

    updates: Annotated[
        list[FirmwareUpdate],
        doc(
            "Firmware to install. Done while the host is prepared, or at a reboot if its HostUpdatePolicy says so.",
            required=True,
        ),
    ] = msgspec.field(default_factory=list)


class HostFirmwareComponentsStatus(Model):
    """Versions that are installed."""

    components: Annotated[list[FirmwareComponentStatus], doc("Every component and its firmware.")] = (
        msgspec.field(default_factory=list)
    )
    conditions: Annotated[
        list[Condition],
        doc(
            "`ChangeDetected`: an update is wanted that was not begun. `Valid`: all that are wanted can be done.",
            **map_list("type"),
        ),
    ] = msgspec.field(default_factory=list)
    last_updated: Annotated[datetime | None, doc("When this status was last written.")] = None
    updates: Annotated[list[FirmwareUpdate], doc("The updates that were last begun.")] = msgspec.field(
        default_factory=list
    )


class HostFirmwareComponents(Object):
    """The firmware versions of one host."""

    spec: Annotated[HostFirmwareComponentsSpec, doc("Updates that are wanted.")] = msgspec.field(
        default_factory=HostFirmwareComponentsSpec
    )
    status: Annotated[HostFirmwareComponentsStatus, doc("Versions that are installed.")] = msgspec.field(
        default_factory=HostFirmwareComponentsStatus
    )


HOST_FIRMWARE_COMPONENTS: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="HostFirmwareComponents",
    plural="hostfirmwarecomponents",
    type=HostFirmwareComponents,
)

DEFINITION: Final = Definition(
    resource=HOST_FIRMWARE_COMPONENTS,
    description="The firmware versions of the BareMetalHost of the same name, and the updates it is to get.",
    columns=(),
)
