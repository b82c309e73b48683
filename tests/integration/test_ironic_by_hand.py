"""The parts started one by one, as docs/one-machine.md has it for one's own servers, and an Ironic that tells nobody anything.

Servers boot a kernel and a ramdisk, of which Ironic builds an ISO for each of them, and fetch that from the front server. Ironic
has no push settings, as one that somebody else runs: whatever happens is read from the bulk list of nodes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from ironic_room import NEEDS, Room, can_run, free_ports
from stories import Stories

from fat_volumes import fat_volume
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.formats.initrd import pack
from ingot.kube import Client
from ingot.lab.record import Booted
from ingot.trust import HIDDEN

stories = Stories()

USER_DATA = "#cloud-config\nhostname: told-by-user-data\n"


class RoomByHand(Room):
    def __init__(self, state: Path, client: Client, *, servers: int) -> None:
        super().__init__(state, client, servers=servers)
        (private,) = free_ports(1)
        self.settings = replace(
            self.settings,
            reverse_proxy=True,
            private_port=str(private),
            http_url=None,
            push_url=None,
            push_ca_file=None,
            push_token_file=None,
        )
        self._access = replace(self._access, endpoint=f"{self.settings.api_url}/v1")
        self._ramdisk_url = ""

    async def begin(self) -> None:
        esp = await self.lab.add_image(fat_volume({"BOOTX64.EFI": b"MZ a boot loader"}), name="esp.img")
        self.settings = replace(self.settings, bootloader=esp.url)
        # Without a CA in it, as one is that is published.
        ramdisk = await self.lab.add_image(pack({"init": b"#!/bin/sh\n"}), name="initramfs")
        self._ramdisk_url = ramdisk.url

    def start_ironic(self, *, patient: bool = False) -> None:
        super().start_ironic(patient=patient)
        self.start("front", "service", "front", environment=self.settings.to_environment())

    def start_operator(self, **more: str) -> None:
        ramdisk = {"DEPLOY_KERNEL_URL": self.lab.file.kernel_url, "DEPLOY_RAMDISK_URL": self._ramdisk_url}
        super().start_operator(DEPLOY_ISO_URL="", **ramdisk, **more)

    async def until_told(self, sentence: str) -> None:
        """Until the operator has said this."""

        async def is_told() -> None:
            assert sentence in (self.state / "operator.log").read_text()

        await self._ready(is_told)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RoomByHand]:
    if not can_run():
        pytest.skip(f"Ironic builds ISO images with one of {', '.join(NEEDS)}, and none is installed")
    async with RoomByHand.open(tmp_path_factory.mktemp("by-hand"), servers=2) as room:
        assert isinstance(room, RoomByHand)
        yield room
        await stories.end()


def network_data(mac: str) -> dict[str, object]:
    """Of a ramdisk with a fixed address."""
    return {
        "links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": mac}],
        "networks": [
            {
                "id": "n0",
                "network_id": "n0",
                "link": "eth0",
                "type": "ipv4",
                "ip_address": "10.4.0.17",
                "netmask": "255.255.255.0",
                "routes": [],
            }
        ],
        "services": [],
    }


def is_built_by_ironic(room: RoomByHand, booted: Booted | None, uuid: str, network: object) -> None:
    """What the server has read: an ISO of the front server, with all that its agent needs to know."""
    assert booted is not None
    assert booted.source == "Cd"
    key = room.settings.paths.files_key_file.read_text()
    assert booted.url.startswith(f"{room.settings.base_url}/files/{key}/redfish/boot-{uuid}")
    assert booted.parameters["ipa-agent-token"] == HIDDEN
    assert "ipa-insecure" not in booted.parameters
    assert booted.ca_sha256 == hashlib.sha256(room.settings.ca_file.read_bytes()).hexdigest()
    assert booted.network_data == network


@stories.story
async def test_a_host_boots_a_kernel_and_a_ramdisk_from_an_iso_that_ironic_builds_for_it(
    room: RoomByHand,
) -> None:
    host = room.server()
    network = network_data(host.plate.macs[0])
    named = (await host.secret("ramdisk-network", networkData=json.dumps(network)))["name"]
    await host.hold("inspection")
    await host.create(preprovisioningNetworkDataName=named, image=host.image("raw"))
    seen = await host.until_seen(lambda seen: seen.held_at == "inspection", "in its ramdisk")
    node = await host.node()
    assert node is not None
    assert "deploy_iso" not in node.driver_info
    is_built_by_ironic(room, seen.booted, node.uuid, network)
    assert seen.booted is not None
    callback = f"{room.settings.base_url}/v1/continue_inspection"
    assert seen.booted.parameters["ipa-inspection-callback-url"] == callback

    await host.hold("write_image")
    seen = await host.until_seen(lambda seen: seen.held_at == "write_image", "asked to write its image")
    is_built_by_ironic(room, seen.booted, node.uuid, network)
    assert seen.booted is not None
    assert seen.booted.parameters["ipa-api-url"] == room.settings.base_url
    await room.lab.release(host.name)
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == room.lab.file.image("raw").disk_sha256
    assert not seen.media
    assert not list((room.settings.paths.http_root / "redfish").glob(f"boot-{node.uuid}*")), (
        "what was built for a boot is gone after it"
    )


@stories.story
async def test_a_host_lives_its_whole_life_with_an_ironic_that_pushes_nothing(room: RoomByHand) -> None:
    host = room.server()
    user_data = await host.secret("user-data", userData=USER_DATA)
    await host.create(image=host.image("qcow2"), userData=user_data, automatedCleaningMode="metadata")
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == room.lab.file.image("qcow2").disk_sha256
    assert seen.running.user_data == USER_DATA
    hardware = (await room.client.get(HARDWARE_DATA, host.key)).spec.hardware
    assert {nic.mac for nic in hardware.nics} == set(host.plate.macs)

    await host.change(online=False)
    await host.until_power(on=False)
    await host.change(online=True)
    await host.until_power(on=True)

    await host.change(image=None)
    await host.reaches("available")
    seen = await host.seen()
    assert (seen.running, seen.deployments, seen.cleanings) == (None, 1, 2)
    assert not await host.troubles()
    await host.delete()
    assert (await host.seen()).power == "Off"
    assert await host.node() is None
    await room.until_told("Ironic does not push: its nodes are listed every 2 s")
