"""Hosts from nothing to an image and back, on real Ironic: what the user's objects say, and what the server itself confirms."""

from __future__ import annotations

import json

from ironic_room import Host, Room
from stories import story

from ingot.api.hardwaredata import HARDWARE_DATA

USER_DATA = "#cloud-config\nhostname: told-by-user-data\n"
NETWORK_DATA = {
    "links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"}],
    "networks": [{"id": "n0", "link": "eth0", "type": "ipv4_dhcp"}],
    "services": [],
}


async def config_drive(host: Host) -> dict[str, object]:
    """Secrets with all that a config drive can hold, and the fields that name them."""
    return {
        "userData": await host.secret("user-data", userData=USER_DATA),
        "networkData": await host.secret("network-data", networkData=json.dumps(NETWORK_DATA)),
        "metaData": await host.secret("meta-data", metaData="rack: r7\n"),
    }


@story
async def test_a_host_lives_from_nothing_to_a_raw_image_and_back_and_the_server_confirms_each_step(
    room: Room,
) -> None:
    host = room.server()
    await host.create(image=host.image("raw"), automatedCleaningMode="metadata", **await config_drive(host))
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == room.lab.file.image("raw").disk_sha256
    assert seen.running.user_data == USER_DATA
    assert seen.running.network_data == NETWORK_DATA
    assert seen.running.meta_data["rack"] == "r7"
    assert seen.running.meta_data["metal3-name"] == host.name
    assert (seen.deployments, seen.cleanings) == (1, 1)
    assert not seen.media, "the ramdisk's medium is out of the drive"

    hardware = (await room.client.get(HARDWARE_DATA, host.key)).spec.hardware
    assert {nic.mac for nic in hardware.nics} == set(host.plate.macs)
    assert hardware.cpu.arch == "x86_64"
    assert hardware.storage

    await host.change(image=None)
    await host.reaches("available")
    seen = await host.seen()
    assert (seen.running, seen.deployments, seen.cleanings) == (None, 1, 2)

    await host.delete()
    assert (await host.seen()).power == "Off"
    assert await host.node() is None


@story
async def test_a_host_inspected_without_a_ramdisk_gets_a_qcow2_image_and_is_let_go_uncleaned(
    room: Room,
) -> None:
    host = room.server()
    await host.create(inspectionMode="fast")
    await host.reaches("available")
    seen = await host.seen()
    assert (seen.boots, seen.power_actions) == (0, [])
    hardware = (await room.client.get(HARDWARE_DATA, host.key)).spec.hardware
    assert {nic.mac for nic in hardware.nics} == set(host.plate.macs)

    await host.change(image=host.image("qcow2"))
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == room.lab.file.image("qcow2").disk_sha256

    await host.change(image=None)
    await host.reaches("available")
    seen = await host.seen()
    assert (seen.deployments, seen.cleanings) == (1, 0)


@story
async def test_a_machine_that_somebody_else_installed_is_taken_over_as_it_runs(room: Room) -> None:
    host = room.server()
    await host.create(externallyProvisioned=True)
    await host.reaches("externally provisioned")
    await host.until_power(on=True)
    seen = await host.seen()
    assert [action.what for action in seen.power_actions] == ["On"]
    assert (seen.deployments, seen.cleanings) == (0, 0)
