"""Writing files that must be whole, files that only their owner may read, and files that are made only once.

A file is written beside its place and moved there, so a reader sees the old one or the new one, never a part; it is synced
first, so that this is still true after a power cut. What several processes may find missing at the same time is made under
`alone_in`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_public(path: Path, content: bytes) -> None:
    _write(path, content, 0o644)


def write_private(path: Path, content: bytes) -> None:
    _write(path, content, 0o600)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Nobody else who asks for the same is in this folder meanwhile. A process that dies lets go."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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
