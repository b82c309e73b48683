"""How each part is doing, for people and for other processes.

Owns the shape of `run/status.json`. The file is replaced as a whole; it tells the last thing the supervisor knew, so a reader
asks `holder` first whether there still is a supervisor.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import msgspec


class State(StrEnum):
    WAITING = "waiting"  # for the parts before it
    STARTING = "starting"  # its process runs and does not answer (yet, or any more)
    READY = "ready"
    RESTARTING = "restarting"  # it ended, and is started again after a pause
    FAILED = "failed"  # it never became ready and is not tried again
    STOPPING = "stopping"
    STOPPED = "stopped"


class PartStatus(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    state: State = State.WAITING
    pid: int = 0
    # Together with the boot's id this names the process even when its id was given out again.
    started_ticks: int = 0
    # Seconds since the epoch, when this state began.
    since: float = 0.0
    restarts: int = 0
    why: str = ""
    address: str = ""
    log: str = ""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    supervisor_pid: int
    boot_id: str
    since: float
    parts: list[PartStatus]

    @property
    def all_ready(self) -> bool:
        return all(part.state is State.READY for part in self.parts)


def read_status(run: Path) -> Status | None:
    """What the last supervisor wrote; None when there was none, or the file is of no use."""
    try:
        return msgspec.json.decode((run / "status.json").read_bytes(), type=Status)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
