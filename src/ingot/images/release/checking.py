"""Reading a payload again and again in the background, slowly, to notice damage before a machine boots from it.

A thread of its own reads every image at a bounded rate and tells after each one whether it is still what its hash says. It never
stops for damage: a disk that failed once may be read again, and a folder that was mended is found whole in the next round.
Who listens decides what follows; nothing is deleted here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from ingot.images.release.errors import PayloadError
from ingot.images.release.payload import Payload

log = logging.getLogger(__name__)

RATE: Final = 16 << 20
"""Bytes a second: a disk hardly notices, and a payload of two architectures takes some minutes."""
EVERY: Final = 6 * 3600.0
"""Seconds from the end of a round to the next one."""

Report = Callable[[str, PayloadError | None], None]
"""Architecture, and what is wrong with it or None; called from the thread."""


class BackgroundCheck:
    """Checks a payload from `start` (or `with`) to `stop`."""

    def __init__(self, payload: Payload, report: Report, *, rate: float = RATE, every: float = EVERY) -> None:
        self._payload = payload
        self._report = report
        self._rate = rate
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="payload-check", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Returns when the thread has ended, which takes no longer than reading one piece."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            while True:
                for architecture in self._payload.images:
                    self._report(architecture, self._found(architecture))
                if self._stopping.wait(self._every):
                    return
        except _Stopped:
            return

    def _found(self, architecture: str) -> PayloadError | None:
        began, read = time.monotonic(), 0

        def pace(size: int) -> None:
            nonlocal read
            read += size
            ahead = read / self._rate - (time.monotonic() - began)
            if self._stopping.wait(max(0.0, ahead)):
                raise _Stopped

        try:
            self._payload.verify(architecture, pace)
        except PayloadError as error:
            log.error("the release payload is damaged: %s", error)
            return error
        return None


class _Stopped(Exception):
    """No error: the way out of the middle of a file."""
