"""Looking at a folder in which somebody else is at work: files and folders in it come and go meanwhile."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path


def files_in(folder: Path, pattern: str = "*") -> Iterator[Path]:
    """Those with such a name, at any depth; some of them may be gone by now."""
    for where, _, names in os.walk(folder):
        yield from (Path(where, name) for name in fnmatch.filter(names, pattern))


def sizes_in(folder: Path, pattern: str = "*") -> list[int]:
    sizes = []
    for path in files_in(folder, pattern):
        with contextlib.suppress(FileNotFoundError):
            sizes.append(path.stat().st_size)
    return sizes
