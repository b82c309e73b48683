"""Writing files that must be whole, and files that only their owner may read.

A file is written beside its place and moved there, so a reader sees the old one or the new one, never a part; it is synced
first, so that this is still true after a power cut.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_public(path: Path, content: bytes) -> None:
    _write(path, content, 0o644)


def write_private(path: Path, content: bytes) -> None:
    _write(path, content, 0o600)


def _write(path: Path, content: bytes, mode: int) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
