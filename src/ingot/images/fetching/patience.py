"""When to try again, and how long to wait before: pure rules.

Weather is tried again: a server that is busy or broken for the moment, a connection that was cut. A clear no is not. Waits
double and are drawn at random, so that a rack of machines does not come back in one blow; what a server asks for with
Retry-After is heeded, within reason.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

WEATHER: Final = frozenset({408, 429, 500, 502, 503, 504})
_LONGEST_WISH: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long."""

    retries: int | None = 5
    """Failures in a row, without a new byte between them, after which it is given up; None: never."""
    first: float = 1.0
    longest: float = 60.0

    def pause(self, failures: int, wish: float | None, chance: float) -> float | None:
        """Seconds to wait after so many failures in a row; None when it is enough. `chance` is between 0 and 1."""
        if self.retries is not None and failures > self.retries:
            return None
        most = min(self.longest, self.first * 2.0 ** min(failures - 1, 32))
        own = most * (0.5 + chance / 2)
        return own if wish is None else max(own, min(wish, _LONGEST_WISH))


@dataclass(slots=True)
class Tries:
    """The failures of one file. Progress makes up for them: a long file on a bad line gets there piece by piece."""

    patience: Patience
    failures: int = 0
    furthest: int = 0
    _random: random.Random = field(default_factory=random.Random)

    def pause(self, reached: int, wish: float | None = None) -> float | None:
        """Seconds to wait after a failure with so many bytes there; None when it is enough."""
        if reached > self.furthest:
            self.furthest, self.failures = reached, 0
        self.failures += 1
        return self.patience.pause(self.failures, wish, self._random.random())


def retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for: a number, or a date."""
    if value is None:
        return None
    if value.strip().isdecimal() and value.strip().isascii():
        return float(value[:20])
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())
