"""What the kernel says about processes: when one started, and who belongs to a session.

A process id alone proves nothing, because ids are given out again. An id together with its start time and the id of the boot
names one process for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    session: int
    # Clock ticks since boot.
    started: int
    zombie: bool

    def marked(self, marker: str) -> bool:
        """Whether the process was started with `marker` (NAME=value) in its environment."""
        with suppress(OSError):
            return marker.encode() in (_PROC / str(self.pid) / "environ").read_bytes().split(b"\0")
        return False


def boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def process(pid: int) -> Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may hold anything; what counts comes after the last one.
    fields = text.rpartition(")")[2].split()
    return Process(pid, session=int(fields[3]), started=int(fields[19]), zombie=fields[0] in "ZX")


def session_members(session: int) -> list[Process]:
    """The living processes of a session."""
    return [found for found in _all() if found.session == session and not found.zombie]


def _all() -> Iterator[Process]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (found := process(int(entry.name))) is not None:
            yield found
