"""What the user wants of a host."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from ingot.api.baremetalhost.parts import RAID, BootMode, CustomDeploy, FirmwareConfig, Image, RootDeviceHints
from ingot.api.hardwaredata import MAC_PATTERN
from ingot.api.meta import Model, ObjectReference, SecretReference
from ingot.api.schema import ATOMIC_MAP, doc

AutomatedCleaningMode = Literal["metadata", "disabled"]
InspectionMode = Literal["disabled", "agent", "fast"]

WHOLE_MAC_PATTERN: Final = f"^{MAC_PATTERN}$"


class BMCDetails(Model):
    """How to reach the machine's management controller."""

    address: Annotated[
        str,
        doc(
            "URL of the management controller. The scheme chooses the protocol and how the machine boots: "
            "redfish-virtualmedia://10.0.0.7/redfish/v1/Systems/1, idrac-virtualmedia://…, ipmi://…. "
            "Can be changed only while the host is registering or detached.",
            required=True,
        ),
    ] = ""
    credentials_name: Annotated[
        str,
        doc("Secret in the namespace of the host with the keys `username` and `password`.", required=True),
    ] = ""
    disable_certificate_verification: Annotated[
        bool,
        doc(
            "Accept any certificate from the management controller. Whoever is in between can then read the password."
        ),
    ] = False


class HostNetworkAttachmentReference(Model):
    name: Annotated[str, doc("Name of the HostNetworkAttachment.", maxLength=253)] = ""
    namespace: Annotated[str, doc("Its namespace; the host's when empty.", maxLength=63)] = ""


class SwitchPort(Model):
    port_id: Annotated[str, doc("The switch's name for the port.", required=True)] = msgspec.field(
        name="portID", default=""
    )
    switch_id: Annotated[str, doc("MAC address of the switch.", required=True, pattern=WHOLE_MAC_PATTERN)] = (
        msgspec.field(name="switchID", default="")
    )


class NetworkInterface(Model):
    """One interface of the host and what it is to be connected to. Told by name or by MAC address, not both."""

    host_network_attachment: Annotated[
        HostNetworkAttachmentReference | None, doc("How the switch port is to be configured.")
    ] = None
    mac_address: Annotated[str, doc("MAC address of the interface.", pattern=WHOLE_MAC_PATTERN)] = ""
    name: Annotated[str, doc("Name of the interface.", pattern="^[a-zA-Z0-9._-]+$")] = ""
    switch_port: Annotated[SwitchPort | None, doc("Where the cable of this interface goes.")] = None


class Taint(Model):
    effect: Annotated[str, doc("NoSchedule, PreferNoSchedule or NoExecute.")]
    key: Annotated[str, doc("Key of the taint.")]
    time_added: Annotated[datetime | None, doc("When the taint was added.")] = None
    value: Annotated[str, doc("Value of the taint.")] = ""


class BareMetalHostSpec(Model):
    """What is wanted of a host."""

    architecture: Annotated[
        str, doc("Architecture of the processor: x86_64, aarch64. Filled in by inspection when empty.")
    ] = ""
    automated_cleaning_mode: Annotated[
        AutomatedCleaningMode,
        doc(
            "What happens to the disks before and after use: `metadata` wipes partition tables, `disabled` wipes nothing.",
            default="metadata",
        ),
    ] = "metadata"
    bmc: Annotated[
        BMCDetails,
        doc("How to reach the machine's management controller. Without it the host is only a note."),
    ] = msgspec.field(default_factory=BMCDetails)
    boot_mac_address: Annotated[
        str,
        doc(
            "MAC address of the interface the machine boots from. Needed where the machine boots over the network, and "
            "where inspection is disabled. Cannot be changed once set.",
            pattern=MAC_PATTERN,
        ),
    ] = msgspec.field(name="bootMACAddress", default="")
    boot_mode: Annotated[
        BootMode | None, doc("How the firmware starts the operating system; UEFI when absent.")
    ] = None
    consumer_ref: Annotated[
        ObjectReference | None,
        doc(
            "Who uses the host. A host with a consumer is taken; the consumer sets and removes this.",
            **ATOMIC_MAP,
        ),
    ] = None
    custom_deploy: Annotated[
        CustomDeploy | None, doc("Install by a named deploy step, instead of or together with an image.")
    ] = None
    description: Annotated[str, doc("A note for people.")] = ""
    disable_power_off: Annotated[
        bool,
        doc("Never switch the machine off: reboot it where it would be switched off. Needs `online: true`."),
    ] = False
    externally_provisioned: Annotated[
        bool,
        doc(
            "Something else installed this machine: manage its power and nothing more. Can be turned on when the host "
            "is created or while it is available."
        ),
    ] = False
    firmware: Annotated[FirmwareConfig | None, doc("Not used any more: see HostFirmwareSettings.")] = None
    hardware_profile: Annotated[
        str,
        doc(
            "Where to install when no rootDeviceHints are given: unknown, libvirt, dell, dell-raid, openstack, empty."
        ),
    ] = ""
    image: Annotated[
        Image | None,
        doc(
            "What to install. Setting it provisions the host, removing it deprovisions the host and cleans its disks."
        ),
    ] = None
    inspection_mode: Annotated[
        InspectionMode | None,
        doc(
            "How to find out what the machine is made of: `agent` boots a ramdisk, `fast` asks the management "
            "controller, `disabled` does without."
        ),
    ] = None
    meta_data: Annotated[
        SecretReference | None,
        doc(
            "Secret with additional metadata for the first boot, in the namespace of the host.", **ATOMIC_MAP
        ),
    ] = None
    network_data: Annotated[
        SecretReference | None,
        doc(
            "Secret with the network configuration of the installed system, in the namespace of the host.",
            **ATOMIC_MAP,
        ),
    ] = None
    network_interfaces: Annotated[
        list[NetworkInterface], doc("Interfaces whose switch ports are to be configured.")
    ] = msgspec.field(default_factory=list)
    online: Annotated[
        bool,
        doc(
            "Whether the machine is to be on. A host that is to be off is not provisioned until that changes.",
            required=True,
        ),
    ] = False
    preprovisioning_network_data_name: Annotated[
        str,
        doc(
            "Secret with the network configuration of the ramdisk, in the namespace of the host. Also used for the "
            "installed system when networkData is absent."
        ),
    ] = ""
    raid: Annotated[RAID | None, doc("Logical disks to make before the host becomes available.")] = None
    root_device_hints: Annotated[RootDeviceHints | None, doc("Which disk to install on.")] = None
    taints: Annotated[list[Taint], doc("Not used. Kept so that old objects can be read.")] = msgspec.field(
        default_factory=list
    )
    user_data: Annotated[
        SecretReference | None,
        doc(
            "Secret with what the installed system reads at its first boot (cloud-init, Ignition).",
            **ATOMIC_MAP,
        ),
    ] = None
