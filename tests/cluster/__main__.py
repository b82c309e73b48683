"""`python tests/cluster [--folder FOLDER] [COMMAND…]`: a real Kubernetes control plane with Ingot's kinds, for as long as the
command runs; without a command, until Ctrl-C.

The command finds its kubeconfig in `KUBECONFIG` and in `INGOT_TEST_KUBECONFIG`; that of the reader is beside it, named
`kubeconfig-readonly`. `INGOT_TEST_THROWAWAY` tells it that nobody needs this cluster afterwards.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from control_plane import ControlPlane, DidNotStart, NotBuilt

from ingot.api.crd import all_crds


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/cluster", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="where it keeps its files; must be empty (default: a new one)"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    # A SIGTERM is an orderly end as well: the control plane is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if given.folder:
        given.folder.mkdir(parents=True, exist_ok=True)
        return run(given.folder, given.command)
    with tempfile.TemporaryDirectory(prefix="ingot-cluster-") as folder:
        return run(Path(folder), given.command)


def run(folder: Path, command: list[str]) -> int:
    started = time.monotonic()
    try:
        plane = ControlPlane.start(folder, crds=all_crds())
    except (NotBuilt, DidNotStart) as problem:
        print(f"cluster: {problem}", file=sys.stderr)
        return 1
    try:
        print(f"cluster: {plane.url} is ready after {time.monotonic() - started:.1f} s", flush=True)
        if command:
            path = str(plane.kubeconfig)
            own = {"KUBECONFIG": path, "INGOT_TEST_KUBECONFIG": path, "INGOT_TEST_THROWAWAY": "yes"}
            return subprocess.run(command, env={**os.environ, **own}, check=False).returncode
        print(f"cluster: export KUBECONFIG={plane.kubeconfig}", flush=True)
        signal.pause()
        return 0
    except KeyboardInterrupt:
        return 130
    finally:
        plane.stop()


if __name__ == "__main__":
    sys.exit(main())
