"""What is true of a host, as far as its controller knows."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from ingot.api.baremetalhost.names import WRITABLE_ERROR_TYPES, ErrorType, OperationalStatus
from ingot.api.baremetalhost.parts import RAID, BootMode, CustomDeploy, FirmwareConfig, Image, RootDeviceHints
from ingot.api.hardwaredata import HardwareDetails
from ingot.api.meta import Condition, Model, SecretReference
from ingot.api.preprovisioningimage import ImageFormat
from ingot.api.schema import ATOMIC_MAP, doc, map_list


class CredentialsStatus(Model):
    """Which version of which Secret."""

    credentials: Annotated[SecretReference | None, doc("The Secret.", **ATOMIC_MAP)] = None
    credentials_version: Annotated[str, doc("Its resourceVersion when it was read.")] = ""


class OperationTimes(Model):
    """When something was last begun, and when it was done."""

    end: Annotated[datetime | None, doc("When it was done; null while it goes on.", nullable=True)] = None
    start: Annotated[datetime | None, doc("When it was begun.", nullable=True)] = None


class OperationHistory(Model):
    deprovision: Annotated[OperationTimes, doc("The last deprovisioning.")] = msgspec.field(
        default_factory=OperationTimes
    )
    inspect: Annotated[OperationTimes, doc("The last inspection.")] = msgspec.field(
        default_factory=OperationTimes
    )
    provision: Annotated[OperationTimes, doc("The last provisioning.")] = msgspec.field(
        default_factory=OperationTimes
    )
    register: Annotated[OperationTimes, doc("The last registration.")] = msgspec.field(
        default_factory=OperationTimes
    )


class ProvisionStatus(Model):
    """Where the host is on its way, and what was last applied to it."""

    id: Annotated[
        str, doc("What the back end calls the host; with Ironic, the node's UUID.", required=True)
    ] = msgspec.field(name="ID", default="")
    boot_mode: Annotated[BootMode | None, doc("Boot mode in use.")] = None
    custom_deploy: Annotated[CustomDeploy | None, doc("The deploy step that installed the host.")] = None
    firmware: Annotated[FirmwareConfig | None, doc("Not used any more.")] = None
    image: Annotated[Image | None, doc("What is installed; with an empty URL, nothing.")] = None
    raid: Annotated[RAID | None, doc("RAID volumes as last applied.")] = None
    root_device_hints: Annotated[RootDeviceHints | None, doc("Disk hints as last applied.")] = None
    state: Annotated[
        str,
        doc(
            "Where the host is: registering, inspecting, preparing, available, provisioning, provisioned, …",
            required=True,
        ),
    ] = ""


class RamdiskStatus(Model):
    """A ramdisk that was made for the host, and that it was told to boot."""

    booted_at: Annotated[datetime | None, doc("When it was told to.")] = None
    format: Annotated[ImageFormat | None, doc("Format of the image.")] = None
    reported: Annotated[
        str,
        doc(
            "The build that ran, as it said itself when it inspected the host; empty where it did not inspect, or does not say."
        ),
    ] = ""
    version: Annotated[
        str,
        doc("The live image that it was made of, by its volume label; empty where its builder does not say."),
    ] = ""


class BareMetalHostStatus(Model):
    """What is true of a host."""

    conditions: Annotated[
        list[Condition],
        doc(
            "The host's state in the form that `kubectl wait --for=condition=Provisioned` understands.",
            maxItems=32,
            **map_list("type"),
        ),
    ] = msgspec.field(default_factory=list)
    error_count: Annotated[
        int,
        doc(
            "Failures since the last success. The pause before the next try grows with it.",
            required=True,
            default=0,
        ),
    ] = 0
    error_message: Annotated[
        str, doc("What went wrong, in words; empty when all is well.", required=True)
    ] = ""
    error_type: Annotated[
        ErrorType,
        doc(
            "What the host was doing when it failed; absent when all is well.",
            enum=list(WRITABLE_ERROR_TYPES),
        ),
    ] = ErrorType.NONE
    good_credentials: Annotated[CredentialsStatus, doc("The last credentials that worked.")] = msgspec.field(
        default_factory=CredentialsStatus
    )
    hardware: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        doc(
            "What the machine is made of. The same as in the HardwareData of this name, which is the one to read.",
            schema_of=HardwareDetails,
        ),
    ] = msgspec.UNSET
    hardware_profile: Annotated[str, doc("The hardware profile in use.")] = ""
    last_attempted_image: Annotated[
        Image | None, doc("The image that provisioning last began with, whether it came to an end or not.")
    ] = None
    last_updated: Annotated[datetime | None, doc("When this status was last written.")] = None
    next_try: Annotated[
        datetime | None,
        doc(
            "When what failed is tried again by itself; absent when nothing failed, or when it waits for a person. A change of "
            "the host, of its annotations or of a Secret it uses starts the next try at once."
        ),
    ] = None
    operation_history: Annotated[
        OperationHistory, doc("When the host was last registered, inspected, provisioned, deprovisioned.")
    ] = msgspec.field(default_factory=OperationHistory)
    operational_status: Annotated[
        OperationalStatus, doc("Whether all is well, in one word.", required=True)
    ] = OperationalStatus.NONE
    powered_on: Annotated[bool, doc("Whether the machine is on, as last seen.", required=True)] = False
    provisioning: Annotated[
        ProvisionStatus, doc("Where the host is on its way, and what was applied to it.", required=True)
    ] = msgspec.field(default_factory=ProvisionStatus)
    provisioning_fail_count: Annotated[
        int,
        doc(
            "Attempts to provision the same image that failed; too many, and the host waits for a person.",
            required=True,
            default=0,
        ),
    ] = 0
    ramdisk: Annotated[
        RamdiskStatus | None,
        doc(
            "The ramdisk that the host booted last, to be inspected, cleaned or installed; absent where it never booted one "
            "that was made for it."
        ),
    ] = None
    tried_credentials: Annotated[
        CredentialsStatus, doc("The last credentials that were sent, good or bad.")
    ] = msgspec.field(default_factory=CredentialsStatus)
