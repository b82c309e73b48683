"""When to start a part again, and when to give up: pure decisions over how it fared so far.

A part that was ready once is restarted for ever: what ran can run again. One that never was, and ended several times, has a
fault that time does not mend, and a person should read its last words instead of waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 10.0
WELL_AFTER: Final = 30.0
TRIES_AT_FIRST: Final = 5


@dataclass(frozen=True, slots=True)
class Fortune:
    """How a part fared: endings in a row since it last was well, and whether it was ever ready."""

    endings: int = 0
    ever_ready: bool = False

    def became_ready(self) -> Fortune:
        return replace(self, ever_ready=True)

    def ended(self, *, ready_for: float) -> Fortune:
        """It ended, `ready_for` seconds after it was last found ready (0: it never was in this life)."""
        before = 0 if ready_for >= WELL_AFTER else self.endings
        return replace(self, endings=before + 1)

    @property
    def hopeless(self) -> bool:
        return not self.ever_ready and self.endings >= TRIES_AT_FIRST

    @property
    def pause(self) -> float:
        """Seconds to wait before the next start."""
        doublings = min(max(self.endings - 1, 0), 16)
        return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2**doublings))
