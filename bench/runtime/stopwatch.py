"""What a contender measures of itself, and how it tells: one line of JSON on its standard output."""

from __future__ import annotations

import json
import resource
import ssl
import sys
import threading
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Lap:
    """Seconds of the clock and of the processor."""

    wall: float
    cpu: float


class Stopwatch:
    """Started when it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def lap(self) -> Lap:
        return Lap(time.perf_counter() - self._wall, time.process_time() - self._cpu)


@dataclass(frozen=True, slots=True)
class Result:
    imported: float
    base: float
    """Memory in MB before the first request."""
    listed: Lap
    watched: Lap
    memory: float
    peak: float
    held_up: float = 0.0
    """The longest time for which the event loop was held up; 0 where nobody looked."""


def memory() -> float:
    """Resident memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def tell(result: Result) -> None:
    print(json.dumps(asdict(result)), flush=True)


def go(url: str, authority: Path) -> None:
    """Have the changes sent, from a thread that ends at once."""

    def post() -> None:
        context = ssl.create_default_context(cafile=authority)
        urllib.request.urlopen(f"{url}/go", data=b"", context=context).close()

    threading.Thread(target=post).start()


def arguments() -> tuple[Path, int, int]:
    """The folder of the server, how many hosts it has, how many changes it sends."""
    return Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
