"""Software RAID: which arrays a RAID configuration means on the devices that are there. Pure; ironic-python-agent's rules.

The first array is RAID-1, so that a firmware can boot it; there are at most two. A partition for UEFI is left free in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ingot.lab.agent.failures import raid_failed
from ingot.lab.agent.hints import meets
from ingot.lab.devices import Device
from ingot.lab.record import Array

LEVELS: Final = frozenset({"0", "1", "1+0", "5", "6"})
_GIB: Final = 1 << 30
_IN_FRONT: Final = 551 << 20
_LEAST_MEMBERS: Final = {"5": 3, "6": 4}


def arrays_for(config: Mapping[str, Any], found: Sequence[Device]) -> list[Array]:
    """The arrays to make, in order; none when the configuration asks for no software RAID."""
    wanted = config.get("logical_disks") or []
    if not any(disk.get("controller") == "software" for disk in wanted):
        return []
    disks = [device for device in found if device.address is not None]
    _check(wanted, disks)
    free = {device.key: device.size - _IN_FRONT for device in disks}
    made: list[Array] = []
    # What has a size is laid out before what takes the rest, whatever their order is.
    for number, disk in sorted(enumerate(wanted), key=lambda entry: entry[1].get("size_gb") == "MAX"):
        members = _members(disk, disks)
        level, size = str(disk["raid_level"]), disk["size_gb"]
        # A size is that of each member's partition, at every level.
        part = min(free[member.key] for member in members) if size == "MAX" else int(size) * _GIB
        for member in members:
            free[member.key] -= part
            if part <= 0 or free[member.key] < 0:
                raise raid_failed(
                    f"Failed to create partitions on {member.name}: {size} GiB at RAID level {level} do not fit"
                )
        made.append(
            Array(
                device=f"/dev/md{number}",
                level=level,
                size=part * _shares(level, len(members)),
                members=[member.key for member in members],
                volume_name=disk.get("volume_name"),
            )
        )
    return sorted(made, key=lambda array: array.device)


def _check(wanted: Sequence[Mapping[str, Any]], disks: Sequence[Device]) -> None:
    wrong: list[str] = []
    if len(wanted) not in (1, 2):
        wrong.append("Software RAID configuration requires one or two logical disks")
    if any(disk.get("controller") != "software" for disk in wanted):
        wrong.append("Software RAID configuration requires all logical disks to have 'controller'='software'")
    if wanted[0].get("raid_level") != "1":
        wrong.append("Software RAID Configuration requires RAID-1 for the first logical disk")
    if [disk.get("size_gb") for disk in wanted].count("MAX") > 1:
        wrong.append("Software RAID can have only one RAID device with size 'MAX'")
    for disk in wanted[1:]:
        level = str(disk.get("raid_level"))
        if level not in LEVELS:
            wrong.append(f"Software RAID configuration does not support RAID level {level}")
        elif len(disks) < _LEAST_MEMBERS.get(level, 0):
            wrong.append(
                f"Software RAID configuration is not possible for RAID level {level} "
                f"with only {len(disks)} block devices found."
            )
    if wrong:
        raise raid_failed("Could not validate Software RAID config for node: " + "; ".join(wrong))


def _members(disk: Mapping[str, Any], found: Sequence[Device]) -> list[Device]:
    hints = disk.get("physical_disks")
    if not hints:
        return list(found)
    members: list[Device] = []
    for hint in hints:
        if not isinstance(hint, dict):
            raise raid_failed(
                "The physical_disks parameter for software RAID must be a list of device hints (dictionaries)"
            )
        match = next((one for one in found if one not in members and meets(one, hint)), None)
        if match is None:
            names = [device.name for device in found]
            raise raid_failed(f"No candidates for physical disk {hint} from the list {names}")
        members.append(match)
    return members


def _shares(level: str, members: int) -> int:
    """How many members' worth of data an array holds."""
    match level:
        case "0":
            return members
        case "1+0":
            return max(1, members // 2)
        case "5":
            return members - 1
        case "6":
            return members - 2
    return 1
