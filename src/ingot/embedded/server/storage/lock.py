"""One at a time: whoever serves a state folder, or replaces what is in it, holds its lock.

The kernel lets go of it when its holder ends, however that happens. The file names the holder, for the sentence that
somebody else gets.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ingot.embedded.server.errors import StateError


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold this folder of a state folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(
            f"{folder.parent} cannot be used as the state folder ({error}). Choose another one with --state."
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            raise StateError(
                f"another API server (process {holder}) uses the state folder {folder.parent}. "
                "Stop it first, or choose another folder with --state."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
