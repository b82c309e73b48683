"""Block devices as an operating system on the server sees them: drives, hardware volumes in their place, software arrays.

Pure. A device's name is given anew at each look, as a kernel does; its key stays with the thing itself, and what is written
is kept under the key. A drive in a hardware volume is not seen; a member of a software array is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from ingot.lab.hardware import drive_serial, hardware_of, serial_number
from ingot.lab.labfile import Plate
from ingot.lab.profiles import profile
from ingot.lab.record import Array, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    key: str
    name: str
    model: str
    vendor: str
    size: int
    rotational: bool
    serial: str | None
    transport: str
    address: str | None
    """Where it is attached, in SCSI's form."""

    @property
    def wwn(self) -> str | None:
        if self.serial is None:
            return None
        return "0x5000" + hashlib.sha256(self.serial.encode()).hexdigest()[:12]

    def shown(self) -> dict[str, Any]:
        """The device as ironic-python-agent reports it."""
        return {
            "name": self.name,
            "model": self.model,
            "size": self.size,
            "rotational": self.rotational,
            "wwn": self.wwn,
            "serial": self.serial,
            "vendor": self.vendor,
            "wwn_with_extension": self.wwn,
            "wwn_vendor_extension": None,
            "hctl": self.address,
            "by_path": f"/dev/disk/by-path/pci-0000:00:02.0-{self.key}" if self.address else None,
            "logical_sectors": 512,
            "physical_sectors": 4096,
            "tran": self.transport or None,
        }


def devices(plate: Plate, record: Record) -> list[Device]:
    """What is there now, in the order of the kernel."""
    found: list[Device] = []
    parts, vendor = record.components, profile(plate.profile).vendor
    scsi, nvme = 0, 0
    for drive in hardware_of(plate).drives:
        if parts.volumes_of(drive.storage, drive.id):
            continue
        name = f"/dev/nvme{nvme}n1" if drive.protocol == "NVMe" else f"/dev/sd{ascii_lowercase[scsi]}"
        found.append(
            Device(
                key=drive.id,
                name=name,
                model=drive.model,
                vendor=vendor,
                size=drive.size,
                rotational=drive.rotational,
                serial=drive_serial(plate, drive),
                transport=drive.protocol.lower(),
                address=f"{drive.storage}:0:{int(drive.id) - 1}:0",
            )
        )
        nvme, scsi = (nvme + 1, scsi) if drive.protocol == "NVMe" else (nvme, scsi + 1)
    for volume in parts.volumes:
        found.append(
            Device(
                key=f"volume-{volume.id}",
                name=f"/dev/sd{ascii_lowercase[scsi]}",
                model=volume.raid_type,
                vendor=vendor,
                size=volume.capacity,
                rotational=True,
                serial=f"{serial_number(plate)}V{volume.id}",
                transport="sas",
                address=f"{volume.storage}:1:{volume.id}:0",
            )
        )
        scsi += 1
    return found + [_array(array) for array in record.arrays]


def overwritten(plate: Plate, record: Record) -> set[str]:
    """Keys of drives whose own content is lost, because a hardware volume lies on them."""
    drives = hardware_of(plate).drives
    return {drive.id for drive in drives if record.components.volumes_of(drive.storage, drive.id)}


def _array(array: Array) -> Device:
    return Device(
        key=array.device.removeprefix("/dev/"),
        name=array.device,
        model="",
        vendor="",
        size=array.size,
        rotational=False,
        serial=None,
        transport="",
        address=None,
    )
