"""The client that asks: the Go program in bench/load, built once into the user's cache.

Measured with it, a server is what is slow and not its client; the client's own processor time is in every answer, so that
one can see it.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api.servers import Server

SOURCES: Final = Path(__file__).parents[1] / "load"


class LoadFailed(Exception):
    """The load could not be put on the server, or the server answered wrongly."""


@dataclass(frozen=True, slots=True)
class Outcome:
    count: int
    seconds: float
    rate: float
    bytes: int
    latency_ms: Mapping[str, float]
    client_cpu: float


def built() -> Path:
    """The program of these very sources. Go is asked only when they changed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ingot" / "bench"
    sources = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    program = cache / f"load-{hashlib.sha256(sources).hexdigest()[:16]}"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = program.with_suffix(f".{os.getpid()}")
        try:
            subprocess.run(["go", "build", "-trimpath", "-o", str(new), "."], cwd=SOURCES, check=True)
        except FileNotFoundError as error:
            raise LoadFailed("the load comes from a Go program; install Go 1.25 or later") from error
        new.rename(program)
    return program


def requests(
    server: Server, method: str, path: str, *, count: int, clients: int, body: str = "", **more: str | int
) -> Outcome:
    """So many requests from so many clients at once."""
    return _run(server, "requests", method=method, path=path, count=count, clients=clients, body=body, **more)


def watches(
    server: Server,
    path: str,
    *,
    watchers: int,
    method: str,
    write_path: str,
    body: str,
    count: int,
    **more: str,
) -> Outcome:
    """So many watchers, and so many writes that each of them has to see."""
    return _run(
        server,
        "watch",
        path=path,
        watchers=watchers,
        method=method,
        **{"write-path": write_path, **more},
        body=body,
        count=count,
    )


def _run(server: Server, what: str, *, body: str, **options: str | int) -> Outcome:
    command = [str(built()), what, "-url", server.url, "-ca", str(server.ca), "-token", str(server.token)]
    for name, value in options.items():
        command += [f"-{name}", str(value)]
    if body:
        file = server.folder / "body.json"
        file.write_text(body)
        command += ["-body", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LoadFailed(f"{server.name}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    if found["errors"]:
        raise LoadFailed(
            f"{server.name}: {found['errors']} of {found['count']} failed, as: {found['first_error']}"
        )
    return Outcome(
        count=found["count"],
        seconds=found["seconds"],
        rate=found["rate"],
        bytes=found["bytes"],
        latency_ms=found["latency_ms"],
        client_cpu=found["client_cpu_seconds"],
    )
