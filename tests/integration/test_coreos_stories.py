"""CoreOS from a release payload to a server, through the real Ironic: as ramdisk both ways, installed both ways, and upgraded."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from coreos_payloads import NEW, OLD, damaged, switch_to
from coreos_room import CoreosRoom, booted_coreos, over_the_network
from ironic_room import NEEDS, Host, can_run
from stories import Stories

from ingot.api.baremetalhost import Annotation, BareMetalHost
from ingot.api.core import SECRETS
from ingot.formats.initrd import pack
from ingot.lab.coreos.ignition import applied
from ingot.lab.record import CoreOs
from ingot.provisioner.ironic.model import add
from moving_files import files_in

stories = Stories()

BAD = "fedora-coreos-45.20270101.3.0"
NMSTATE = """\
interfaces:
- name: eno1
  type: ethernet
  state: up
  ipv4:
    enabled: true
    dhcp: false
    address:
    - ip: 10.4.0.17
      prefix-length: 24
"""
USERS_CONFIG = {
    "ignition": {"version": "3.2.0"},
    "storage": {"files": [{"path": "/etc/rack", "mode": 420, "contents": {"source": "data:,r7"}}]},
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CoreosRoom]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    async with CoreosRoom.open(tmp_path_factory.mktemp("coreos"), servers=10) as room:
        assert isinstance(room, CoreosRoom)
        yield room
        await stories.end()


# Ramdisks


async def inspected(room: CoreosRoom, host: Host, **spec: Any) -> BareMetalHost:
    """A host whose ramdisk has a static address, once it has looked at itself."""
    await room.create(SECRETS, f"{host.name}-net", stringData={"nmstate": NMSTATE})
    await host.create(preprovisioningNetworkDataName=f"{host.name}-net", **spec)
    return await host.until_well("available")


def is_what_was_asked_for(room: CoreosRoom, host: Host, booted: CoreOs) -> None:
    """The Ignition config that the server ran with, and what came of it."""
    made = applied(booted.ignition.encode())
    told = made.files["/etc/ironic-python-agent.conf"].text.splitlines()
    assert f"api_url = {room.settings.base_url}" in told
    assert "insecure = False" in told
    ca = next(line.partition(" = ")[2] for line in told if line.startswith("cafile"))
    assert made.files[ca].text == room.settings.ca_file.read_text()
    assert booted.container_image == "quay.io/metal3-io/ironic-agent"
    assert booted.hostname == host.name
    assert [name for name, text in booted.keyfiles.items() if "10.4.0.17/24" in text], booted.keyfiles


def kept_by_ironic(room: CoreosRoom) -> list[Path]:
    """Live images in any folder of Ironic's."""
    found = []
    for path in files_in(room.settings.paths.state):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and path.read_bytes()[32808:32840].rstrip() in (OLD.encode(), NEW.encode()):
                found.append(path)
    return found


@stories.story
async def test_a_host_is_inspected_with_a_live_image_over_virtual_media(room: CoreosRoom) -> None:
    host = room.cast["media"] = room.server()
    await host.hold("inspection")
    await room.create(SECRETS, f"{host.name}-net", stringData={"nmstate": NMSTATE})
    await host.create(preprovisioningNetworkDataName=f"{host.name}-net")
    await host.until_seen(lambda seen: seen.held_at == "inspection", "in its ramdisk")
    image = (await room.image_of(host)).status
    assert (await host.seen()).media["Cd"] == image.image_url, "the BMC reads it where it is served"
    assert kept_by_ironic(room) == []
    await room.lab.release(host.name)
    found = await host.until_well("available")
    assert found.status.ramdisk is not None
    assert (found.status.ramdisk.version, found.status.ramdisk.format) == (OLD, "iso")
    assert found.status.ramdisk.reported == OLD, "what ran says what it is"
    booted = await booted_coreos(host)
    assert (booted.build, booted.how, booted.root) == (OLD, "iso", "the medium")
    is_what_was_asked_for(room, host, booted)


@stories.story
async def test_a_host_is_inspected_with_a_live_image_that_its_firmware_fetches(room: CoreosRoom) -> None:
    host = room.server()
    address = host.plate.bmc_address.replace("redfish-virtualmedia", "redfish-uefihttp")
    await host.create(address=address)
    found = await host.until_well("available")
    assert found.status.ramdisk is not None
    assert (found.status.ramdisk.reported, found.status.ramdisk.format) == (OLD, "iso")
    seen = await host.seen()
    assert seen.booted is not None
    assert seen.booted.source == "UefiHttp"
    assert (await booted_coreos(host)).build == OLD


@stories.story
async def test_a_host_is_inspected_with_kernel_initramfs_and_rootfs_over_the_network(
    room: CoreosRoom,
) -> None:
    host = room.cast["network"] = room.server()
    found = await inspected(room, host, bmc=bmc(host))
    assert found.status.ramdisk is not None
    assert (found.status.ramdisk.version, found.status.ramdisk.format) == (OLD, "initrd")
    assert found.status.ramdisk.reported == OLD
    booted = await booted_coreos(host)
    assert (booted.build, booted.how) == (OLD, "pxe")
    assert booted.root.startswith("https://127.0.0.1:")
    assert booted.root.endswith(f"/{OLD}-rootfs.img")
    words = booted.arguments.split()
    assert {"ignition.firstboot", "ignition.platform.id=metal"} <= set(words)
    assert not {"selinux=0", "nomodeset", "text"} & set(words)
    assert "coreos.liveiso" not in booted.arguments
    is_what_was_asked_for(room, host, booted)


def bmc(host: Host) -> dict[str, str]:
    return {"address": over_the_network(host), "credentialsName": f"{host.name}-bmc"}


@stories.story
async def test_any_other_ramdisk_boots_over_the_network_too_and_verifies_whom_it_calls(
    room: CoreosRoom,
) -> None:
    """As a node that nobody but this test looks after: hosts of this room boot CoreOS."""
    host = room.server()
    # Without a CA in it, as one is that is published.
    ramdisk = await room.lab.add_image(pack({"init": b"#!/bin/sh\n"}), name="initrd")
    at, _, system = host.plate.bmc_address.partition("://")[2].partition("/")
    async with room.ironic() as ironic:
        node = await ironic.create_node(
            {
                "name": "by-hand",
                "driver": "redfish",
                "boot_interface": "ipxe",
                "driver_info": {
                    "redfish_address": f"https://{at}",
                    "redfish_system_id": f"/{system}",
                    "redfish_username": host.plate.username,
                    "redfish_password": host.plate.password,
                    "deploy_kernel": room.lab.file.kernel_url,
                    "deploy_ramdisk": ramdisk.url,
                },
            }
        )
        await ironic.create_port(node.uuid, host.plate.macs[0], pxe_enabled=True)
        await ironic.set_provision_state(node.uuid, "manage")
        await host.until_node(lambda node: node.provision_state == "manageable", "managed", "by-hand")
        await ironic.set_provision_state(node.uuid, "inspect")
        await host.until_seen(lambda seen: seen.booted_into == "ramdisk", "in its ramdisk")
        await host.until_node(lambda node: node.provision_state == "manageable", "inspected", "by-hand")
    seen = await host.seen()
    assert seen.booted is not None
    assert (seen.booted.source, seen.booted.coreos) == ("Pxe", None)


# Installing


@stories.story
async def test_coreos_is_installed_as_an_image_without_a_url(room: CoreosRoom) -> None:
    host = room.cast["installed"] = room.server()
    user_data = await host.secret("user", userData=json.dumps(USERS_CONFIG))
    ramdisks = await host.secret("net", nmstate=NMSTATE)
    network = await host.secret("own", nmstate=NMSTATE.replace("10.4.0.17", "10.5.0.9"))
    await host.create(
        image={"format": "coreos", "url": ""},
        userData=user_data,
        preprovisioningNetworkDataName=ramdisks["name"],
        networkData=network,
    )
    await has_installed(host, OLD, address="10.5.0.9/24")


@stories.story
async def test_coreos_is_installed_by_the_deploy_step_of_a_ramdisk_from_the_network(room: CoreosRoom) -> None:
    host = room.server()
    user_data = await host.secret("user", userData=json.dumps(USERS_CONFIG))
    ramdisks = await host.secret("net", nmstate=NMSTATE)
    await host.create(
        bmc=bmc(host),
        customDeploy={"method": "install_coreos"},
        userData=user_data,
        preprovisioningNetworkDataName=ramdisks["name"],
    )
    found = await has_installed(host, OLD, address="10.4.0.17/24")
    assert found.status.ramdisk is not None
    assert found.status.ramdisk.format == "initrd"


async def has_installed(host: Host, build: str, *, address: str = "") -> BareMetalHost:
    found = await host.until_well("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.coreos == build
    assert applied(seen.running.ignition.encode()).files["/etc/rack"].text == "r7"
    (network,) = [*seen.running.keyfiles.values()] or [""]
    assert address in network, "the network is its own, else the ramdisk's"
    assert bool(network) == bool(address)
    assert seen.deployments == 1
    assert found.status.ramdisk is not None
    assert found.status.ramdisk.version == build
    return found


@pytest.mark.parametrize("image_format", ["qcow2", "raw"])
@stories.story
async def test_any_other_image_is_installed_as_before(room: CoreosRoom, image_format: str) -> None:
    host = room.server()
    await host.create(image=host.image(image_format), automatedCleaningMode="metadata")
    await host.until_well("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.coreos == ""
    assert seen.cleanings == 1
    assert seen.running.image_sha256 == room.lab.file.image(image_format).disk_sha256


# Upgrading


@pytest.mark.asyncio(loop_scope="session")
async def test_another_payload_is_for_the_next_boot_of_hosts_without_a_system(
    room: CoreosRoom, request: pytest.FixtureRequest
) -> None:
    await stories.all_told(room, request.session.items)
    provisioned, available, waiting = room.cast["installed"], room.cast["media"], room.server()
    await with_a_running_agent(waiting)
    before, node_before = await provisioned.seen(), await provisioned.node()
    room.use(NEW)
    for host in (available, waiting, room.cast["network"]):
        await room.until_image(host, NEW)
    # Its agent runs from the old one, and Ironic would go on with it.
    image = (await room.image_of(waiting)).status.image_url
    await waiting.until_node(lambda node: node.driver_info.get("deploy_iso") == image, "told of the new one")
    user_data = await waiting.secret("user", userData=json.dumps(USERS_CONFIG))
    await waiting.change(customDeploy={"method": "install_coreos"}, userData=user_data)
    await has_installed(waiting, NEW)
    for name in ("media", "network"):
        await is_inspected_with(room.cast[name], NEW)
    after, node_after = await provisioned.seen(), await provisioned.node()
    assert (after.boots, after.power_actions) == (before.boots, before.power_actions)
    assert node_before is not None
    assert node_after is not None
    assert (node_after.provision_state, node_after.driver_info) == ("active", node_before.driver_info)
    assert after.running is not None
    assert after.running.coreos == OLD


async def with_a_running_agent(host: Host) -> None:
    """A host that is available, and whose ramdisk runs on after it was inspected, as with fast track."""
    await host.hold("inspection")
    await host.create()
    await host.until_seen(lambda seen: seen.held_at == "inspection", "in its ramdisk")
    node = await host.until_node(lambda node: node.provision_state == "inspect wait", "waited for")
    async with host.room.ironic() as ironic:
        await ironic.patch_node(node.uuid, [add("/driver_info/fast_track", "true")])
    await host.room.lab.release(host.name)
    await host.until_well("available")
    assert (await host.seen()).booted_into == "ramdisk"


async def is_inspected_with(host: Host, build: str) -> None:
    await host.annotate(Annotation.INSPECT)
    await was_inspected_with(host, build)


async def was_inspected_with(host: Host, build: str) -> None:
    await host.until(
        lambda found: (
            Annotation.INSPECT not in found.metadata.annotations
            and found.state == "available"
            and found.status.ramdisk is not None
            and found.status.ramdisk.version == build
        ),
        f"inspected with {build}",
    )
    assert (await booted_coreos(host)).build == build


@pytest.mark.asyncio(loop_scope="session")
async def test_a_damaged_payload_is_refused_and_the_one_before_stays(
    room: CoreosRoom, request: pytest.FixtureRequest
) -> None:
    await stories.all_told(room, request.session.items)
    host = room.cast["media"]
    room.use(NEW)
    good = await room.until_image(host, NEW)
    switch_to(room.payload, damaged(room.payload_of(BAD)))
    assert "damaged" in await room.until_not_newest(host)
    assert (await room.image_of(host)).status.image_url == good.status.image_url
    await is_inspected_with(host, NEW)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_payload_before_is_taken_up_again_and_images_survive_being_killed(
    room: CoreosRoom, request: pytest.FixtureRequest
) -> None:
    await stories.all_told(room, request.session.items)
    host = room.cast["media"]
    room.use(OLD)
    before = await room.until_image(host, OLD)
    await host.hold("boot")
    await host.annotate(Annotation.INSPECT)
    await host.until_seen(lambda seen: seen.held_at == "boot", "about to boot")
    room.kill("images")
    room.start_images()
    await room.until_served(before.status.image_url)
    await room.lab.release(host.name)
    await was_inspected_with(host, OLD)
    assert (await room.image_of(host)).status == before.status
