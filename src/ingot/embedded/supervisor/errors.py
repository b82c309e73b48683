"""What can go wrong with a supervisor, as one tree (drawn in the package's docstring). All of it needs a person."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class SupervisorError(Exception):
    """The parts cannot run. The message says why and what to do."""


class AlreadyRunning(SupervisorError):
    def __init__(self, folder: Path, pid: int) -> None:
        self.pid = pid
        who = f"process {pid}" if pid else "a process of another container, or one that is stopped,"
        super().__init__(
            f"{folder}: {who} already runs this installation. Stop it first, or choose another state folder."
        )


class PortTaken(SupervisorError):
    def __init__(self, name: str, port: int, kept_in: Path) -> None:
        super().__init__(
            f"port {port} on 127.0.0.1 belongs to {name} of this installation, but another program listens there. "
            f"End that program (`ss -ltnp 'sport = :{port}'` names it), or give {name} another port in {kept_in}."
        )


class PartFailed(SupervisorError):
    """A part that never became ready. `last_words` is the end of what it printed."""

    def __init__(self, name: str, *, tries: int, how: str, log: Path, last_words: Sequence[str]) -> None:
        self.name = name
        self.log = log
        self.last_words = tuple(last_words)
        said = "\n".join(f"    {line}" for line in last_words) or "    (it printed nothing)"
        super().__init__(
            f"{name} was started {tries} times and never became ready; the last time it {how}. It said:\n{said}\n"
            f"Mend what it complains about and start again. All it said is in {log}."
        )
