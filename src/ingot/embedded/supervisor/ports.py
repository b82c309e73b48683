"""Ports that are chosen once and kept, so that addresses survive a restart.

Owns `run/ports.json`. Call it while holding the state folder's lock and after the remains of an earlier run were ended: then a
kept port that is in use is in use by somebody else.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from ingot.embedded.supervisor.errors import PortTaken, SupervisorError
from ingot.trust import write_public

KEPT_PORTS: Final = range(10_000, 32_768)
"""Below the range from which the kernel gives ports to outgoing connections: while a part is away, one of those could take its
port, or, connecting to it, even meet itself."""


def kept_ports(run: Path, names: Sequence[str]) -> dict[str, int]:
    """A port for each name: the one kept for it, else a free one that is kept from now on."""
    path = run / "ports.json"
    kept = _read(path)
    for name in names:
        if name in kept and not 0 < kept[name] < 65536:
            raise SupervisorError(
                f"{path}: {name} has port {kept[name]}, and ports are numbers from 1 to 65535. "
                "Correct it, or remove the file and new ports are chosen."
            )
        if name in kept and not _free(kept[name]):
            raise PortTaken(name, kept[name], path)
    missing = [name for name in names if name not in kept]
    if missing:
        kept |= zip(missing, _choose(len(missing), avoid=set(kept.values())), strict=True)
        run.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_public(path, msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
    return {name: kept[name] for name in names}


def _read(path: Path) -> dict[str, int]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, int])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as problem:
        raise SupervisorError(
            f"{path} does not hold a port for each part ({problem}). Correct it, or remove it and new ports are chosen."
        ) from None


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: connections of an earlier run that linger in TIME_WAIT are no reason to refuse.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                return False
            raise SupervisorError(f"port {port} on 127.0.0.1 cannot be used: {problem.strerror}") from problem
    return True


def _choose(count: int, *, avoid: set[int]) -> list[int]:
    chosen: list[int] = []
    with ExitStack() as held:
        # Each stays bound until all are chosen, so no port is chosen twice.
        while len(chosen) < count:
            port = random.choice(KEPT_PORTS)  # noqa: S311 - any free one will do
            if port in avoid:
                continue
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            chosen.append(port)
    return chosen
