"""How long to wait after failures in a row: doubling, bounded, never the same for two who failed together."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """The n-th failure in a row waits `first * 2**(n-1)` seconds, at most `limit`, less up to a quarter."""

    first: float = 0.005
    limit: float = 60.0

    def longest(self, failures: int) -> float:
        """The wait before jitter. `failures` counts from one."""
        # Bounded exponent: a key that failed for a year must not overflow a float.
        return min(self.limit, self.first * 2.0 ** min(failures - 1, 60))

    def delay(self, failures: int) -> float:
        return self.longest(failures) * random.uniform(0.75, 1.0)  # noqa: S311 - jitter, not a secret
