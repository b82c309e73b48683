"""What both spec and status of a host speak of: images, disks, RAID, boot modes. The status repeats what was applied."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ingot.api.meta import Model
from ingot.api.schema import doc

BootMode = Literal["UEFI", "UEFISecureBoot", "legacy"]
ChecksumType = Literal["md5", "sha256", "sha512", "auto"]
DiskFormat = Literal["raw", "qcow2", "vdi", "vmdk", "live-iso", "coreos"]
HardwareRAIDLevel = Literal["0", "1", "2", "5", "6", "1+0", "5+0", "6+0"]
SoftwareRAIDLevel = Literal["0", "1", "1+0"]


class Image(Model):
    """What is to be written to the disk, or booted."""

    checksum: Annotated[
        str,
        doc(
            "Checksum of the image, or the URL of a file that holds it. Needed for every image but a live ISO or one "
            "from an OCI registry."
        ),
    ] = ""
    checksum_type: Annotated[
        ChecksumType | None,
        doc("How the checksum was made. `auto`, or nothing, leaves it to be told from the checksum itself."),
    ] = None
    format: Annotated[
        DiskFormat | None,
        doc(
            "Format of the image. `live-iso` boots the image and leaves the disks alone. `coreos` installs the "
            "CoreOS that the ramdisk came with, and needs no URL. `raw` streams to the disk; other formats pass through the "
            "memory of the machine."
        ),
    ] = None
    oci_auth_secret_name: Annotated[
        str,
        doc(
            "Secret with the credentials of the OCI registry, of type kubernetes.io/dockerconfigjson or "
            "kubernetes.io/dockercfg, in the namespace of the host. Only for oci:// URLs."
        ),
    ] = ""
    url: Annotated[
        str,
        doc(
            "Where the image is: an http, https or oci URL that the machine can reach. Changing it provisions the host anew. "
            "Empty with the format `coreos`.",
            required=True,
        ),
    ] = ""


INSTALL_COREOS: Final = "install_coreos"
"""The deploy step that installs CoreOS. `format: coreos` asks for it in other words."""


class CustomDeploy(Model):
    """Installing by another way than writing an image."""

    method: Annotated[
        str, doc("Name of the deploy step that the ramdisk agent runs: install_coreos.", required=True)
    ] = ""


class RootDeviceHints(Model):
    """Which disk is meant. Every hint that is given has to match."""

    device_name: Annotated[
        str,
        doc(
            "Linux device: /dev/vda, or better a path under /dev/disk/by-path/, which is stable over reboots."
        ),
    ] = ""
    hctl: Annotated[str, doc("SCSI address: 0:0:0:0. Has to be equal.")] = ""
    min_size_gigabytes: Annotated[int, doc("Smallest acceptable size in gigabytes.", minimum=0)] = 0
    model: Annotated[str, doc("Model of the disk; a part of it is enough.")] = ""
    rotational: Annotated[bool | None, doc("True for spinning disks only, false for others only.")] = None
    serial_number: Annotated[str, doc("Serial number. Has to be equal.")] = ""
    vendor: Annotated[str, doc("Maker of the disk; a part of the name is enough.")] = ""
    wwn: Annotated[str, doc("World wide name. Has to be equal.")] = ""
    wwn_vendor_extension: Annotated[
        str, doc("The vendor's part of the world wide name. Has to be equal.")
    ] = ""
    wwn_with_extension: Annotated[
        str, doc("World wide name with the vendor's part appended. Has to be equal.")
    ] = ""


class HardwareRAIDVolume(Model):
    """One logical disk, made by the RAID controller."""

    level: Annotated[HardwareRAIDLevel, doc("RAID level.")]
    controller: Annotated[str, doc("Which RAID controller; left to the driver when empty.")] = ""
    name: Annotated[
        str, doc("Name of the volume, unique in the machine; made up when empty.", maxLength=64)
    ] = ""
    number_of_physical_disks: Annotated[
        int | None, doc("How many disks to use; by default as few as the level needs.", minimum=1)
    ] = None
    physical_disks: Annotated[
        list[str], doc("The disks to use, by the controller's own names. Needs `controller`.")
    ] = msgspec.field(default_factory=list)
    rotational: Annotated[
        bool | None, doc("True for spinning disks only, false for solid state only; both when absent.")
    ] = None
    size_gibibytes: Annotated[
        int | None, doc("Size of the volume in gibibytes; all the room there is when 0 or absent.", minimum=0)
    ] = None


class SoftwareRAIDVolume(Model):
    """One logical disk, made by Linux."""

    level: Annotated[
        SoftwareRAIDLevel, doc("RAID level. The volume of the operating system has to be level 1.")
    ]
    physical_disks: Annotated[
        list[RootDeviceHints], doc("The disks to use, each told by hints; all disks when absent.", minItems=2)
    ] = msgspec.field(default_factory=list)
    root_volume: Annotated[
        bool,
        doc(
            "Whether the operating system goes here. At most one volume, and not together with rootDeviceHints.",
            default=False,
        ),
    ] = False
    size_gibibytes: Annotated[
        int | None, doc("Size of the volume in gibibytes; all the room there is when 0 or absent.", minimum=0)
    ] = None


class RAID(Model):
    """Logical disks. None leaves things as they are, an empty list removes what is there."""

    hardware_raid_volumes: Annotated[
        list[HardwareRAIDVolume] | None,
        doc(
            "Volumes of the RAID controller. Absent or null: leave alone what is there. Empty: remove all. "
            "Not together with software volumes.",
            nullable=True,
        ),
    ] = msgspec.field(name="hardwareRAIDVolumes", default=None)
    software_raid_volumes: Annotated[
        list[SoftwareRAIDVolume] | None,
        doc(
            "Volumes of Linux software RAID, two at most; the first has to be level 1. Empty: remove all. "
            "Not together with hardware volumes.",
            nullable=True,
            maxItems=2,
        ),
    ] = msgspec.field(name="softwareRAIDVolumes", default=None)


_SWITCH = {"enum": [True, False]}


class FirmwareConfig(Model):
    """Settings of an old way to configure the BIOS. Kept so that old objects can be read; refused in new ones."""

    simultaneous_multithreading_enabled: Annotated[
        bool | None, doc("Not used any more: see HostFirmwareSettings.", **_SWITCH)
    ] = None
    sriov_enabled: Annotated[bool | None, doc("Not used any more: see HostFirmwareSettings.", **_SWITCH)] = (
        None
    )
    virtualization_enabled: Annotated[
        bool | None, doc("Not used any more: see HostFirmwareSettings.", **_SWITCH)
    ] = None
