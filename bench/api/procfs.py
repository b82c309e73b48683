"""What the kernel knows of processes: the processor time they spent, the memory they hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def processor_time(pids: Iterable[int]) -> float:
    """Seconds that these processes, all their threads together, spent since they started."""
    return sum(_spent(pid) for pid in pids)


def memory(pids: Iterable[int]) -> float:
    """Resident memory of these processes together, in MB."""
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _spent(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
