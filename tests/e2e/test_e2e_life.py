"""The whole life of a host, through kubectl, with real Ironic."""

from __future__ import annotations

import hashlib

from machine_room import MachineRoom, Server, state_of

USER_DATA = "#cloud-config\nhostname: first-of-its-kind\n"


def test_a_host_lives_from_manifest_to_image_and_back_to_nothing(room: MachineRoom, server: Server) -> None:
    image = room.sample("qcow2")
    server.provisioned_host(text=USER_DATA, image=image, cleaning=True)
    room.kubectl("wait", "--for=condition=Provisioned", "--timeout=240s", f"bmh/{server.name}")
    room.until_state(server.name, "provisioned")

    # The server confirms: it runs that image and has read that user data.
    seen = server.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == room.sample("raw")["checksum"]
    assert seen.running.user_data == USER_DATA
    assert seen.running.hostname == server.name
    assert seen.deployments == 1
    assert room.get("hardwaredata", server.name)["spec"]["hardware"]["cpu"]["arch"] == "x86_64"

    # What happened to it is told in Events, also where a person looks first.
    assert {
        "Registered",
        "BMCAccessValidated",
        "InspectionStarted",
        "InspectionComplete",
        "ProvisioningStarted",
        "ProvisioningComplete",
    } <= set(room.events(server.name))
    assert "Image provisioning completed" in room.kubectl("describe", "bmh", server.name)

    # Power off and on.
    room.patch(server.name, {"online": False})
    room.until(server.name, lambda host: not host["status"]["poweredOn"], what="off")
    assert server.seen().power == "Off"
    room.patch(server.name, {"online": True})
    room.until(server.name, lambda host: bool(host["status"]["poweredOn"]), what="on")
    assert server.seen().power == "On"
    assert server.seen().deployments == 1

    # Deprovisioned: the disk is empty.
    room.patch(server.name, {"image": None})
    room.until_state(server.name, "available")
    assert server.seen().running is None
    assert server.seen().cleanings >= 2

    # Deleted, with all that belonged to it.
    room.kubectl("delete", "bmh", server.name, "--timeout=120s")
    left = room.kubectl("get", "bmh,hardwaredata,secret", "-o", "name", "--ignore-not-found")
    assert f"baremetalhost.metal3.io/{server.name}" not in left.split()
    assert f"hardwaredata.metal3.io/{server.name}" not in left.split()
    assert server.seen().power == "Off"


def test_another_image_replaces_the_one_that_runs_byte_by_byte(room: MachineRoom, server: Server) -> None:
    server.provisioned_host()
    room.until_state(server.name, "provisioned")
    content = b"\xfa" + bytes(509) + b"\x55\xaa" + b"an image of ones own" * 100_000
    other = server.add_image(content)
    room.patch(server.name, {"image": other})
    room.until(
        server.name,
        lambda host: (
            state_of(host) == "provisioned" and host["status"]["provisioning"]["image"]["url"] == other["url"]
        ),
        what="provisioned with the second image",
    )
    seen = server.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == hashlib.sha256(content).hexdigest()
    assert seen.deployments == 2
