"""CoreOS installed on a server, by each of its two names, through the real Ironic."""

from __future__ import annotations

import hashlib
import json
import lzma
from typing import Any

from ironic_room import Host, Room
from stories import story

from ingot.formats.network import keyfiles_of_nmstate
from ingot.lab.samples import sample_disk

IGNITION = {
    "ignition": {"version": "3.4.0"},
    "storage": {"files": [{"path": "/etc/rack", "contents": {"source": "data:,sesame-of-the-rack"}}]},
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me@example"
META = json.dumps(
    {"coreos_append_karg": ["console=ttyS0", "quiet"], "public_keys": [KEY], "local-hostname": "rack-7"}
)
NMSTATE = """\
interfaces:
- {name: eno1, type: ethernet, ipv4: {enabled: true, address: [{ip: 10.4.0.17, prefix-length: 24}]}}
"""


async def installed(host: Host, **spec: Any) -> Any:
    """What runs on the server once CoreOS is installed there."""
    user_data = await host.secret("user-data", userData=json.dumps(IGNITION))
    meta_data = await host.secret("meta-data", metaData=META)
    await host.create(inspectionMode="disabled", userData=user_data, metaData=meta_data, **spec)
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.deployments == 1
    assert json.loads(seen.running.user_data) == IGNITION
    assert seen.running.hostname == "rack-7"
    assert seen.running.arguments == ["console=ttyS0", "quiet"]
    assert seen.running.ssh_keys == [KEY]
    return seen.running


@story
async def test_coreos_is_installed_by_the_format_of_the_image(room: Room) -> None:
    host = room.server()
    network = await host.secret("network", networkData=NMSTATE)
    running = await installed(host, image={"url": "", "format": "coreos"}, networkData=network)
    made = {name: content.decode() for name, content in keyfiles_of_nmstate(NMSTATE.encode()).items()}
    assert running.keyfiles == made, "the network that the host names"
    logs = {log.name: log.read_text(errors="replace") for log in room.state.glob("*.log")}
    assert "install_coreos" in logs["ironic.log"]
    assert "sesame-of-the-rack" not in "".join(logs.values())
    assert "10.4.0.17" not in "".join(logs.values())


@story
async def test_coreos_is_installed_by_the_name_of_the_step_from_a_metal_image(room: Room) -> None:
    host = room.server()
    disk = sample_disk()[: 2 << 20]
    made = await room.lab.add_image(lzma.compress(disk), name="metal.raw.xz")
    image = {"url": made.url, "checksum": made.sha256, "checksumType": "sha256", "format": "raw"}
    running = await installed(host, customDeploy={"method": "install_coreos"}, image=image)
    assert running.image_sha256 == hashlib.sha256(disk).hexdigest()


@story
async def test_a_cloud_config_for_coreos_is_told_before_anything_happens_and_can_be_put_right(
    room: Room,
) -> None:
    host = room.server()
    user_data = await host.secret("user-data", userData="#cloud-config\n")
    await host.create(inspectionMode="disabled", image={"url": "", "format": "coreos"}, userData=user_data)
    await host.until_error("is a cloud-config")
    assert (await host.seen()).deployments == 0
    await host.set_secret(user_data["name"], userData=json.dumps(IGNITION))
    await host.until_well("provisioned")


@story
async def test_a_running_server_is_left_alone_until_the_coreos_that_is_to_replace_its_image_can_be_installed(
    room: Room,
) -> None:
    host = room.server()
    user_data = await host.secret("user-data", userData="#cloud-config\n")
    await host.create(inspectionMode="disabled", image=host.image("raw"), userData=user_data)
    await host.until_well("provisioned")
    before = await host.until_running()
    await host.change(image=None, customDeploy={"method": "install_coreos"})
    found = await host.until_error("What is installed stays until this is mended")
    assert found.state == "provisioned"
    seen = await host.seen()
    assert (seen.boots, seen.power_actions, seen.deployments) == (before.boots, before.power_actions, 1)
    await host.set_secret(user_data["name"], userData=json.dumps(IGNITION))
    await host.until(
        lambda found: found.state == "provisioned" and found.status.provisioning.custom_deploy is not None,
        "provisioned with CoreOS",
    )
    seen = await host.until_running()
    assert seen.deployments == 2
