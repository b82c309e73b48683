"""What the simulated servers are made of: pure facts, the same over Redfish and in the agent's inventory."""

from __future__ import annotations

from typing import Any, Final

from ingot.lab.labfile import Plate

MANUFACTURER: Final = "Ingot"
MODEL: Final = "Practice Server"
BIOS_VERSION: Final = "1.0.0"
BMC_VERSION: Final = "1.0.0"
CPU_MODEL: Final = "Simulated CPU"
CPU_MHZ: Final = 2400
CPUS: Final = 8
MEMORY_MIB: Final = 16 * 1024
DISK_NAME: Final = "/dev/sda"
DISK_BYTES: Final = 20 << 30
NIC_MBPS: Final = 10_000


def serial_number(plate: Plate) -> str:
    return plate.system_id.partition("-")[0].upper()


def inventory(plate: Plate, boot_mode: str) -> dict[str, Any]:
    """The hardware as ironic-python-agent reports it. A server booted from virtual media knows no boot interface."""
    return {
        "interfaces": [_interface(number, mac) for number, mac in enumerate(plate.macs)],
        "cpu": {
            "model_name": CPU_MODEL,
            "frequency": str(CPU_MHZ),
            "count": CPUS,
            "architecture": "x86_64",
            "flags": ["sse4_2", "aes", "avx2"],
            "socket_count": 1,
        },
        "disks": [_disk(plate)],
        "memory": {"total": MEMORY_MIB << 20, "physical_mb": MEMORY_MIB},
        "bmc_address": plate.host,
        "bmc_v6address": None,
        "bmc_mac": None,
        "system_vendor": {
            "product_name": MODEL,
            "serial_number": serial_number(plate),
            "manufacturer": MANUFACTURER,
            "firmware": {"vendor": MANUFACTURER, "version": BIOS_VERSION, "build_date": "01/01/2026"},
        },
        "boot": {"current_boot_mode": boot_mode.lower(), "pxe_interface": None},
        "hostname": plate.name,
    }


def inspection_data(plate: Plate, boot_mode: str) -> dict[str, Any]:
    """All that the agent posts after it has looked at the hardware."""
    return {
        "inventory": inventory(plate, boot_mode),
        "root_disk": _disk(plate),
        "boot_interface": None,
        "configuration": {
            "collectors": ["default"],
            "managers": [{"name": "generic_hardware_manager", "version": "1.2"}],
        },
        "error": None,
    }


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
        "pci_address": f"0000:00:0{number + 3}.0",
        "driver": "virtio_net",
    }


def _disk(plate: Plate) -> dict[str, Any]:
    serial = serial_number(plate)
    return {
        "name": DISK_NAME,
        "model": "Simulated disk",
        "size": DISK_BYTES,
        "rotational": False,
        "wwn": f"0x5000{serial.lower()}0000",
        "serial": serial,
        "vendor": MANUFACTURER,
        "wwn_with_extension": f"0x5000{serial.lower()}0000",
        "wwn_vendor_extension": None,
        "hctl": "0:0:0:0",
        "by_path": "/dev/disk/by-path/pci-0000:00:02.0-ata-1",
        "logical_sectors": 512,
        "physical_sectors": 4096,
    }
