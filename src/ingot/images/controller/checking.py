"""Reading what is in use again and again in the background, slowly, to notice damage before a machine boots from it.

A thread of its own asks in each round what is in use by then, whatever it came from, reads it at a bounded rate, and tells of
each whether it is still what its hash says. It never stops for damage: a disk that failed once may be read again. Who listens
decides what follows; nothing is deleted here.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from ingot.images.region import Region

RATE: Final = 16 << 20
"""Bytes a second: a disk hardly notices, and the images of two architectures take some minutes."""
EVERY: Final = 6 * 3600.0
"""Seconds from the end of a round to the next one. What is new was read when it came."""
_CHUNK: Final = 1 << 20

Pace = Callable[[int], None]
"""Told after each piece how many bytes were read; it may take its time, and may raise."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """Bytes on disk, and the hash that they had when they were verified."""

    region: Region
    sha256: str

    @classmethod
    def read(cls, region: Region) -> Self:
        """As they are now. Raises `OSError`."""
        return cls(region, _hash_of(region))

    def problem(self, pace: Pace = lambda _: None) -> str:
        """What is wrong with them; "" when they are what they were. Reads them all."""
        try:
            found = _hash_of(self.region, pace)
        except OSError as error:
            return f"{self.region.path} cannot be read ({error.strerror})"
        if found != self.sha256:
            return f"{self.region.path} was changed: the hash of its image is {found}, not {self.sha256}"
        return ""


def _hash_of(region: Region, pace: Pace = lambda _: None) -> str:
    hasher = hashlib.sha256()
    with region.open() as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
            pace(len(chunk))
    return hasher.hexdigest()


Report = Callable[[Hashed, str], None]
"""What was read, and what is wrong with it or ""; called from the thread."""


class BackgroundCheck:
    """Checks what is in use from `start` (or `with`) to `stop`; `in_use` is asked from the thread."""

    def __init__(
        self,
        in_use: Callable[[], Iterable[Hashed]],
        report: Report,
        *,
        rate: float = RATE,
        every: float = EVERY,
    ) -> None:
        self._in_use = in_use
        self._report = report
        self._rate = rate
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="image-check", daemon=True)

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
            while not self._stopping.wait(self._every):
                for hashed in self._in_use():
                    self._report(hashed, self._problem(hashed))
        except _Stopped:
            return

    def _problem(self, hashed: Hashed) -> str:
        began, read = time.monotonic(), 0

        def pace(size: int) -> None:
            nonlocal read
            read += size
            ahead = read / self._rate - (time.monotonic() - began)
            if self._stopping.wait(max(0.0, ahead)):
                raise _Stopped

        return hashed.problem(pace)


class _Stopped(Exception):
    """No error: the way out of the middle of a file."""
