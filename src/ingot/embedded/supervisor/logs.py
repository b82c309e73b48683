"""What a part prints: kept in a file that does not grow for ever, its last lines at hand, its ready line noticed.

Owns `run/logs/<part>.log` and the older ones beside it (`.log.1` is the youngest). A part that prints without end costs at most
`(KEPT + 1) * LIMIT` bytes of disk. A disk that takes no more costs the lines that do not fit, never the part that printed them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

LIMIT: Final = 4 * 1024 * 1024
KEPT: Final = 3
LAST_LINES: Final = 20
LONGEST_LINE: Final = 2000


class Log:
    """The output of one part through all its lives."""

    def __init__(self, path: Path, *, ready_line: str = "", limit: int = LIMIT) -> None:
        self.path = path
        self._ready_line = ready_line.encode()
        self._limit = limit
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)
        self._rest = b""
        self.ready_line_seen = asyncio.Event()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def new_life(self) -> None:
        """The part starts (again): its ready line is still to come."""
        self._rest = b""
        self.ready_line_seen.clear()

    def write(self, chunk: bytes) -> None:
        # A full disk: what is told below still is, and the next line may fit again.
        with suppress(OSError):
            if self._size + len(chunk) > self._limit and self._size:
                self._rotate()
        with suppress(OSError):
            self._size += self._file.write(chunk)
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-LONGEST_LINE:]
        for line in lines:
            self._last.append(line[:LONGEST_LINE])
            if self._ready_line and line.startswith(self._ready_line):
                self.ready_line_seen.set()

    def last_lines(self) -> list[str]:
        lines = [*self._last, self._rest] if self._rest else [*self._last]
        return [line.decode(errors="replace") for line in lines[-LAST_LINES:]]

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        for number in range(KEPT, 0, -1):
            older = self.path if number == 1 else self.path.with_name(f"{self.path.name}.{number - 1}")
            if older.exists():
                older.replace(self.path.with_name(f"{self.path.name}.{number}"))
        fresh = self.path.open("ab", buffering=0)
        self._file.close()
        self._file, self._size = fresh, 0
