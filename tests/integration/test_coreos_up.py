"""`ingot up --coreos`: one machine whose servers boot CoreOS as their ramdisk, from one command to an available host and down."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from coreos_payloads import OLD, made_payload
from ironic_room import NEEDS, can_run

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


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    ensure()
    made = Machine(tmp_path / "state")
    yield made
    made.ingot("down", "--wipe", "--yes")


def test_servers_boot_coreos_when_that_is_asked_for(machine: Machine, tmp_path: Path) -> None:
    payload = made_payload(tmp_path / "payload", OLD)
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
