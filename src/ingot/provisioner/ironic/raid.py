"""RAID volumes in Ironic's words: which volumes, made by whom, in which steps.

Pure. Volumes of a RAID controller and of Linux are two sorts, made by two interfaces of Ironic, of which a node has one at a
time. So an order that concerns both sorts takes two rounds of cleaning, and what is to be removed goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ingot.api.baremetalhost import RAID, HardwareRAIDVolume, SoftwareRAIDVolume
from ingot.provisioner.ironic.firmware_steps import Steps
from ingot.provisioner.ironic.instance import root_device
from ingot.provisioner.ironic.model import Json

# Ironic's interface for volumes that the ramdisk makes; all others are those of a RAID controller.
SOFTWARE: str = "agent"
NONE: str = "no-raid"
_DELETE: dict[str, Json] = {"interface": "raid", "step": "delete_configuration"}
_CREATE: dict[str, Json] = {"interface": "raid", "step": "create_configuration"}
# What partitions and earlier volumes left on the disks keeps Linux from using them.
_ERASE: dict[str, Json] = {"interface": "deploy", "step": "erase_devices_metadata"}


class UnusableVolumes(ValueError):
    """The volumes cannot be made; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Volumes of one sort, in place of those that are there."""

    software: bool
    logical_disks: list[Json] = field(default_factory=list)

    def steps(self) -> Steps:
        if not self.logical_disks:
            return [_DELETE]
        return [_DELETE, _ERASE, _CREATE] if self.software else [_DELETE, _CREATE]

    def config(self) -> dict[str, Json]:
        """What Ironic is told as the volumes that are wanted; nothing where all shall go."""
        return {"logical_disks": self.logical_disks} if self.logical_disks else {}


def targets(raid: RAID | None, *, hints: bool) -> list[Target]:
    """One for each round. `hints`: the disk of the operating system is told by hints, not by the volumes."""
    if raid is None:
        return []
    hardware, software = raid.hardware_raid_volumes, raid.software_raid_volumes
    if hardware and software:
        raise UnusableVolumes("a host has either hardware or software RAID volumes; both are asked for")
    found: list[Target] = []
    if hardware is not None:
        found.append(Target(False, _with_root([_hardware(volume) for volume in hardware], hints=hints)))
    if software is not None:
        chosen = hints or any(volume.root_volume for volume in software)
        found.append(Target(True, _with_root([_software(volume) for volume in software], hints=chosen)))
    return sorted(found, key=lambda target: bool(target.logical_disks))


def check(target: Target | None, interface: str) -> None:
    """Raises `UnusableVolumes` for what Ironic's interface to the RAID controller would refuse, after it has removed the
    volumes that are there."""
    if target is None or target.software:
        return
    if interface == NONE:
        raise UnusableVolumes(
            "Ironic has no interface to the RAID controller of this host; use software RAID volumes"
        )
    for disk in target.logical_disks:
        assert isinstance(disk, dict)
        if interface.endswith("redfish") and disk["size_gb"] == "MAX" and "physical_disks" not in disk:
            raise UnusableVolumes(
                "a hardware RAID volume without sizeGibibytes needs physicalDisks: through Redfish, all the room there is can "
                "only be used of disks that are named"
            )


def _with_root(disks: Sequence[dict[str, Json]], *, hints: bool) -> list[Json]:
    """The first volume is for the operating system, where nothing else says which."""
    return [
        disk | {"is_root_volume": True} if at == 0 and not hints else disk for at, disk in enumerate(disks)
    ]


def _hardware(volume: HardwareRAIDVolume) -> dict[str, Json]:
    disk: dict[str, Json] = {"raid_level": volume.level, "size_gb": volume.size_gibibytes or "MAX"}
    if volume.name:
        disk["volume_name"] = volume.name
    if volume.controller:
        disk["controller"] = volume.controller
    if volume.physical_disks:
        disk["physical_disks"] = list[Json](volume.physical_disks)
    if volume.number_of_physical_disks:
        disk["number_of_physical_disks"] = volume.number_of_physical_disks
    if volume.rotational is not None:
        disk["disk_type"] = "hdd" if volume.rotational else "ssd"
    return disk


def _software(volume: SoftwareRAIDVolume) -> dict[str, Json]:
    disk: dict[str, Json] = {
        "raid_level": volume.level,
        "size_gb": volume.size_gibibytes or "MAX",
        "controller": "software",
    }
    if volume.physical_disks:
        disk["physical_disks"] = [root_device(hints) for hints in volume.physical_disks]
    if volume.root_volume:
        disk["is_root_volume"] = True
    return disk
