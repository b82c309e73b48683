"""RAID volumes: what has to be made or removed, and what there is afterwards.

Pure. What was made is known from the status, which repeats what was last applied; volumes that somebody made by hand are not in
it. Null and an empty list are different things: null leaves alone what the RAID controller has, an empty list removes it.
Software volumes live on the disks themselves and are gone once the disks have been cleaned; those that nobody wants any more
are removed.
"""

from __future__ import annotations

from msgspec.structs import replace

from ingot.api.baremetalhost import RAID, BareMetalHostSpec

NOTHING = RAID()


def raid_to_make(wanted: RAID | None, applied: RAID | None) -> RAID | None:
    """What has to be changed; of a sort that is None in it nothing. None where all is as wanted."""
    want, have = wanted or NOTHING, applied or NOTHING
    hardware, software = want.hardware_raid_volumes, want.software_raid_volumes
    if software is None and have.software_raid_volumes:
        software = []
    order = RAID(
        hardware_raid_volumes=None if hardware == have.hardware_raid_volumes else hardware,
        software_raid_volumes=None if software == have.software_raid_volumes else software,
    )
    return order if order != NOTHING else None


def raid_begun(wanted: RAID | None, order: RAID, applied: RAID | None) -> RAID | None:
    """What counts as applied from the moment that the order was taken.

    Volumes that nobody mentions any more count as there until they are gone: were they forgotten, and the order failed, nobody
    would remove them.
    """
    if wanted is None or wanted.software_raid_volumes is None:
        order = replace(order, software_raid_volumes=None)
    return _applied(order, applied)


def raid_done(wanted: RAID | None, order: RAID, applied: RAID | None) -> RAID | None:
    """What there is once the order is fulfilled."""
    there = _applied(order, applied) or NOTHING
    if wanted is None or wanted.software_raid_volumes is None:
        there = replace(there, software_raid_volumes=None)
    return there if there != NOTHING else None


def raid_failed(wanted: RAID | None, applied: RAID | None) -> RAID | None:
    """What counts as applied after a failure: nothing that is wanted, so that all of it is made anew."""
    have, want = applied or NOTHING, wanted or NOTHING
    left = RAID(
        hardware_raid_volumes=have.hardware_raid_volumes if want.hardware_raid_volumes is None else None,
        software_raid_volumes=have.software_raid_volumes if want.software_raid_volumes is None else None,
    )
    return left if left != NOTHING else None


def without_software(applied: RAID | None) -> RAID | None:
    """What is left after the disks have been cleaned."""
    left = replace(applied or NOTHING, software_raid_volumes=None)
    return left if left != NOTHING else None


def has_software_volumes(spec: BareMetalHostSpec) -> bool:
    return spec.raid is not None and bool(spec.raid.software_raid_volumes)


def _applied(order: RAID, before: RAID | None) -> RAID | None:
    have = before or NOTHING
    there = RAID(
        hardware_raid_volumes=have.hardware_raid_volumes
        if order.hardware_raid_volumes is None
        else order.hardware_raid_volumes,
        software_raid_volumes=have.software_raid_volumes
        if order.software_raid_volumes is None
        else order.software_raid_volumes,
    )
    return there if there != NOTHING else None
