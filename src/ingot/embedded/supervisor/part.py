"""A part, as data: what to start, after what, and how one sees that it is ready.

Pure values. Secrets do not belong into `argv`, which every user of the machine can read; the environment and files are for that.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ingot.embedded.supervisor.errors import SupervisorError

# An empty string: it is well. Otherwise the sentence that says what is missing.
Probe = Callable[[], Awaitable[str]]

NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One process to keep running.

    Ready means: it printed a line that starts with `ready_line` (when one is given) and `probe` is content (when there is one).
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    # What is only known once the parts before it are ready; asked before each start.
    late_environment: Callable[[], Mapping[str, str]] = lambda: NOTHING
    after: Sequence[str] = ()
    ready_line: str = ""
    probe: Probe | None = None
    address: str = ""
    stop_signal: signal.Signals = signal.SIGTERM
    grace: float = 15.0
    # A process that is alive and does not answer is not well: so long may it take at its start, and later on.
    start_within: float = 180.0
    silent_for: float = 60.0
    # How often a part that is ready is asked whether it still is.
    ask_every: float = 10.0

    def __post_init__(self) -> None:
        if not self.name or not self.name.replace("-", "").isalnum():
            raise ValueError(
                f"{self.name!r} is no name for a part: letters, digits and hyphens, for it names a log file"
            )
        if not self.argv:
            raise ValueError(f"{self.name}: a part needs a command")


def in_order(parts: Sequence[Part]) -> list[Part]:
    """The parts so that each stands behind what it comes after; as given where that leaves a choice."""
    known = {part.name for part in parts}
    if len(known) != len(parts):
        raise SupervisorError(f"two parts have the same name: {', '.join(part.name for part in parts)}")
    ordered: list[Part] = []
    left = list(parts)
    while left:
        done = {part.name for part in ordered}
        ready = [part for part in left if done.issuperset(part.after)]
        if not ready:
            names = ", ".join(f"{part.name} (after {', '.join(part.after)})" for part in left)
            raise SupervisorError(
                f"these parts wait for each other or for a part that does not exist: {names}"
            )
        ordered.append(ready[0])
        left.remove(ready[0])
    return ordered
