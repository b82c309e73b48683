"""What the agent says of the hardware: ironic-python-agent's inventory and inspection data. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ingot.lab.devices import Device, devices
from ingot.lab.hardware import NIC_MBPS, hardware_of, serial_number
from ingot.lab.labfile import Plate
from ingot.lab.profiles import profile
from ingot.lab.record import Record

MANAGER: Final = {"name": "generic_hardware_manager", "version": "1.2"}
SMALLEST_ROOT_DISK: Final = 4 << 30
_COREOS_AGENT: Final = "0.1.0"
"""The version of ingot-agent, which adds to the inventory which CoreOS runs."""


def inventory(
    plate: Plate, record: Record, *, boot_mac: str = "", lacks: Iterable[str] = ()
) -> dict[str, Any]:
    """The hardware as the agent reports it, without the keys that it lacks.

    A server booted from virtual media knows no boot interface. The BIOS' version is the one that is installed now.
    """
    made, vendor = hardware_of(plate), profile(plate.profile)
    found: dict[str, Any] = {
        "interfaces": [_interface(number, mac) for number, mac in enumerate(plate.macs)],
        "cpu": {
            "model_name": made.cpu_model,
            "frequency": str(made.cpu_mhz),
            "count": made.cpus,
            "architecture": made.architecture,
            "flags": list(made.cpu_flags),
            "socket_count": made.sockets,
        },
        "disks": [device.shown() for device in devices(plate, record)],
        "memory": {"total": made.memory_mib << 20, "physical_mb": made.memory_mib},
        "bmc_address": plate.host,
        "bmc_v6address": None,
        "system_vendor": {
            "product_name": vendor.model,
            "serial_number": serial_number(plate),
            "manufacturer": vendor.manufacturer,
            "firmware": {
                "vendor": vendor.manufacturer,
                "version": record.components.versions.get("bios", vendor.bios_version),
                "build_date": "01/01/2026",
            },
        },
        "boot": {
            "current_boot_mode": "bios" if record.override.mode == "Legacy" else "uefi",
            "pxe_interface": boot_mac or None,
        },
        "hostname": (record.ramdisk and record.ramdisk.hostname) or plate.name,
    }
    if record.ramdisk is not None and record.ramdisk.build:
        build = record.ramdisk.build
        found["coreos"] = {"build": build, "name": f"CoreOS {build}", "agent": _COREOS_AGENT}
    return {key: value for key, value in found.items() if key not in set(lacks)}


def inspection_data(
    plate: Plate,
    record: Record,
    *,
    logs: str,
    boot_mac: str = "",
    lacks: Sequence[str] = (),
    error: str = "",
) -> dict[str, Any]:
    """All that the agent posts after it has looked at the hardware."""
    data: dict[str, Any] = {
        "inventory": inventory(plate, record, boot_mac=boot_mac, lacks=lacks),
        "boot_interface": boot_mac or None,
        "configuration": {"collectors": ["default", "logs"], "managers": [MANAGER]},
        "error": error or None,
        "logs": logs,
    }
    root = default_root_device(devices(plate, record))
    return data if root is None else {"root_disk": root.shown(), **data}


def default_root_device(found: Iterable[Device]) -> Device | None:
    """Where an image goes when nobody says where: the smallest device that is large enough, the first by name of several."""
    fit = [device for device in found if device.size >= SMALLEST_ROOT_DISK]
    return min(fit, key=lambda device: (device.size, device.name), default=None)


def _interface(number: int, mac: str) -> dict[str, Any]:
    return {
        "name": f"eth{number}",
        "mac_address": mac,
        "ipv4_address": None,
        "ipv6_address": None,
        "has_carrier": number == 0,
        "lldp": None,
        "vendor": "0x1af4",
        "product": "0x0001",
        "client_id": None,
        "biosdevname": None,
        "speed_mbps": NIC_MBPS,
        "pci_address": f"0000:00:{number + 3:02x}.0",
        "driver": "virtio_net",
    }
