"""A folder for one run of a benchmark."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """Gone afterwards; but what failed, maybe after most of an hour, leaves its logs behind."""
    folder = Path(tempfile.mkdtemp(prefix="ingot-bench-"))
    try:
        yield folder
    except BaseException:
        print(f"  what was written down is in {folder}", file=sys.stderr, flush=True)
        raise
    shutil.rmtree(folder)
