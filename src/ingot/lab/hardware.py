"""What the simulated servers are made of: pure facts, the same over Redfish and in the agent's inventory.

A plate names its build. Which drives the operating system sees as which devices is `devices`' to say: RAID changes that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ingot.lab.errors import LabError
from ingot.lab.labfile import Plate

NIC_MBPS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    id: str
    storage: str = "1"
    """The controller it is attached to."""
    model: str
    size: int
    rotational: bool = False
    protocol: Literal["SATA", "SAS", "NVMe"] = "SATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A controller; one without RAID levels passes its drives through."""

    id: str
    name: str
    raid_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    name: str
    architecture: Literal["x86_64", "aarch64"] = "x86_64"
    cpu_model: str = "Simulated CPU"
    cpu_mhz: int = 2400
    sockets: int = 1
    cpus: int = 8
    """Threads of all sockets together."""
    cpu_flags: tuple[str, ...] = ("sse4_2", "aes", "avx2")
    memory_mib: int = 16 * 1024
    storages: tuple[Storage, ...]
    drives: tuple[Drive, ...]

    def drives_of(self, storage: str) -> list[Drive]:
        return [drive for drive in self.drives if drive.storage == storage]


_RAID: Final = ("RAID0", "RAID1", "RAID5", "RAID10")
_SSD: Final = "Simulated SSD"
_HDD: Final = "Simulated HDD"

STANDARD: Final = Hardware(
    name="standard",
    storages=(Storage(id="1", name="Controller", raid_types=_RAID),),
    drives=(
        Drive(id="1", model=_SSD, size=20 << 30),
        Drive(id="2", model=_HDD, size=100 << 30, rotational=True),
        Drive(id="3", model=_HDD, size=100 << 30, rotational=True),
    ),
)
STORAGE: Final = Hardware(
    name="storage",
    sockets=2,
    cpus=64,
    memory_mib=256 * 1024,
    storages=(
        Storage(id="1", name="RAID controller", raid_types=(*_RAID, "RAID6", "RAID50", "RAID60")),
        Storage(id="2", name="NVMe"),
    ),
    drives=(
        *(
            Drive(id=str(number), model=_HDD, size=500 << 30, rotational=True, protocol="SAS")
            for number in range(1, 7)
        ),
        Drive(id="7", storage="2", model="Simulated NVMe", size=200 << 30, protocol="NVMe"),
        Drive(id="8", storage="2", model="Simulated NVMe", size=200 << 30, protocol="NVMe"),
    ),
)
ARM: Final = Hardware(
    name="arm",
    architecture="aarch64",
    cpus=80,
    cpu_mhz=3000,
    cpu_flags=("asimd", "aes", "sha2"),
    memory_mib=64 * 1024,
    storages=(Storage(id="1", name="NVMe"),),
    drives=(Drive(id="1", model="Simulated NVMe", size=40 << 30, protocol="NVMe"),),
)
BUILDS: Final = {build.name: build for build in (STANDARD, STORAGE, ARM)}


def hardware_of(plate: Plate) -> Hardware:
    try:
        return BUILDS[plate.build]
    except KeyError:
        raise LabError(
            f"the lab has no build {plate.build!r} for {plate.name}; it has {', '.join(BUILDS)}"
        ) from None


def serial_number(plate: Plate) -> str:
    return plate.system_id.partition("-")[0].upper()


def drive_serial(plate: Plate, drive: Drive) -> str:
    """Printed on the drive: over Redfish and in the inventory it is the same."""
    return f"{serial_number(plate)}{int(drive.id):02d}"
