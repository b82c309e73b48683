"""The two servers, each as a user would start it, in a folder of its own.

Both speak TLS with a certificate of a CA of ours, both check a token, both have all our definitions, both sync a write to
disk before they acknowledge it. kube-apiserver runs with etcd alone: its controllers would only cost it time.
"""

from __future__ import annotations

import base64
import contextlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from api.hosts import PATH
from ingot.api.crd import all_crds
from ingot.trust import client_context

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 180.0


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    url: str
    folder: Path
    ca: Path
    token: Path
    pids: Mapping[str, int]
    started_in: float

    def get(self, path: str) -> bytes:
        headers = {"Authorization": f"Bearer {self.token.read_text()}"}
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, context=client_context(self.ca), timeout=60) as answer:
            return bytes(answer.read())


@contextlib.contextmanager
def embedded(folder: Path) -> Iterator[Server]:
    state = folder / "state"
    command = [sys.executable, "-c", "from ingot.cli.main import main; main()", "api-server"]
    begun = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--state", str(state), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("api-server ready at "):
            raise RuntimeError(f"the embedded API did not start: {line!r}")
        yield _ready("embedded API", folder, state / "kubeconfig", {"api-server": process.pid}, begun)
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def kubernetes(folder: Path, *api_server_options: str) -> Iterator[Server]:
    sys.path.insert(0, str(ROOT / "tests" / "cluster"))
    # It is a fixture of the tests, which are no package.
    from control_plane import ControlPlane

    begun = time.perf_counter()
    plane = ControlPlane.start(
        folder, controllers=False, crds=all_crds(), api_server_options=api_server_options
    )
    try:
        yield _ready("kube-apiserver + etcd", folder, plane.kubeconfig, plane.pids, begun)
    finally:
        plane.stop()


def _ready(name: str, folder: Path, kubeconfig: Path, pids: Mapping[str, int], begun: float) -> Server:
    """Ready is who lists hosts."""
    config: Mapping[str, Any] = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    ca, token = folder / "bench-ca.crt", folder / "bench-token"
    ca.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    token.touch(mode=0o600)
    token.write_text(config["users"][0]["user"]["token"])
    server = Server(name, cluster["server"], folder, ca, token, pids, 0.0)
    while True:
        try:
            server.get(f"{PATH}?limit=1")
            break
        except urllib.error.HTTPError:
            if time.perf_counter() - begun > PATIENCE:
                raise
            time.sleep(0.05)
    return Server(name, cluster["server"], folder, ca, token, pids, time.perf_counter() - begun)
