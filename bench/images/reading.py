"""The client that reads: the Go program in bench/images/load, on a processor that the server does not have."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from api.load import LoadFailed, built
from images.servers import CLIENT_ON, Server

SOURCES = Path(__file__).parent / "load"


@dataclass(frozen=True, slots=True)
class Reading:
    """How it went. `cpu` is the server's processor time, `client_cpu` the client's."""

    count: int
    bytes: int
    seconds: float
    behind: int
    p50: float
    p99: float
    slowest: float
    cpu: float
    client_cpu: float
    cipher: str

    @property
    def rate(self) -> float:
        """Megabytes a second."""
        return self.bytes / self.seconds / 1e6

    @property
    def cpu_each_gigabyte(self) -> float:
        return self.cpu / (self.bytes / 1e9)


def read(server: Server, what: str, ca: Path, **options: str | int) -> Reading:
    command = [str(built(SOURCES)), what, "-url", server.url, "-ca", str(ca)]
    for name, value in options.items():
        command += [f"-{name}", str(value)]
    before = server.cpu
    done = subprocess.run(
        command,
        env={**os.environ, "GOMAXPROCS": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_ON),
    )
    if done.returncode != 0:
        raise LoadFailed(f"{server.name}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    latency = found["latency_ms"] or {"p50": 0.0, "p99": 0.0, "max": 0.0}
    return Reading(
        count=found["count"],
        bytes=found["bytes"],
        seconds=found["seconds"],
        behind=found["behind"],
        p50=latency["p50"],
        p99=latency["p99"],
        slowest=latency["max"],
        cpu=server.cpu - before,
        client_cpu=found["client_cpu_seconds"],
        cipher=found["cipher"],
    )
