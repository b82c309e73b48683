"""Other ways to run something than an image on a disk, and how a server is to boot it."""

from __future__ import annotations

from ironic_room import Room
from stories import story

IGNITION = '{"ignition": {"version": "3.4.0"}}'


@story
async def test_a_live_image_is_booted_from_virtual_media_and_nothing_is_written(room: Room) -> None:
    host = room.server()
    made = await room.live_image()
    live = {"url": made.url, "format": "live-iso"}
    await host.create(inspectionMode="disabled", image=live)
    await host.reaches("provisioned")
    seen = await host.until_seen(lambda seen: seen.booted is not None, "booted")
    assert seen.booted is not None
    assert (seen.booted.source, seen.booted.sha256) == ("Cd", made.sha256)
    assert (seen.written, seen.deployments) == ({}, 0)
    assert seen.power == "On"

    # From one that is booted to one that is written: the medium goes, the disk is used.
    await host.change(image=host.image())
    await host.until(
        lambda found: (
            found.status.provisioning.state == "provisioned"
            and found.status.provisioning.image.url != live["url"]
        ),
        "provisioned with the image",
    )
    seen = await host.until_running()
    assert (seen.deployments, seen.media) == (1, {})


@story
async def test_a_custom_method_is_the_step_that_the_agent_runs(room: Room) -> None:
    host = room.server()
    user_data = await host.secret("user-data", userData=IGNITION)
    await host.create(
        inspectionMode="disabled", customDeploy={"method": "install_coreos"}, userData=user_data
    )
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.user_data == IGNITION
    assert seen.deployments == 1


@story
async def test_a_secure_boot_is_on_while_the_image_is_used_and_off_afterwards(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled", bootMode="UEFISecureBoot", image=host.image())
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.components.secure_boot_now
    await host.change(image=None)
    await host.reaches("available")
    assert not (await host.seen()).secure_boot


@story
async def test_a_legacy_boot_is_asked_of_the_server(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled", bootMode="legacy", image=host.image())
    await host.reaches("provisioned")
    seen = await host.until_running()
    assert seen.boot_mode == "Legacy"
