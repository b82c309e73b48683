"""The client that asks: the Go program in bench/load, built once into the user's cache.

Measured with it, a server is what is slow and not its client; the client's own processor time is in every answer, so that
one can see it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
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


def built(sources: Path = SOURCES) -> Path:
    """The program of these very sources. Go is asked only when they changed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ingot" / "bench"
    text = b"".join(path.read_bytes() for path in sorted(sources.iterdir()))
    program = cache / f"load-{hashlib.sha256(text).hexdigest()[:16]}"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = program.with_suffix(f".{os.getpid()}")
        try:
            subprocess.run(["go", "build", "-trimpath", "-o", str(new), "."], cwd=sources, check=True)
        except FileNotFoundError as error:
            raise LoadFailed("the load comes from a Go program; install Go 1.25 or later") from error
        new.rename(program)
    return program


def requests(
    server: Server, method: str, path: str, *, count: int, clients: int, body: str = "", **more: str | int
) -> Outcome:
    """So many requests from so many clients at once."""
    options: dict[str, str | int] = {
        "method": method,
        "path": path,
        "count": count,
        "clients": clients,
        **more,
    }
    return _ended(server, _started(server, "requests", body, options))


@contextlib.contextmanager
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
) -> Iterator[tuple[Outcome, Callable[[], Outcome]]]:
    """So many watchers, all of them open: how that went, and what writes and waits until each has seen each write."""
    options: dict[str, str | int] = {
        "path": path,
        "watchers": watchers,
        "method": method,
        "write-path": write_path,
        "count": count,
    }
    program = _started(server, "watch", body, {**options, **more})
    try:
        assert program.stdout is not None
        opened = program.stdout.readline()
        if not opened:
            raise LoadFailed(f"{server.name}: {program.communicate()[1].strip()}")
        yield _outcome(server, opened), lambda: _ended(server, program)
    finally:
        program.kill()
        program.wait()


def _started(server: Server, what: str, body: str, options: Mapping[str, str | int]) -> subprocess.Popen[str]:
    command = [str(built()), what, "-url", server.url, "-ca", str(server.ca), "-token", str(server.token)]
    for name, value in options.items():
        command += [f"-{name}", str(value)]
    if body:
        file = server.folder / "body.json"
        file.write_text(body)
        command += ["-body", str(file)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _ended(server: Server, program: subprocess.Popen[str]) -> Outcome:
    said, wrong = program.communicate("go on\n")
    if program.returncode != 0:
        raise LoadFailed(f"{server.name}: {wrong.strip()}")
    return _outcome(server, said)


def _outcome(server: Server, line: str) -> Outcome:
    found = json.loads(line)
    if found["errors"]:
        raise LoadFailed(
            f"{server.name}: {found['errors']} of {found['count']} failed, as: {found['first_error']}"
        )
    return Outcome(
        count=found["count"],
        seconds=found["seconds"],
        rate=found["rate"],
        bytes=found["bytes"],
        latency_ms=found["latency_ms"] or {},
        client_cpu=found["client_cpu_seconds"],
    )
