"""Preparing through the Ironic back end: RAID volumes and firmware of a machine without a system."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic, long_ago
from ironic_orders import NODE, Guard

from ingot.api.baremetalhost import RAID, HardwareRAIDVolume, RootDeviceHints, SoftwareRAIDVolume
from ingot.api.hostfirmwarecomponents import FirmwareUpdate
from ingot.provisioner import (
    Act,
    BackendUnavailable,
    Busy,
    Failed,
    FirmwareChange,
    HostRef,
    NotRegistered,
    Preparation,
    Ready,
)
from ingot.provisioner.ironic import IronicProvisioner

DELETE = {"interface": "raid", "step": "delete_configuration"}
CREATE = {"interface": "raid", "step": "create_configuration"}
ERASE = {"interface": "deploy", "step": "erase_devices_metadata"}
MIRROR = HardwareRAIDVolume(level="1", size_gibibytes=100, name="system", rotational=False)
SETTINGS = Preparation(name="one", firmware=FirmwareChange(settings={"Turbo": "Enabled"}))
HARDWARE = Preparation(name="one", raid=RAID(hardware_raid_volumes=[MIRROR]))
NOTHING = Preparation(name="nothing")
UNDER_WAY = Busy("changing RAID volumes or firmware", begun=True)


@pytest.fixture
def known(ironic: FakeIronic, host: HostRef) -> HostRef:
    node = ironic.add_node(NODE, power_state="power off", provision_updated_at=long_ago(5))
    return replace(host, backend_id=node["uuid"])


async def prepare(backend, host, guard: Guard, wanted: Preparation = SETTINGS, *, again: bool = False):
    return await backend.prepare(host, wanted, permit=guard, again=again)


async def test_firmware_settings_are_applied_once(backend, ironic, plugin, known, guard):
    for _ in range(2):
        assert await prepare(backend, known, guard) == UNDER_WAY
        await plugin.delivered()
    ironic.finish(NODE)
    await plugin.delivered()
    for _ in range(3):
        assert await prepare(backend, known, guard) == Ready(None)
    assert ironic.clean_steps == [
        [
            {
                "interface": "bios",
                "step": "apply_configuration",
                "args": {"settings": [{"name": "Turbo", "value": "Enabled"}]},
            }
        ]
    ]
    assert guard.acts == [Act.CLEAN]
    assert ironic.node(NODE)["provision_state"] == "manageable"


async def test_an_order_of_another_name_is_another_order(backend, ironic, known, guard):
    for name in ("one", "two"):
        assert isinstance(await prepare(backend, known, guard, replace(SETTINGS, name=name)), Busy)
        ironic.finish(NODE)
        assert await prepare(backend, known, guard, replace(SETTINGS, name=name)) == Ready(None)
    assert len(ironic.clean_steps) == 2


async def test_a_new_order_waits_for_the_one_that_is_under_way(backend, ironic, known, guard):
    await prepare(backend, known, guard)
    newer = replace(SETTINGS, name="two")
    assert await prepare(backend, known, guard, newer) == replace(UNDER_WAY, begun=False)
    assert len(ironic.clean_steps) == 1
    ironic.finish(NODE)
    assert isinstance(await prepare(backend, known, guard, newer), Busy)
    assert len(ironic.clean_steps) == 2


@pytest.mark.parametrize("state", ["manageable", "available"])
async def test_an_order_without_a_change_is_done_as_soon_as_nothing_is_under_way(
    backend, ironic, known, guard, state
):
    ironic.change(NODE, provision_state=state)
    assert await prepare(backend, known, guard, NOTHING) == Ready(None)
    ironic.change(NODE, provision_state="cleaning", target_provision_state="manageable")
    assert isinstance(await prepare(backend, known, guard, NOTHING), Busy)
    assert ironic.verbs == []
    assert guard.asked == []


async def test_a_host_that_was_made_available_is_taken_back_first(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    assert isinstance(await prepare(backend, known, guard), Busy)
    assert ironic.verbs == ["manage", "clean"]


async def test_nothing_is_changed_where_that_is_refused(backend, ironic, known, guard):
    guard.refuses = {Act.CLEAN}
    assert await prepare(backend, known, guard, HARDWARE) == Busy("nobody asked for clean")
    assert ironic.verbs == []
    assert ironic.raid_configs == []
    assert ironic.node(NODE)["extra"] == {}


async def test_a_host_with_a_system_is_never_prepared(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="active")
    told = await prepare(backend, known, guard, again=True)
    assert isinstance(told, Failed)
    assert "an operating system may run on it" in told.message
    assert ironic.verbs == []


async def test_a_host_that_ironic_does_not_know_has_to_be_registered(backend, host, guard):
    assert isinstance(await prepare(backend, host, guard), NotRegistered)


# Interrupted


async def test_an_operator_that_dies_between_the_note_and_the_order_gives_it_after_its_restart(
    backend, ironic, where, known, guard
):
    ironic.lost_verb = "clean"
    with pytest.raises(BackendUnavailable):
        await prepare(backend, known, guard)
    assert ironic.node(NODE)["extra"]["ingot_preparation"]["name"] == "one"
    async with IronicProvisioner(where) as second:
        assert isinstance(await prepare(second, known, guard), Busy)
    assert len(ironic.clean_steps) == 1


async def test_an_order_for_which_ironic_had_nobody_is_given_again_and_not_taken_for_done(
    backend, ironic, where, known, guard
):
    """Ironic moves the node on and back again: it is not as it was before, and nothing was done."""
    ironic.no_worker_for = "clean"
    with pytest.raises(BackendUnavailable):
        await prepare(backend, known, guard)
    async with IronicProvisioner(where) as second:
        assert await prepare(second, known, guard) == UNDER_WAY
        ironic.finish(NODE)
        assert await prepare(second, known, guard) == Ready(None)
    assert len(ironic.clean_steps) == 1


async def test_an_operator_that_dies_after_the_order_does_not_give_it_twice(
    backend, ironic, where, known, guard
):
    await prepare(backend, known, guard)
    async with IronicProvisioner(where) as second:
        assert await prepare(second, known, guard) == UNDER_WAY
        ironic.finish(NODE)
    async with IronicProvisioner(where) as third:
        assert await prepare(third, known, guard) == Ready(None)
    assert len(ironic.clean_steps) == 1


async def test_an_ironic_that_dies_in_the_middle_goes_on_without_an_error(backend, ironic, known, guard):
    await prepare(backend, known, guard)
    ironic.restart()
    assert isinstance(await prepare(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "cleaning"
    ironic.finish(NODE)
    assert await prepare(backend, known, guard) == Ready(None)
    assert len(ironic.clean_steps) == 2


async def test_an_order_that_was_cut_off_is_begun_again_with_all_of_it(backend, ironic, where, known, guard):
    """What was begun counts as done to those who noted it, so they ask for less under the same name."""
    await prepare(backend, known, guard, replace(HARDWARE, firmware=SETTINGS.firmware))
    ironic.restart()
    # The operator dies in the middle of going on, and the next one knows no more than what is noted.
    ironic.lost_verb = "manage"
    with pytest.raises(BackendUnavailable):
        await prepare(backend, known, guard, Preparation(name="one"))
    async with IronicProvisioner(where) as second:
        assert await prepare(second, known, guard, Preparation(name="one")) == UNDER_WAY
        ironic.finish(NODE)
        assert await prepare(second, known, guard, Preparation(name="one")) == Ready(None)
    assert ironic.clean_steps[0] == ironic.clean_steps[1]
    assert ironic.raid_configs[0] == ironic.raid_configs[1]


async def test_only_the_round_that_was_cut_off_is_begun_again(backend, ironic, known, guard):
    wanted = Preparation(name="one", raid=RAID(hardware_raid_volumes=[MIRROR], software_raid_volumes=[]))
    await prepare(backend, known, guard, wanted)
    ironic.finish(NODE)
    await prepare(backend, known, guard, wanted)
    ironic.restart()
    await prepare(backend, known, guard, wanted)
    assert ironic.clean_steps == [[DELETE], [DELETE, CREATE], [DELETE, CREATE]]


async def test_what_an_order_was_made_of_is_not_kept_when_it_is_done(backend, ironic, known, guard):
    """A URL can hold a password, and Ironic shows this part of its record to everybody."""
    update = FirmwareUpdate(component="bmc", url="https://files:s3cret@127.0.0.1/bmc.bin")
    wanted = Preparation(name="one", firmware=FirmwareChange(updates=(update,)))
    await prepare(backend, known, guard, wanted)
    ironic.finish(NODE)
    for _ in range(2):
        assert await prepare(backend, known, guard, wanted) == Ready(None)
    assert "s3cret" not in str(ironic.node(NODE)["extra"])
    assert len(ironic.clean_steps) == 1
    assert ironic.asked("PATCH") == 2


async def test_another_node_knows_of_no_order(backend, ironic, known, guard):
    await prepare(backend, known, guard)
    ironic.finish(NODE)
    ironic.lose_database()
    node = ironic.add_node(NODE, provision_updated_at=long_ago(1))
    assert isinstance(await prepare(backend, replace(known, backend_id=node["uuid"]), guard), Busy)


# Failed


async def test_a_failure_is_told_with_its_reason_and_the_order_is_begun_again_when_due(
    backend, ironic, known, guard
):
    await prepare(backend, known, guard)
    reason = f"Firmware update failed for node {known.backend_id}, firmware http://x/bios.exe. Error: bad signature"
    ironic.fail(NODE, reason, remember=False, maintenance=True, fault="clean failure")
    for _ in range(2):
        told = await prepare(backend, known, guard)
        assert isinstance(told, Failed)
        assert told.message.startswith("changing the RAID volumes or the firmware failed: ")
        assert told.message.endswith("bad signature")
    assert isinstance(await prepare(backend, known, guard, again=True), Busy)
    assert ironic.node(NODE)["maintenance"] is False
    assert ironic.verbs == ["clean", "manage", "clean"]
    ironic.finish(NODE)
    assert await prepare(backend, known, guard, again=True) == Ready(None)


async def test_a_failure_that_came_before_the_caller_looked_is_told_before_the_next_attempt(
    backend, ironic, known, guard
):
    await prepare(backend, known, guard)
    ironic.fail(NODE, "no")
    await prepare(backend, known, guard)
    await prepare(backend, known, guard, again=True)
    ironic.fail(NODE, "still no")
    told = await prepare(backend, known, guard, again=True)
    assert isinstance(told, Failed)
    assert "still no" in told.message


async def test_an_order_that_replaces_a_failed_one_is_begun_once_its_failure_was_told(
    backend, ironic, known, guard
):
    await prepare(backend, known, guard)
    ironic.fail(NODE, "no", maintenance=True, fault="clean failure")
    assert isinstance(await prepare(backend, known, guard, replace(SETTINGS, name="two")), Failed)
    assert isinstance(await prepare(backend, known, guard, replace(SETTINGS, name="two")), Busy)
    assert len(ironic.clean_steps) == 2


async def test_a_failed_order_that_was_taken_back_is_over(backend, ironic, known, guard):
    await prepare(backend, known, guard)
    ironic.fail(NODE, "no", maintenance=True, fault="clean failure")
    assert isinstance(await prepare(backend, known, guard, NOTHING), Failed)
    assert await prepare(backend, known, guard, NOTHING) == Ready(None)
    assert ironic.node(NODE)["provision_state"] == "manageable"
    assert ironic.node(NODE)["maintenance"] is False


async def test_a_failed_order_is_not_taken_for_done_after_another_verb_went_on(backend, ironic, known, guard):
    await prepare(backend, known, guard)
    ironic.fail(NODE, "no")
    await prepare(backend, known, guard)
    await backend.deprovision(known, automated_cleaning=True, permit=guard, again=True)
    ironic.finish(NODE)
    assert isinstance(await prepare(backend, known, guard), Busy)
    assert len(ironic.clean_steps) == 2


async def test_a_machine_that_never_takes_a_setting_is_told_although_its_ramdisk_reports(
    backend, ironic, known, guard
):
    await prepare(backend, known, guard)
    ironic.change(NODE, provision_state="clean wait")
    assert isinstance(await prepare(backend, known, guard), Busy)
    ironic.node(NODE)["extra"]["ingot_preparation"]["at"] -= 7 * 3600
    told = await prepare(backend, known, guard)
    assert isinstance(told, Failed)
    assert "under way for more than 6 hours" in told.message
    await prepare(backend, known, guard, again=True)
    assert ironic.verbs == ["clean", "abort"]


async def test_a_ramdisk_that_reports_no_more_is_told_and_then_given_up(backend, ironic, known, guard):
    await prepare(backend, known, guard)
    ironic.change(NODE, provision_state="clean wait")
    ironic.node(NODE)["provision_updated_at"] = long_ago(90)
    told = await prepare(backend, known, guard)
    assert isinstance(told, Failed)
    assert "no progress since" in told.message
    assert isinstance(await prepare(backend, known, guard, again=True), Busy)
    assert ironic.verbs == ["clean", "abort"]
    assert isinstance(await prepare(backend, known, guard, again=True), Busy)
    assert ironic.verbs == ["clean", "abort", "manage", "clean"]


# RAID volumes


async def test_hardware_volumes_take_the_place_of_those_that_are_there(backend, ironic, known, guard):
    assert isinstance(await prepare(backend, known, guard, HARDWARE), Busy)
    assert ironic.raid_configs == [
        {
            "logical_disks": [
                {
                    "raid_level": "1",
                    "size_gb": 100,
                    "volume_name": "system",
                    "disk_type": "ssd",
                    "is_root_volume": True,
                }
            ]
        }
    ]
    assert ironic.clean_steps == [[DELETE, CREATE]]
    assert ironic.node(NODE)["raid_interface"] == "redfish"


async def test_all_that_can_be_said_of_a_hardware_volume_is_said(backend, ironic, known, guard):
    volume = HardwareRAIDVolume(
        level="1+0",
        controller="RAID.Integrated.1",
        physical_disks=["Disk.0", "Disk.1"],
        number_of_physical_disks=2,
        rotational=True,
    )
    hints = RootDeviceHints(serial_number="abc")
    wanted = Preparation(name="one", raid=RAID(hardware_raid_volumes=[volume]), root_device=hints)
    await prepare(backend, known, guard, wanted)
    assert ironic.raid_configs[0]["logical_disks"] == [
        {
            "raid_level": "1+0",
            "size_gb": "MAX",
            "controller": "RAID.Integrated.1",
            "physical_disks": ["Disk.0", "Disk.1"],
            "number_of_physical_disks": 2,
            "disk_type": "hdd",
        }
    ]


async def test_software_volumes_are_made_by_the_ramdisk(backend, ironic, known, guard):
    disks = [RootDeviceHints(serial_number="a"), RootDeviceHints(min_size_gigabytes=10)]
    volumes = [
        SoftwareRAIDVolume(level="1", size_gibibytes=50, physical_disks=disks),
        SoftwareRAIDVolume(level="0", root_volume=True),
    ]
    wanted = Preparation(name="one", raid=RAID(software_raid_volumes=volumes))
    await prepare(backend, known, guard, wanted)
    assert ironic.node(NODE)["raid_interface"] == "agent"
    assert ironic.clean_steps == [[DELETE, ERASE, CREATE]]
    assert ironic.raid_configs[0]["logical_disks"] == [
        {
            "raid_level": "1",
            "size_gb": 50,
            "controller": "software",
            "physical_disks": [{"serial": "s== a"}, {"size": ">= 10"}],
        },
        {"raid_level": "0", "size_gb": "MAX", "controller": "software", "is_root_volume": True},
    ]


async def test_an_empty_list_removes_all_volumes_of_that_sort(backend, ironic, known, guard):
    wanted = Preparation(name="one", raid=RAID(hardware_raid_volumes=[]))
    await prepare(backend, known, guard, wanted)
    assert ironic.raid_configs == [{}]
    assert ironic.clean_steps == [[DELETE]]


async def test_volumes_of_both_sorts_take_two_rounds_and_a_restart_goes_on_with_the_second(
    backend, ironic, where, known, guard
):
    ironic.change(NODE, raid_interface="agent")
    wanted = Preparation(
        name="one",
        raid=RAID(hardware_raid_volumes=[MIRROR], software_raid_volumes=[]),
        firmware=FirmwareChange(updates=(FirmwareUpdate(component="bios", url="http://x/bios.exe"),)),
    )
    for _ in range(2):
        assert await prepare(backend, known, guard, wanted) == replace(UNDER_WAY, begun=False)
    assert ironic.clean_steps == [[DELETE]]
    assert ironic.node(NODE)["raid_interface"] == "agent"
    ironic.finish(NODE)
    async with IronicProvisioner(where) as second:
        assert await prepare(second, known, guard, wanted) == UNDER_WAY
        assert ironic.node(NODE)["raid_interface"] == "redfish"
        ironic.finish(NODE)
        assert await prepare(second, known, guard, wanted) == Ready(None)
    update = {
        "interface": "firmware",
        "step": "update",
        "args": {"settings": [{"component": "bios", "url": "http://x/bios.exe"}]},
    }
    assert ironic.clean_steps == [[DELETE], [DELETE, CREATE, update]]


@pytest.mark.parametrize(
    ("interface", "raid", "why"),
    [
        ("no-raid", RAID(hardware_raid_volumes=[MIRROR]), "no interface to the RAID controller"),
        ("redfish", RAID(hardware_raid_volumes=[HardwareRAIDVolume(level="1")]), "needs physicalDisks"),
        (
            "agent",
            RAID(hardware_raid_volumes=[HardwareRAIDVolume(level="1")], software_raid_volumes=[]),
            "needs physicalDisks",
        ),
        (
            "redfish",
            RAID(hardware_raid_volumes=[MIRROR], software_raid_volumes=[SoftwareRAIDVolume(level="1")]),
            "either hardware or software",
        ),
    ],
)
async def test_volumes_that_cannot_be_made_cost_nobody_those_that_are_there(
    backend, ironic, known, guard, interface, raid, why
):
    ironic.change(NODE, raid_interface=interface)
    for again in (False, True):
        told = await prepare(backend, known, guard, Preparation(name="one", raid=raid), again=again)
        assert isinstance(told, Failed)
        assert why in told.message
    assert ironic.verbs == []


async def test_a_preparation_that_says_nothing_of_volumes_leaves_them_alone(backend, ironic, known, guard):
    wanted = Preparation(name="one", raid=RAID())
    assert await prepare(backend, known, guard, wanted) == Ready(None)
    assert ironic.verbs == []
    await prepare(backend, known, guard, SETTINGS)
    assert ironic.raid_configs == []
