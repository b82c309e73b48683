"""The operator as a process of its own, with the demo back end, and what it says of itself."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ingot.trust import client_context

SCRIPT = {
    "default": {
        "inventory": "small",
        "others": {"seconds": 0},
        "register": {"seconds": 5},
        "inspect": {"seconds": 2},
    }
}
"""The delays that the peer was measured with."""


class Operator:
    """A running one."""

    def __init__(self, process: subprocess.Popen[str], state: Path, port: int) -> None:
        self.pid = process.pid
        self._state = state
        self._port = port

    def metrics(self) -> list[str]:
        token = (self._state / "operator" / "metrics-token").read_text()
        request = urllib.request.Request(
            f"https://127.0.0.1:{self._port}/metrics", headers={"Authorization": f"Bearer {token}"}
        )
        context = client_context(self._state / "ca" / "ca.crt")
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return str(answer.read().decode()).splitlines()

    def events_written(self) -> float:
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.metrics()
            if line.startswith("ingot_recorded_events_total{")
        )

    def histogram(self, name: str) -> dict[float, float]:
        """Upper bound → how many were below it."""
        found = {}
        for line in self.metrics():
            if match := re.match(rf'{name}_bucket{{le="([^"]+)"}} (\S+)', line):
                found[float(match[1].replace("+Inf", "inf"))] = float(match[2])
        return found


@contextlib.contextmanager
def operator(
    kubeconfig: Path, state: Path, *options: str, script: Mapping[str, Any] = SCRIPT
) -> Iterator[Operator]:
    state.mkdir(parents=True, exist_ok=True)
    script_file = state / "script.json"
    script_file.write_text(json.dumps(script))
    command = [
        sys.executable,
        "-c",
        "from ingot.cli.main import main; main()",
        "operator",
        "--state",
        str(state),
    ]
    command += ["--provisioner", "demo", "--demo-script", str(script_file)]
    command += ["--health-listen", "127.0.0.1:0", *options]
    with (state / "operator.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
        )
        try:
            port = 0
            assert process.stdout is not None
            for line in process.stdout:
                if match := re.search(r"health and metrics served on port (\d+)", line):
                    port = int(match[1])
                if "operator ready" in line:
                    break
            else:
                raise RuntimeError(
                    f"the operator did not start: {(state / 'operator.log').read_text()[-2000:]}"
                )
            yield Operator(process, state, port)
        finally:
            process.terminate()
            process.wait()
