"""When a Machine that got its host tells how that is getting on: after the others have theirs.

Who waits for a host is served before who waits for news. What a claim has to write is written at once; its first status, and the
states that the host passes through meanwhile, wait until nobody has claimed anything for a moment, and not for ever.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ingot.api.meta import Key

QUIET: Final = 2.0
"""Seconds without a claim after which there is time for news."""
LONGEST: Final = 60.0
"""Seconds after which news come in any case: longer than a thousand Machines need to get their hosts, whoever got his first."""


class Lull:
    """The clock is the event loop's."""

    def __init__(self, quiet: float = QUIET) -> None:
        self._quiet = quiet
        self._claims: dict[Key, float] = {}
        """Who has not told anything yet since it got its host, and when that was."""
        self._last = 0.0

    def claimed(self, key: Key) -> None:
        self._last = self._claims[key] = asyncio.get_running_loop().time()

    def wait(self, key: Key) -> float:
        """Seconds until this one may tell its news; from 0 on it may."""
        since = self._claims.get(key)
        if since is None:
            return 0.0
        left = min(self._last + self._quiet, since + LONGEST) - asyncio.get_running_loop().time()
        if left > 0:
            return left
        self.forget(key)
        return 0.0

    def forget(self, key: Key) -> None:
        self._claims.pop(key, None)
