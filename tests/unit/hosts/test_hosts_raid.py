"""What has to be made of RAID volumes, in tables."""

from __future__ import annotations

import pytest

from ingot.api.baremetalhost import RAID, HardwareRAIDVolume, SoftwareRAIDVolume
from ingot.hosts.states.raid import raid_begun, raid_done, raid_failed, raid_to_make, without_software

MIRROR = [HardwareRAIDVolume(level="1")]
STRIPE = [HardwareRAIDVolume(level="0")]
SOFT = [SoftwareRAIDVolume(level="1")]


def hard(volumes: list[HardwareRAIDVolume] | None) -> RAID:
    return RAID(hardware_raid_volumes=volumes)


def soft(volumes: list[SoftwareRAIDVolume] | None) -> RAID:
    return RAID(software_raid_volumes=volumes)


@pytest.mark.parametrize(
    ("wanted", "applied", "order"),
    [
        (None, None, None),
        (RAID(), None, None),
        (hard(MIRROR), None, hard(MIRROR)),
        (hard(MIRROR), hard(MIRROR), None),
        (hard(STRIPE), hard(MIRROR), hard(STRIPE)),
        (None, hard(MIRROR), None),
        (RAID(), hard(MIRROR), None),
        (hard([]), None, hard([])),
        (hard([]), hard([]), None),
        (hard([]), hard(MIRROR), hard([])),
        (soft(SOFT), None, soft(SOFT)),
        (soft(SOFT), soft(SOFT), None),
        (soft([]), soft(SOFT), soft([])),
        (soft([]), None, soft([])),
        (soft([]), soft([]), None),
        (None, soft(SOFT), soft([])),
        (None, soft([]), None),
        (
            hard(MIRROR),
            soft(SOFT),
            RAID(hardware_raid_volumes=MIRROR, software_raid_volumes=[]),
        ),
        (soft(SOFT), hard(MIRROR), soft(SOFT)),
    ],
    ids=[
        "nothing",
        "nothing in other words",
        "the first volumes",
        "volumes that are there",
        "other volumes",
        "null keeps what the controller has",
        "null inside keeps it too",
        "an empty list removes even what nobody knows of",
        "and does so once",
        "an empty list removes what was made",
        "software volumes",
        "software volumes that are there",
        "an empty list of software volumes",
        "an empty list of software volumes nobody knows of",
        "and that once",
        "null removes software volumes that were made",
        "null with none left",
        "from software to hardware",
        "from hardware to software leaves the hardware alone",
    ],
)
def test_what_has_to_be_made(wanted: RAID | None, applied: RAID | None, order: RAID | None) -> None:
    assert raid_to_make(wanted, applied) == order
    if order is not None:
        begun = raid_begun(wanted, order, applied)
        done = raid_done(wanted, order, begun)
        assert raid_to_make(wanted, done) is None, "what is done is not done again"
        assert raid_to_make(wanted, raid_failed(wanted, begun)) is not None, "what failed is done again"


def test_software_volumes_that_nobody_wants_count_as_there_until_they_are_gone() -> None:
    order = raid_to_make(None, soft(SOFT))
    assert order is not None
    assert raid_begun(None, order, soft(SOFT)) == soft(SOFT)
    assert raid_failed(None, soft(SOFT)) == soft(SOFT)
    assert raid_done(None, order, soft(SOFT)) is None


def test_a_failure_forgets_only_what_can_be_made_anew() -> None:
    assert raid_failed(hard(MIRROR), hard(MIRROR)) is None
    assert raid_failed(None, hard(MIRROR)) == hard(MIRROR)


def test_cleaned_disks_hold_no_software_volumes_and_the_controller_keeps_its_own() -> None:
    assert without_software(soft(SOFT)) is None
    assert without_software(hard(MIRROR)) == hard(MIRROR)
    assert without_software(None) is None
