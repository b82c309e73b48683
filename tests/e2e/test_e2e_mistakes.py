"""Mistakes that people make: what they read, and that mending the mistake is all they have to do."""

from __future__ import annotations

from machine_room import MachineRoom, Server


def test_a_wrong_bmc_password(room: MachineRoom, server: Server) -> None:
    room.apply(server.secret(password="wrong"), server.host())
    said = room.until_error(server.name, "password")
    assert "refused the user name or password (HTTP 401)" in said
    assert f"Correct Secret {server.name}-bmc; the next try starts as soon as it changes." in said
    assert "RegistrationError" in room.events(server.name)
    room.apply(server.secret())
    room.until_state(server.name, "available")


def test_a_missing_secret(room: MachineRoom, server: Server) -> None:
    room.apply(server.host())
    said = room.until_error(server.name, "does not exist")
    assert f"Secret {server.name}-bmc with the BMC's user name and password does not exist" in said
    room.apply(server.secret())
    room.until_state(server.name, "available")


def test_an_image_whose_checksum_does_not_match(room: MachineRoom, server: Server) -> None:
    good = room.sample("raw")
    server.provisioned_host(image=good | {"checksum": "0" * 64}, cleaning=True)
    said = room.until_error(server.name, "checksum")
    assert good["url"] in said
    assert server.seen().running is None
    room.patch(server.name, {"image": {"checksum": good["checksum"]}})
    room.until_state(server.name, "provisioned")
    seen = server.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == good["checksum"]
