"""Hosts that live on Ironic 38, which is not the one that all other tests have: from nothing to an image and back, with another
firmware, and through a kill of Ironic."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ironic_kills import MOMENTS, Campaign
from ironic_room import NEEDS, Room, can_run
from stories import Stories

from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.lab.views import ServerView

stories = Stories()

USER_DATA = "#cloud-config\nhostname: told-by-user-data\n"
NETWORK_DATA = {
    "links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"}],
    "networks": [{"id": "n0", "link": "eth0", "type": "ipv4_dhcp"}],
    "services": [],
}
KILLED_AT = "after the wipe", "writing the image", "after the image"


class Room38(Room):
    version = "38"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Room]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    async with Room38.open(tmp_path_factory.mktemp("room-38"), servers=2 + len(KILLED_AT)) as room:
        assert "Ironic 38 starts" in (room.state / "ironic.log").read_text()
        yield room
        await stories.end()


@stories.story
async def test_a_host_lives_from_nothing_to_an_image_and_back_and_the_server_confirms_each_step(
    room: Room,
) -> None:
    host = room.server()
    await host.create(automatedCleaningMode="metadata")
    await host.reaches("available")
    hardware = (await room.client.get(HARDWARE_DATA, host.key)).spec.hardware
    assert {nic.mac for nic in hardware.nics} == set(host.plate.macs)

    await host.change(
        image=host.image("raw"),
        userData=await host.secret("user-data", userData=USER_DATA),
        networkData=await host.secret("network-data", networkData=json.dumps(NETWORK_DATA)),
    )
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == room.lab.file.image("raw").disk_sha256
    assert seen.running.user_data == USER_DATA
    assert seen.running.network_data == NETWORK_DATA
    assert (seen.deployments, seen.cleanings) == (1, 1)

    again = await host.reboot()
    assert (again.running, again.deployments) == (seen.running, 1)

    await host.change(image=None)
    await host.reaches("available")
    seen = await host.seen()
    assert (seen.running, seen.deployments, seen.cleanings) == (None, 1, 2)
    assert not await host.troubles()

    await host.delete()
    assert (await host.seen()).power == "Off"
    assert await host.node() is None


@stories.story
async def test_a_setting_and_firmware_are_changed_before_a_host_is_available_again(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled")
    await host.reaches("available")
    await host.wants_settings(ProcTurboMode="Disabled")
    await host.wants_firmware("bios", "2.0.0")

    def is_done(seen: ServerView) -> bool:
        parts = seen.components
        return parts.bios.get("ProcTurboMode") == "Disabled" and parts.versions.get("bios") == "2.0.0"

    await host.until_seen(is_done, "configured")
    await room.until_object(
        HOST_FIRMWARE_COMPONENTS,
        host.name,
        lambda found: (
            {one.component: one.current_version for one in found.status.components}["bios"] == "2.0.0"
        ),
    )
    await host.until_well("available")
    assert not await host.troubles()


@pytest.mark.asyncio(loop_scope="session")
async def test_an_ironic_killed_while_it_wipes_and_writes_goes_on_and_no_server_is_wiped_or_deployed_twice(
    room: Room, request: pytest.FixtureRequest
) -> None:
    # The hosts of the stories have an Ironic that is not killed.
    await stories.all_told(room, request.session.items)
    moments = {moment.name: moment for moment in MOMENTS}
    campaign = Campaign(room, [moments[name] for name in KILLED_AT])
    await campaign.park()
    await campaign.kill("ironic")
    await campaign.release()
    await campaign.arrive()
    assert not await campaign.complaints()
    for _, host in campaign.parked:
        assert not await host.troubles()
