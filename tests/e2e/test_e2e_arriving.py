"""`make up`, from nothing: three servers arrive, one with an image, and nobody listens who should not."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from listening import Listener, listeners_of
from machine_room import INGOT, PATIENCE, MachineRoom, error_of, state_of

from ingot.lab import labfile


@pytest.fixture
def room(tmp_path: Path) -> Iterator[MachineRoom]:
    found = MachineRoom(tmp_path / "state", servers=3)
    yield found
    found.down()


class Watch:
    """`kubectl get bmh -w`, as a person leaves it running in another window."""

    def __init__(self, room: MachineRoom, output: Path) -> None:
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                ["kubectl", "get", "bmh", "-w"], stdout=file, stderr=file, env=room.environment
            )
        self._output = output

    def states(self, name: str) -> list[str]:
        """What it has shown of one host so far, each state once."""
        lines = [line.split() for line in self._output.read_text().splitlines()]
        # Before it has a state, the next column is in its place.
        shown = [words[1] for words in lines if words[:1] == [name]]
        return list(dict.fromkeys(state for state in shown if state not in ("true", "false")))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def test_make_up_brings_three_servers_to_life_before_the_eyes_of_who_watches(
    room: MachineRoom, tmp_path: Path
) -> None:
    # What `make up` runs, in the background.
    with (tmp_path / "up.txt").open("wb") as said:
        up = subprocess.Popen([INGOT, "up", "--detach", "--state", str(room.state)], stdout=said, stderr=said)
    until_api_answers(room, up)
    watch = Watch(room, tmp_path / "watch.txt")
    try:
        assert up.wait(540) == 0, f"{(tmp_path / 'up.txt').read_text()}\n{room.logs()}"
        hosts = {host["metadata"]["name"]: host for host in room.listed("bmh")}
        assert {name: state_of(host) for name, host in hosts.items()} == {
            "server-1": "provisioned",
            "server-2": "available",
            "server-3": "available",
        }
        assert not any(error_of(host) for host in hosts.values())
        shown = until_shown(watch, "server-1", "provisioned")
        assert [state for state in shown if state in ON_THE_WAY] == ON_THE_WAY
        assert "inspecting" in until_shown(watch, "server-2", "available")
    finally:
        watch.stop()
    has_what_it_was_given(room, hosts["server-1"])
    nobody_else_listens(room)


ON_THE_WAY = ["registering", "inspecting", "provisioning", "provisioned"]


def until_api_answers(room: MachineRoom, up: subprocess.Popen[bytes]) -> None:
    """Until the kind is there, and can be watched."""
    deadline = time.monotonic() + PATIENCE
    asked = ["kubectl", "get", "bmh", "-o", "name"]
    while (
        not (room.state / "kubeconfig").exists()
        or subprocess.run(asked, capture_output=True, check=False, env=room.environment).returncode
    ):
        assert up.poll() is None, room.logs()
        assert time.monotonic() < deadline, room.logs()
        time.sleep(0.2)


def until_shown(watch: Watch, name: str, state: str) -> list[str]:
    deadline = time.monotonic() + PATIENCE
    while state not in (shown := watch.states(name)):
        assert time.monotonic() < deadline, shown
        time.sleep(0.1)
    return shown


def has_what_it_was_given(room: MachineRoom, host: dict[str, Any]) -> None:
    """Image, user data and network data, as the server itself has found them."""
    spec = host["spec"]
    deadline = time.monotonic() + PATIENCE
    while (server := json.loads(room.ingot("lab", "show", "server-1", "-o", "json")))["running"] is None:
        assert time.monotonic() < deadline, server["log"]
        time.sleep(0.5)
    running, lab = server["running"], labfile.load(room.state)
    image = lab.image(spec["image"]["format"])
    assert (image.url, image.sha256) == (spec["image"]["url"], spec["image"]["checksum"])
    assert running["image_sha256"] == image.disk_sha256
    assert running["user_data"] == room.secret(spec["userData"]["name"], "userData")
    assert running["network_data"] == json.loads(room.secret(spec["networkData"]["name"], "networkData"))
    assert running["network_data"]["links"][0]["ethernet_mac_address"] == server["mac"]
    assert running["hostname"] == "server-1"
    assert server["deployments"] == 1


# Listeners


def nobody_else_listens(room: MachineRoom) -> None:
    """All that listen are known, show a certificate of this installation, and refuse who does not say who he is."""
    status = room.status()
    allowed = allowed_listeners(room, status)
    assert listeners_of(status["pid"]) == set(allowed)
    trusted = ssl.create_default_context(cafile=room.state / "ca" / "ca.crt")
    for listener, (request, answers) in allowed.items():
        assert b"200 OK" not in asked(listener, request, None), f"{listener} answers without TLS"
        first = asked(listener, request, trusted).partition(b"\r\n")[0]
        assert int(first.split()[1]) == answers, f"{request} at {listener}: {first!r}"


def allowed_listeners(room: MachineRoom, status: dict[str, Any]) -> dict[Listener, tuple[str, int]]:
    """Each with a request of somebody without credentials, and what that is answered."""
    at = {part["name"]: urlsplit(part["address"]) for part in status["parts"]}
    lab = labfile.load(room.state)
    parts = {
        "api-server": ("GET /api/v1/secrets", 401),
        "ironic": ("GET /v1/nodes", 401),
        # Agents have no password: their three calls are here, and nothing else of Ironic.
        "front": ("GET /v1/nodes", 404),
        "operator": ("POST /v1/push", 401),
        "lab": ("GET /lab/v1/servers", 401),
    }
    assert set(at) == set(parts)
    found = {Listener(str(at[name].hostname), at[name].port or 0): asked for name, asked in parts.items()}
    # Images are under names that nobody can guess.
    found[Listener(lab.host, lab.depot_port)] = "GET /guessed/sample.raw", 404
    for plate in lab.servers:
        found[Listener(plate.host, plate.bmc_port)] = "GET /redfish/v1/Systems", 401
    assert all(listener.address.startswith("127.") for listener in found)
    return found


def asked(listener: Listener, request: str, trusted: ssl.SSLContext | None) -> bytes:
    """What the listener answers; nothing where it hangs up. With TLS its certificate has to be for its address."""
    lines = (
        f"{request} HTTP/1.1\r\nHost: {listener.address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    wire = socket.create_connection(listener, timeout=60)
    try:
        if trusted is not None:
            wire = trusted.wrap_socket(wire, server_hostname=listener.address)
        wire.sendall(lines.encode())
        return wire.recv(4096)
    except ConnectionError:
        return b""
    finally:
        wire.close()
