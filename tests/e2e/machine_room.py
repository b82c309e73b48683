"""A machine room: a whole installation in its own folder, and what a test does with it.

Everything is real: `ingot up` with its processes, Ironic, kubectl. A test takes a server that nobody else uses, writes manifests
with kubectl, and asks the lab what the server itself has seen.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ingot.lab.client import Lab
from ingot.lab.labfile import Plate
from ingot.lab.views import ServerView

INGOT = str(Path(sys.executable).with_name("ingot"))
PATIENCE = 240.0


class MachineRoom:
    def __init__(self, state: Path, servers: int) -> None:
        self.state = state
        self._servers = servers
        self._taken = 0

    # The installation

    def up(self) -> str:
        return self.ingot("up", "--detach", "--servers", str(self._servers), "--no-hosts")

    def down(self) -> str:
        return self.ingot("down")

    def ingot(self, *arguments: str) -> str:
        done = subprocess.run(
            [INGOT, *arguments, "--state", str(self.state)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"ingot {arguments} failed:\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def status(self) -> dict[str, Any]:
        found = json.loads(self.ingot("status", "-o", "json"))
        assert isinstance(found, dict)
        return found

    def pid(self, part: str) -> int:
        return int(next(found["pid"] for found in self.status()["parts"] if found["name"] == part))

    def started_again(self, part: str, *, before: int) -> int:
        """The process that has taken the place of the one before."""
        deadline = time.monotonic() + PATIENCE
        while (pid := self.pid(part)) in (0, before):
            assert time.monotonic() < deadline, f"{part} was not started again\n{self.logs()}"
            time.sleep(0.25)
        return pid

    def logs(self) -> str:
        """The end of every log, for the report of a failed test."""
        folder = self.state / "run" / "logs"
        ends = [f"--- {log.name}\n{_tail(log)}" for log in sorted(folder.glob("*.log"))]
        return "\n".join(ends)

    # The API, through kubectl

    @property
    def environment(self) -> dict[str, str]:
        """Of a kubectl for this installation."""
        mine = {"KUBECONFIG": str(self.state / "kubeconfig"), "HOME": str(self.state / "run")}
        return {**os.environ, **mine}

    def kubectl(self, *arguments: str, given: str | None = None, patient: bool = True) -> str:
        """Run kubectl; while the API restarts, a patient caller asks again."""
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run(
                ["kubectl", *arguments],
                input=given,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
                env=self.environment,
            )
            if done.returncode == 0:
                return done.stdout
            away = any(
                word in done.stderr
                for word in ("refused", "EOF", "reset by peer", "http2", "Unable to connect")
            )
            if not (patient and away and time.monotonic() < deadline):
                raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}\n{self.logs()}")
            time.sleep(0.3)

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(objects))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        assert isinstance(found, dict)
        return found

    def listed(self, kind: str) -> list[dict[str, Any]]:
        found = json.loads(self.kubectl("get", kind, "-o", "json"))["items"]
        assert isinstance(found, list)
        return found

    def secret(self, name: str, key: str) -> str:
        return base64.b64decode(self.get("secret", name)["data"][key]).decode()

    def patch(self, name: str, spec: dict[str, Any]) -> None:
        self.kubectl("patch", "bmh", name, "--type", "merge", "-p", json.dumps({"spec": spec}))

    def events(self, name: str) -> list[str]:
        found = json.loads(
            self.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json")
        )
        return [event["reason"] for event in found["items"]]

    def ironic_node(self, name: str) -> dict[str, Any]:
        """What Ironic itself says of a host; {} while it does not answer or does not know it."""
        ports = json.loads((self.state / "run" / "ports.json").read_text())
        auth = self.state / "operator" / "auth" / "ironic"
        who = f"{(auth / 'username').read_text()}:{(auth / 'password').read_text()}".encode()
        request = urllib.request.Request(
            f"https://127.0.0.1:{ports['ironic']}/v1/nodes/default~{name}",
            headers={
                "Authorization": f"Basic {base64.b64encode(who).decode()}",
                "X-OpenStack-Ironic-API-Version": "1.109",
            },
        )
        trusted = ssl.create_default_context(cafile=self.state / "ca" / "ca.crt")
        try:
            with urllib.request.urlopen(request, timeout=30, context=trusted) as answer:
                found = json.load(answer)
        except OSError:
            return {}
        assert isinstance(found, dict)
        return found

    # Hosts

    def server(self) -> Server:
        """A server that no other test uses."""
        plate = msgspec.json.decode((self.state / "lab" / "lab.json").read_bytes(), type=_Lab).servers[
            self._taken
        ]
        self._taken += 1
        return Server(self, plate)

    def until(self, name: str, condition: Callable[[dict[str, Any]], bool], *, what: str) -> dict[str, Any]:
        """Wait until the host is as the condition says; what it says until then is in the report."""
        deadline = time.monotonic() + PATIENCE
        while True:
            host = self.get("bmh", name)
            if condition(host):
                return host
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{name} is not {what}: {json.dumps(host.get('status'))[:3000]}\n{self.logs()}"
                )
            time.sleep(0.25)

    def until_state(self, name: str, state: str) -> dict[str, Any]:
        return self.until(name, lambda host: state_of(host) == state and not error_of(host), what=state)

    def until_error(self, name: str, fragment: str) -> str:
        host = self.until(name, lambda host: fragment in error_of(host), what=f"in error about {fragment!r}")
        return error_of(host)

    def until_says(self, name: str, fragment: str) -> None:
        self.until(name, lambda host: fragment in why_of(host), what=f"at {fragment!r}")

    def sample(self, image_format: str) -> dict[str, str]:
        """The lab's own image, in the form that a host's spec has."""
        lab = msgspec.json.decode((self.state / "lab" / "lab.json").read_bytes(), type=_Lab)
        image = next(found for found in lab.images if found.format == image_format)
        return {"url": image.url, "checksum": image.sha256, "checksumType": "sha256", "format": image.format}


class _Image(msgspec.Struct):
    url: str
    format: str
    sha256: str


class _Lab(msgspec.Struct):
    servers: list[Plate]
    images: list[_Image]


class Server:
    """One server of the room and the objects that describe it."""

    def __init__(self, room: MachineRoom, plate: Plate) -> None:
        self.room = room
        self.plate = plate
        self.name = plate.name

    def secret(self, *, password: str | None = None) -> dict[str, Any]:
        values = {"username": self.plate.username, "password": password or self.plate.password}
        return _secret(f"{self.name}-bmc", values)

    def host(self, **spec: Any) -> dict[str, Any]:
        bmc = {"address": self.plate.bmc_address, "credentialsName": f"{self.name}-bmc"}
        return {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {"name": self.name},
            "spec": {"online": True, "bootMACAddress": self.plate.macs[0], "bmc": bmc} | spec,
        }

    def user_data(self, text: str) -> dict[str, Any]:
        return _secret(f"{self.name}-user-data", {"userData": text})

    def provisioned_host(
        self, *, text: str = "#cloud-config\n", image: dict[str, str] | None = None, cleaning: bool = False
    ) -> None:
        """Apply everything for a host with an image and user data; without cleaning it is there in half the time."""
        host = self.host(
            image=image or self.room.sample("raw"),
            userData={"name": f"{self.name}-user-data"},
            automatedCleaningMode="metadata" if cleaning else "disabled",
        )
        self.room.apply(self.secret(), self.user_data(text), host)

    def seen(self) -> ServerView:
        """What the server itself has seen."""

        async def ask() -> ServerView:
            async with Lab.open(self.room.state) as lab:
                return await lab.server(self.name)

        return asyncio.run(ask())

    def until_running(self) -> ServerView:
        """Wait until the server has booted from its disk: Ironic is done a moment before the machine is."""
        deadline = time.monotonic() + PATIENCE
        while (seen := self.seen()).booted_into != "instance":
            assert time.monotonic() < deadline, (
                f"{self.name} never booted its disk: {seen.log}\n{self.room.logs()}"
            )
            time.sleep(0.25)
        return seen

    def add_image(self, content: bytes) -> dict[str, str]:
        async def add() -> dict[str, str]:
            async with Lab.open(self.room.state) as lab:
                made = await lab.add_image(content, name="own.raw")
                return {"url": made.url, "checksum": made.sha256, "checksumType": "sha256", "format": "raw"}

        return asyncio.run(add())


def _secret(name: str, values: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def state_of(host: dict[str, Any]) -> str:
    return str(host.get("status", {}).get("provisioning", {}).get("state", ""))


def error_of(host: dict[str, Any]) -> str:
    return str(host.get("status", {}).get("errorMessage", ""))


def why_of(host: dict[str, Any]) -> str:
    conditions = host.get("status", {}).get("conditions", [])
    return next((found["message"] for found in conditions if found["type"] == "Progressing"), "")


def _tail(log: Path, lines: int = 25) -> str:
    return "\n".join(line[:300] for line in log.read_text(errors="replace").splitlines()[-lines:])
