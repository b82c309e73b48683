"""`ingot up --coreos`: one machine whose servers boot CoreOS as their ramdisk, from one command to an available host and down."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from coreos_payloads import NEW, OLD, made_payload, switch_to
from ironic_room import NEEDS, can_run

from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.kube import Client
from ingot.services.environment import ensure

INGOT = str(Path(sys.executable).with_name("ingot"))


class Machine:
    def __init__(self, state: Path) -> None:
        self.state = state

    def ingot(self, *arguments: str) -> str:
        done = subprocess.run(
            [INGOT, *arguments, "--state", str(self.state)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        logs = "\n".join(log.read_text()[-3000:] for log in (self.state / "run" / "logs").glob("*.log"))
        assert done.returncode == 0, f"ingot {arguments}:\n{done.stdout}\n{done.stderr}\n{logs}"
        return done.stdout

    async def ramdisks(self) -> list[str]:
        """What hosts boot next."""
        async with Client.from_kubeconfig(self.state / "kubeconfig") as client:
            return [found.status.version for found in (await client.list(PREPROVISIONING_IMAGES)).items]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    ensure()
    made = Machine(tmp_path / "state")
    yield made
    made.ingot("down", "--wipe", "--yes")


def test_servers_boot_coreos_when_that_is_asked_for(machine: Machine, tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    switch_to(payload, made_payload(tmp_path / "old", OLD))
    machine.ingot(
        *("up", "--detach", "--servers", "1", "--provision", "0"),
        *("--coreos", str(payload), "--network-boot"),
    )
    found = json.loads(machine.ingot("status", "-o", "json"))
    assert {part["name"]: part["state"] for part in found["parts"]} == dict.fromkeys(
        ["api-server", "images", "ironic", "front", "lab", "operator"], "ready"
    )
    assert found["notice"] == ""
    kubeconfig = ["--kubeconfig", found["kubeconfig"]]
    shown = subprocess.run(
        [INGOT, "host", "show", "server-1", *kubeconfig], capture_output=True, text=True, check=True
    ).stdout
    assert f"ramdisk:   {OLD} (iso)" in shown
    switch_to(payload, made_payload(tmp_path / "new", NEW))
    end = time.monotonic() + 120
    while (versions := asyncio.run(machine.ramdisks())) != [NEW]:
        assert time.monotonic() < end, versions
        time.sleep(1)
