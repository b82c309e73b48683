"""What ramdisks logged before something failed: the newest archives are kept, as many as fit into a size.

Ironic adds an archive for each step that fails and never removes one, and what fails is tried again. Looked after when Ironic
starts, and by the front server while it runs. Only files that have the name of such an archive are ever removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import stat
from pathlib import Path
from typing import Final

EVERY: Final = 600.0
"""Seconds."""
MIB: Final = 1024 * 1024
# UUID_NAME_…_TIME.tar.gz; what stands between is the node's name, which can be anything.
_ARCHIVE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}_.*\.tar\.gz", re.DOTALL)

log = logging.getLogger(__name__)


def prune(folder: Path, most: int) -> int:
    """Remove the oldest archives, until the rest has at most so many bytes; the newest stays. Says how many were removed."""
    found: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                about = entry.stat(follow_symlinks=False)
                if _ARCHIVE.fullmatch(entry.name) and stat.S_ISREG(about.st_mode):
                    found.append((about.st_mtime, about.st_size, entry.path))
    found.sort(reverse=True)
    removed, size = 0, 0
    for number, (_, length, path) in enumerate(found):
        size += length
        if number > 0 and size > most:
            Path(path).unlink(missing_ok=True)
            removed += 1
    return removed


async def keep_pruned(folder: Path, most: int, every: float = EVERY) -> None:
    """At once and again and again, until cancelled. A folder that cannot be read now may be one later."""
    told = ""
    while True:
        try:
            if removed := await asyncio.to_thread(prune, folder, most):
                log.info("%s of the oldest logs of ramdisks were removed from %s", removed, folder)
            told = ""
        except OSError as error:
            if str(error) != told:
                log.warning("old logs of ramdisks cannot be removed: %s", error)
            told = str(error)
        await asyncio.sleep(every)
