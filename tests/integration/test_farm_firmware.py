"""BIOS settings, firmware and RAID: while a host is prepared, and at a reboot of one in use; the server shows what it has."""

from __future__ import annotations

import msgspec
from fault_moments import HARDWARE_VOLUME, SOFTWARE_VOLUME
from ironic_room import Host, Room
from stories import story

from ingot.api.baremetalhost import Annotation
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.lab.views import ServerView


async def shows(host: Host, component: str, version: str) -> None:
    """The new version is in the object that its user looks at."""
    await host.room.until_object(
        HOST_FIRMWARE_COMPONENTS,
        host.name,
        lambda found: any(
            one.component == component and one.current_version == version for one in found.status.components
        ),
    )


@story
async def test_settings_and_firmware_are_changed_before_a_host_is_available_again(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled")
    await host.reaches("available")
    await host.wants_settings(ProcTurboMode="Disabled", BootTimeout=30)
    await host.wants_firmware("bios", "2.0.0")

    def is_done(seen: ServerView) -> bool:
        parts = seen.components
        return parts.bios.get("BootTimeout") == 30 and parts.versions.get("bios") == "2.0.0"

    seen = await host.until_seen(is_done, "configured")
    assert seen.components.bios["ProcTurboMode"] == "Disabled"
    await shows(host, "bios", "2.0.0")
    await room.until_object(
        HOST_FIRMWARE_SETTINGS,
        host.name,
        lambda found: msgspec.json.decode(found.status.settings).get("BootTimeout") == "30",
    )
    await host.until_well("available")
    assert not await host.troubles()


@story
async def test_volumes_of_a_raid_controller_are_made_before_the_image_and_it_goes_on_them(room: Room) -> None:
    host = room.server()
    volume = {"level": "1", "sizeGibibytes": 50, "name": "root", "numberOfPhysicalDisks": 2}
    await host.create(
        inspectionMode="disabled",
        raid={"hardwareRAIDVolumes": [volume]},
        rootDeviceHints={"model": "RAID1"},
        image=host.image(),
    )
    await host.reaches("provisioned")
    seen = await host.until_running()
    (made,) = seen.components.volumes
    assert (made.raid_type, made.capacity, len(made.drives)) == ("RAID1", 50 << 30, 2)
    assert list(seen.written) == [f"volume-{made.id}"]


@story
async def test_volumes_of_linux_are_made_before_the_image_and_it_goes_on_them(room: Room) -> None:
    host = room.server()
    disks = [{"rotational": True}, {"rotational": True}]
    volume = {"level": "1", "physicalDisks": disks}
    await host.create(
        inspectionMode="disabled",
        raid={"softwareRAIDVolumes": [volume]},
        rootDeviceHints={"deviceName": "/dev/md0"},
        image=host.image(),
    )
    await host.reaches("provisioned")
    seen = await host.until_running()
    (array,) = seen.arrays
    assert array.level == "1"
    assert list(seen.written) == [array.device.removeprefix("/dev/")]


@story
async def test_volumes_of_linux_take_the_place_of_those_of_the_controller_in_one_order(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled", raid={"hardwareRAIDVolumes": [HARDWARE_VOLUME]})
    await host.reaches("available")
    assert len((await host.seen()).components.volumes) == 1
    await host.change(raid={"hardwareRAIDVolumes": [], "softwareRAIDVolumes": [SOFTWARE_VOLUME]})
    seen = await host.until_seen(lambda seen: bool(seen.arrays), "with an array")
    assert seen.components.volumes == [], "the disks were free before they were used"
    await host.until_well("available")
    assert not await host.troubles()


@story
async def test_a_host_in_use_gets_settings_and_firmware_at_a_reboot_and_runs_on(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled", image=host.image())
    await room.create(
        HOST_UPDATE_POLICIES,
        host.name,
        spec={"firmwareSettings": "onReboot", "firmwareUpdates": "onReboot"},
    )
    await host.reaches("provisioned")
    before = await host.until_running()
    await host.wants_settings(QuietBoot="false")
    await host.wants_firmware("bmc", "3.1.0")
    assert (await host.seen()).boots == before.boots, "nothing is changed before somebody reboots it"

    await host.annotate(Annotation.REBOOT)
    seen = await host.until_seen(
        lambda seen: (
            seen.components.bios.get("QuietBoot") is False and seen.components.versions.get("bmc") == "3.1.0"
        ),
        "serviced",
    )
    await shows(host, "bmc", "3.1.0")
    await host.until(
        lambda found: found.status.operational_status == "OK" and found.status.powered_on, "well and on"
    )
    seen = await host.until_running()
    assert seen.running == before.running
    assert (seen.deployments, seen.cleanings) == (1, 0)
    assert not await host.troubles()
