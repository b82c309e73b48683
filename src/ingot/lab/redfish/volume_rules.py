"""Which volumes can be: levels, numbers of drives, capacities. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ingot.lab.hardware import Drive, Storage
from ingot.lab.redfish.answers import Refusal

TYPES: Final = {
    "RAID0": "NonRedundant",
    "RAID1": "Mirrored",
    "RAID5": "StripedWithParity",
    "RAID6": "StripedWithParity",
    "RAID10": "SpannedMirrors",
    "RAID50": "SpannedStripesWithParity",
    "RAID60": "SpannedStripesWithParity",
}
_LEAST: Final = {"RAID0": 1, "RAID1": 2, "RAID5": 3, "RAID6": 4, "RAID10": 4, "RAID50": 6, "RAID60": 8}
_FROM_TYPE: Final = {
    "NonRedundant": "RAID0",
    "Mirrored": "RAID1",
    "StripedWithParity": "RAID5",
    "SpannedMirrors": "RAID10",
    "SpannedStripesWithParity": "RAID50",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    raid_type: str
    capacity: int | None
    drives: tuple[str, ...]
    """None given: the controller chooses."""
    name: str


def wanted(body: Mapping[str, Any], storage_path: str) -> Wanted:
    """What a client asks for; a `Refusal` when it makes no sense."""
    raid_type = str(body.get("RAIDType") or _FROM_TYPE.get(str(body.get("VolumeType")), ""))
    if raid_type not in TYPES:
        raise Refusal(
            400, "PropertyMissing", f"RAIDType must be one of {', '.join(TYPES)}.", args=["RAIDType"]
        )
    capacity, name = body.get("CapacityBytes"), body.get("Name")
    if capacity is not None and (not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1):
        raise Refusal(400, "PropertyValueFormatError", "CapacityBytes must be a number of bytes.")
    if name is not None and not isinstance(name, str):
        raise Refusal(400, "PropertyValueTypeError", "Name must be text.")
    return Wanted(raid_type=raid_type, capacity=capacity, drives=_drives(body, storage_path), name=name or "")


def _drives(body: Mapping[str, Any], storage_path: str) -> tuple[str, ...]:
    links = body.get("Links")
    listed = links.get("Drives") if isinstance(links, dict) else body.get("Drives")
    if listed is None:
        return ()
    prefix, found = f"{storage_path}/Drives/", []
    for entry in listed if isinstance(listed, list) else [None]:
        path = entry.get("@odata.id") if isinstance(entry, dict) else None
        if not isinstance(path, str) or not path.startswith(prefix):
            raise Refusal(
                400,
                "PropertyValueNotInList",
                f"Links.Drives must be drives of this controller, not {path!r}.",
            )
        found.append(path.removeprefix(prefix))
    return tuple(found)


def placed(asked: Wanted, storage: Storage, free: Sequence[Drive]) -> tuple[list[str], int]:
    """The drives that the volume takes, and its capacity."""
    if asked.raid_type not in storage.raid_types:
        raise Refusal(
            400, "PropertyValueNotInList", f"The controller {storage.name} cannot do {asked.raid_type}."
        )
    if len(set(asked.drives)) != len(asked.drives):
        raise Refusal(400, "PropertyValueConflict", "Links.Drives must name each drive once.")
    by_id = {drive.id: drive for drive in free}
    if lacking := [id_ for id_ in asked.drives if id_ not in by_id]:
        raise Refusal(400, "ResourceInUse", f"The drives {', '.join(lacking)} are in use, or not there.")
    chosen = list(asked.drives) or _chosen(asked, free)
    if len(chosen) < _LEAST[asked.raid_type]:
        raise Refusal(
            400,
            "InsufficientResources",
            f"{asked.raid_type} needs {_LEAST[asked.raid_type]} free drives, there are {len(chosen)}.",
        )
    largest = capacity_of(asked.raid_type, [by_id[id_] for id_ in chosen])
    if asked.capacity is not None and asked.capacity > largest:
        raise Refusal(
            400,
            "InsufficientResources",
            f"The drives hold {largest} bytes as {asked.raid_type}, {asked.capacity} were asked for.",
        )
    return chosen, asked.capacity or largest


def _chosen(asked: Wanted, free: Sequence[Drive]) -> list[str]:
    """The largest drives first: the small one is what the operating system is on."""
    largest = sorted(free, key=lambda drive: -drive.size)
    return [drive.id for drive in largest[: _LEAST[asked.raid_type]]]


def capacity_of(raid_type: str, drives: Sequence[Drive]) -> int:
    smallest, count = min(drive.size for drive in drives), len(drives)
    match raid_type:
        case "RAID0":
            return smallest * count
        case "RAID1":
            return smallest
        case "RAID10":
            return smallest * (count // 2)
        case "RAID5":
            return smallest * (count - 1)
        case "RAID6" | "RAID50":
            return smallest * (count - 2)
    return smallest * (count - 4)
