"""Rules for RAID volumes."""

from __future__ import annotations

from collections.abc import Iterator

from ingot.api.admission.errors import FieldError, forbidden, invalid, required
from ingot.api.baremetalhost import BareMetalHost
from ingot.api.installed import software_raid_under_coreos


def volumes(host: BareMetalHost) -> Iterator[FieldError]:
    raid = host.spec.raid
    if raid is None:
        return
    if raid.hardware_raid_volumes and raid.software_raid_volumes:
        yield forbidden(
            "spec.raid.softwareRAIDVolumes",
            None,
            "a host has either hardware or software RAID volumes. Remove one of the two lists.",
        )
    for index, volume in enumerate(raid.hardware_raid_volumes or ()):
        path = f"spec.raid.hardwareRAIDVolumes[{index}]"
        disks, number = volume.physical_disks, volume.number_of_physical_disks
        if disks and not volume.controller:
            yield required(
                f"{path}.controller",
                "physicalDisks are names that a RAID controller gave; say which controller.",
            )
        if disks and number is not None and number != len(disks):
            yield invalid(
                f"{path}.numberOfPhysicalDisks",
                number,
                f"physicalDisks lists {len(disks)}. Make the two agree, or leave the number out.",
            )


def root_volume(host: BareMetalHost) -> Iterator[FieldError]:
    """Where the operating system goes is said once, and it can boot from there."""
    software = (host.spec.raid.software_raid_volumes if host.spec.raid else None) or []
    roots = [index for index, volume in enumerate(software) if volume.root_volume]
    for index in roots[1:]:
        yield forbidden(
            f"spec.raid.softwareRAIDVolumes[{index}].rootVolume",
            True,
            f"only one volume can hold the operating system, and volume {roots[0]} does.",
        )
    for index in roots:
        path = f"spec.raid.softwareRAIDVolumes[{index}]"
        if software[index].level != "1":
            yield invalid(
                f"{path}.level",
                software[index].level,
                'the volume of the operating system has to be level "1": a machine cannot boot from others.',
            )
        if host.spec.root_device_hints is not None:
            yield forbidden(
                f"{path}.rootVolume",
                True,
                "spec.rootDeviceHints says already where the operating system goes. Remove one of the two.",
            )


def under_coreos(host: BareMetalHost) -> Iterator[FieldError]:
    if (problem := software_raid_under_coreos(host.spec)) is not None:
        yield forbidden("spec.raid.softwareRAIDVolumes", None, problem)
