"""Who read what: one line for all that a machine asked of an image in a row, not one a request.

A BMC reads an image in ten thousand small ranges; what a person wants to know is that it did, how much, and how it ended. The
line comes when it has been quiet for a while, and now and then while it goes on. A name is a secret, so only its beginning is
shown; what was asked for and is no image is not shown at all.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ingot.images.server.names import shown

log = logging.getLogger(__name__)

QUIET: Final = 10.0
AT_LEAST_EVERY: Final = 60.0
_MOST: Final = 4096


@dataclass(slots=True)
class _Reading:
    began: float
    last: float = 0.0
    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)


class AccessLog:
    """For one thread."""

    def __init__(
        self, say: Callable[[str], None] = log.info, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._clock = clock
        self._readings: dict[tuple[str, str], _Reading] = {}

    def note(self, peer: str, name: str, status: int, sent: int) -> None:
        """A request was answered, with so many bytes of an image."""
        now = self._clock()
        reading = self._readings.get((peer, name))
        if reading is None:
            if len(self._readings) >= _MOST:
                self.tell(all_of_it=True)
            reading = self._readings[peer, name] = _Reading(now)
        reading.last = now
        reading.sent += sent
        reading.statuses[status] += 1

    def tell(self, *, all_of_it: bool = False) -> None:
        """Say what is ripe to be said."""
        now = self._clock()
        for (peer, name), reading in list(self._readings.items()):
            if all_of_it or now - reading.last >= QUIET or now - reading.began >= AT_LEAST_EVERY:
                del self._readings[peer, name]
                self._say(_line(peer, name, reading))


def _line(peer: str, name: str, reading: _Reading) -> str:
    what = f"image {shown(name)}" if name else "no image"
    answers = ", ".join(f"{count} × {status}" for status, count in sorted(reading.statuses.items()))
    return f"{peer}: {what}, {reading.sent} bytes in {reading.last - reading.began:.0f} s: {answers}"
