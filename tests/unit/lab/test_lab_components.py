"""The rules of a server's parts: what a boot makes true, how a task ends. Pure."""

from __future__ import annotations

import msgspec
import pytest

from ingot.lab.components import (
    MOST_TASKS,
    Components,
    ConfigureBios,
    CreateVolume,
    DeleteVolume,
    UpdateFirmware,
    Volume,
    at_boot,
    begin,
    clear_tasks,
    finish,
    remove_task,
)
from ingot.lab.faults import Faults
from ingot.lab.hardware import Drive, Storage
from ingot.lab.redfish.answers import Refusal
from ingot.lab.redfish.volume_rules import Wanted, capacity_of, placed
from ingot.lab.redfish.workshop import Unfit, identify

GOOD = Faults()
DRIVES = [Drive(id=str(number), model="disk", size=100) for number in range(1, 9)]
STORAGE = Storage(id="1", name="RAID", raid_types=("RAID0", "RAID1", "RAID5", "RAID10"))


def volume(id_: str, *drives: str) -> Volume:
    return Volume(id=id_, storage="1", name=id_, raid_type="RAID1", capacity=100, drives=list(drives))


def test_a_boot_applies_settings_that_waited_and_only_once() -> None:
    parts = Components(bios={"A": 1}, bios_pending={"B": True})
    at_boot(parts, GOOD, secure_boot=True)
    assert (parts.bios, parts.bios_pending, parts.secure_boot_now) == ({"A": 1, "B": True}, {}, True)


def test_a_reset_comes_before_the_settings_that_were_given_after_it() -> None:
    parts = Components(bios={"A": 1}, bios_reset=True, bios_pending={"B": 2})
    at_boot(parts, GOOD, secure_boot=False)
    assert (parts.bios, parts.bios_reset) == ({"B": 2}, False)


def test_ignored_settings_stay_pending_and_so_does_their_job() -> None:
    parts = Components(bios_pending={"B": 2})
    task = begin(parts, ConfigureBios(), "BIOS", state="Pending")
    at_boot(parts, Faults(bios_ignored=True), secure_boot=False)
    assert (parts.bios, parts.bios_pending, task.state) == ({}, {"B": 2}, "Pending")


def test_who_wants_to_know_is_told_which_fault_was_acted_out() -> None:
    acted: list[str] = []
    ignored, failing = Faults(bios_ignored=True), Faults(fail_tasks="no")
    at_boot(Components(), ignored, secure_boot=False, acted=acted.append)
    assert acted == [], "there was nothing to ignore"
    at_boot(Components(bios_pending={"B": 2}), ignored, secure_boot=False, acted=acted.append)
    parts = Components()
    finish(parts, begin(parts, CreateVolume(volume=volume("1", "1")), "volume"), failing, acted.append)
    finish(parts, begin(parts, ConfigureBios(), "BIOS"), failing, acted.append)
    assert acted == ["bios_ignored", "fail_tasks"]


def test_a_server_without_keys_boots_insecurely() -> None:
    parts = Components(secure_boot_keys=False)
    at_boot(parts, GOOD, secure_boot=True)
    assert not parts.secure_boot_now


def test_a_boot_ends_the_tasks_that_waited_for_it() -> None:
    parts = Components(volumes=[volume("1", "1", "2")])
    gone = begin(parts, DeleteVolume(storage="1", volume="1"), "delete", state="Pending")
    flashed = begin(parts, UpdateFirmware(url="u", component="bios", version="2"), "update", state="Pending")
    at_boot(parts, GOOD, secure_boot=False)
    assert (gone.state, flashed.state, flashed.percent) == ("Completed", "Completed", 100)
    assert (parts.volumes, parts.versions) == ([], {"bios": "2"})


def test_a_task_that_is_to_fail_changes_nothing_and_says_why() -> None:
    parts = Components()
    task = begin(parts, CreateVolume(volume=volume("1", "1")), "create")
    finish(parts, task, Faults(fail_tasks="The battery is empty."))
    assert (task.state, task.message, parts.volumes) == ("Exception", "The battery is empty.", [])


def test_two_volumes_do_not_share_a_drive() -> None:
    parts = Components(volumes=[volume("1", "1", "2")])
    task = begin(parts, CreateVolume(volume=volume("2", "2", "3")), "create")
    finish(parts, task, GOOD)
    assert task.state == "Exception"
    assert "in use" in task.message


def test_clearing_the_queue_forgets_the_settings_that_waited_in_it() -> None:
    parts = Components(bios_pending={"B": 2})
    begin(parts, ConfigureBios(), "BIOS", state="Pending")
    clear_tasks(parts)
    assert (parts.tasks, parts.bios_pending) == ([], {})


def test_settings_are_forgotten_with_the_last_job_that_would_have_applied_them() -> None:
    parts = Components(bios_pending={"B": 2})
    first, second = (begin(parts, ConfigureBios(), "BIOS", state="Pending") for _ in range(2))
    other = begin(parts, DeleteVolume(storage="1", volume="1"), "delete")
    remove_task(parts, first)
    assert parts.bios_pending == {"B": 2}
    remove_task(parts, second)
    assert (parts.tasks, parts.bios_pending) == ([other], {})


def test_tasks_that_have_ended_are_forgotten_one_day_and_live_ones_never() -> None:
    parts = Components()
    live = begin(parts, ConfigureBios(), "BIOS", state="Pending")
    for _ in range(2 * MOST_TASKS):
        finish(parts, begin(parts, DeleteVolume(storage="1", volume="1"), "delete"), GOOD)
    assert parts.tasks[0] is live
    assert len(parts.tasks) == MOST_TASKS + 1
    assert len({task.id for task in parts.tasks}) == len(parts.tasks)


def test_parts_survive_being_written_and_read() -> None:
    parts = Components(bios={"A": 1, "B": True, "C": "x"}, volumes=[volume("1", "1")])
    begin(parts, UpdateFirmware(url="u"), "update")
    begin(parts, CreateVolume(volume=volume("2", "2")), "create", state="Pending")
    again = msgspec.json.decode(msgspec.json.encode(parts), type=Components)
    assert again == parts
    assert again.bios["B"] is True


@pytest.mark.parametrize(
    ("raid_type", "count", "capacity"),
    [
        ("RAID0", 2, 200),
        ("RAID1", 2, 100),
        ("RAID5", 3, 200),
        ("RAID6", 4, 200),
        ("RAID10", 4, 200),
        ("RAID50", 6, 400),
        ("RAID60", 8, 400),
    ],
)
def test_a_volume_holds_what_its_level_leaves(raid_type: str, count: int, capacity: int) -> None:
    assert capacity_of(raid_type, DRIVES[:count]) == capacity


def test_a_controller_that_may_choose_takes_the_largest_drives() -> None:
    small = [Drive(id="0", model="small", size=10), *DRIVES[:2]]
    asked = Wanted(raid_type="RAID1", capacity=None, drives=(), name="")
    assert placed(asked, STORAGE, small) == (["1", "2"], 100)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Wanted(raid_type="RAID6", capacity=None, drives=(), name=""), "cannot do RAID6"),
        (Wanted(raid_type="RAID1", capacity=None, drives=("1", "9"), name=""), "9 are in use"),
        (Wanted(raid_type="RAID5", capacity=None, drives=("1", "2"), name=""), "needs 3"),
        (Wanted(raid_type="RAID1", capacity=None, drives=("1", "1"), name=""), "each drive once"),
        (Wanted(raid_type="RAID1", capacity=101, drives=("1", "2"), name=""), "101 were asked for"),
    ],
)
def test_a_volume_that_cannot_be_is_refused(asked: Wanted, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        placed(asked, STORAGE, DRIVES)


@pytest.mark.parametrize(
    ("start", "url", "target", "found"),
    [
        (b"ingot-firmware bmc 3.1\nxyz", "https://h/bios-2.0.bin", "", ("bmc", "3.1")),
        (b"\x00", "https://h/x/BIOS_2.4.1.exe?sig=1", "", ("bios", "2.4.1")),
        (b"\x00", "https://h/ilo6-1.58.fwpkg", "", ("bmc", "1.58")),
        (b"\x00", "https://h/image-7.1.bin", "nic", ("nic", "7.1")),
    ],
)
def test_an_image_says_what_it_is(start: bytes, url: str, target: str, found: tuple[str, str]) -> None:
    assert identify(start, url, target) == found


@pytest.mark.parametrize("url", ["https://h/bios.bin", "https://h/thing-1.0.bin", "https://h/"])
def test_a_file_that_is_no_firmware_is_not_taken_for_one(url: str) -> None:
    with pytest.raises(Unfit, match="no firmware of this server"):
        identify(b"<html>", url, "")
