"""HardwareData: what a machine is made of, found by inspection or written by hand to do without one.

Belongs to the host of the same namespace and name, and outlives its status: a host that is moved to another API brings it
along. `HardwareDetails` is also what a BareMetalHost repeats in `status.hardware`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ingot.api.definition import Definition
from ingot.api.meta import Model, Object, Resource
from ingot.api.schema import doc

MAC_PATTERN: Final = "[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"
FINALIZER: Final = "baremetalhost.metal3.io/hardwareData"

DiskType = Literal["HDD", "SSD", "NVME"]


class SystemVendor(Model):
    manufacturer: Annotated[str, doc("Who made the machine.")] = ""
    product_name: Annotated[str, doc("The maker's name for this model.")] = ""
    serial_number: Annotated[str, doc("The serial number on the machine's label.")] = ""


class BIOS(Model):
    date: Annotated[str, doc("Release date of the installed BIOS, as the BIOS writes it.")] = ""
    vendor: Annotated[str, doc("Who made the BIOS.")] = ""
    version: Annotated[str, doc("Installed version of the BIOS.")] = ""


class Firmware(Model):
    bios: Annotated[BIOS, doc("The system BIOS or UEFI firmware.")] = msgspec.field(default_factory=BIOS)


class VLAN(Model):
    id: Annotated[int, doc("VLAN number.", minimum=0, maximum=4094, format="int32")] = 0
    name: Annotated[str, doc("The switch's name for the VLAN.")] = ""


class LLDP(Model):
    """What the switch at the other end of the cable says of itself."""

    port_id: Annotated[str, doc("The switch's name for the port the cable is in.")] = msgspec.field(
        name="portID", default=""
    )
    switch_id: Annotated[str, doc("What the switch calls its chassis, usually a MAC address.")] = (
        msgspec.field(name="switchID", default="")
    )
    switch_system_name: Annotated[str, doc("The switch's host name.")] = ""


class NIC(Model):
    """One network interface."""

    ip: Annotated[
        str,
        doc(
            "IPv4 or IPv6 address during inspection. An interface with both is listed twice, once for each address."
        ),
    ] = ""
    lldp: Annotated[
        LLDP | None, doc("What the neighbouring switch announced over LLDP, if it announced anything.")
    ] = None
    mac: Annotated[str, doc("MAC address.", pattern=MAC_PATTERN)] = ""
    model: Annotated[str, doc("Vendor and product, as PCI IDs: 0x8086 0x1572.")] = ""
    name: Annotated[str, doc("Name under Linux: eno1.")] = ""
    pci_address: Annotated[str, doc("Address on the PCI bus: 0000:02:00.0.")] = ""
    pxe: Annotated[bool, doc("Whether the machine can boot from the network through this interface.")] = False
    speed_gbps: Annotated[int, doc("Speed of the link in gigabits a second.")] = 0
    vlan_id: Annotated[
        int, doc("The untagged VLAN of the port.", minimum=0, maximum=4094, format="int32")
    ] = 0
    vlans: Annotated[list[VLAN], doc("VLANs the port carries.")] = msgspec.field(default_factory=list)


class Storage(Model):
    """One disk."""

    alternate_names: Annotated[list[str], doc("Other paths of the same disk: /dev/disk/by-id/….")] = (
        msgspec.field(default_factory=list)
    )
    hctl: Annotated[str, doc("SCSI address, as host:channel:target:lun.")] = ""
    model: Annotated[str, doc("The maker's name for this model.")] = ""
    name: Annotated[
        str,
        doc(
            "A path of the disk under Linux. One under /dev/disk/by-path stays the same over reboots and is preferred; "
            "short ones like /dev/sda need not."
        ),
    ] = ""
    rotational: Annotated[bool, doc("Whether the disk spins. `type` says more.")] = False
    serial_number: Annotated[str, doc("Serial number of the disk.")] = ""
    size_bytes: Annotated[int, doc("Size in bytes.", format="int64")] = 0
    type: Annotated[DiskType | None, doc("Kind of disk.")] = None
    vendor: Annotated[str, doc("Who made the disk.")] = ""
    wwn: Annotated[str, doc("World wide name.")] = ""
    wwn_vendor_extension: Annotated[str, doc("The vendor's part of the world wide name.")] = ""
    wwn_with_extension: Annotated[str, doc("World wide name with the vendor's part appended.")] = ""


class CPU(Model):
    arch: Annotated[str, doc("Architecture as Linux names it: x86_64, aarch64.")] = ""
    clock_megahertz: Annotated[float, doc("Clock speed in megahertz.", format="double")] = 0.0
    count: Annotated[int, doc("Number of logical processors.")] = 0
    flags: Annotated[list[str], doc("Feature flags, as in /proc/cpuinfo.")] = msgspec.field(
        default_factory=list
    )
    model: Annotated[str, doc("The maker's name for this model.")] = ""


class HardwareDetails(Model):
    """What inspection found."""

    cpu: Annotated[CPU, doc("Processors.")] = msgspec.field(default_factory=CPU)
    firmware: Annotated[Firmware, doc("Firmware of the machine.")] = msgspec.field(default_factory=Firmware)
    hostname: Annotated[str, doc("Host name of the machine during inspection.")] = ""
    nics: Annotated[list[NIC], doc("Network interfaces.")] = msgspec.field(default_factory=list)
    ram_mebibytes: Annotated[int, doc("Memory in mebibytes.")] = 0
    storage: Annotated[list[Storage], doc("Disks.")] = msgspec.field(default_factory=list)
    system_vendor: Annotated[SystemVendor, doc("Make and model of the machine.")] = msgspec.field(
        default_factory=SystemVendor
    )


class HardwareDataSpec(Model):
    hardware: Annotated[
        HardwareDetails | None,
        doc("What the machine is made of, as inspection found it or a person wrote it."),
    ] = None


class HardwareData(Object):
    """What one host is made of."""

    spec: Annotated[HardwareDataSpec, doc("The hardware of the host with the same name.")] = msgspec.field(
        default_factory=HardwareDataSpec
    )


HARDWARE_DATA: Final = Resource(
    group="metal3.io", version="v1alpha1", kind="HardwareData", plural="hardwaredata", type=HardwareData
)

DEFINITION: Final = Definition(
    resource=HARDWARE_DATA,
    description="What a bare metal host is made of. Belongs to the BareMetalHost of the same name.",
    short_names=("hd",),
    has_status=False,
)
