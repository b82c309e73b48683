"""One supervisor for one state folder.

The lock is the kernel's (flock), so it goes when its holder does, however it ends. The holder's process id is in the file for
others to read; it is true exactly while the lock is held.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingot.embedded.supervisor.errors import AlreadyRunning


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int


@contextmanager
def hold(run: Path) -> Iterator[None]:
    """Hold `run/lock` for as long as the block runs; raises AlreadyRunning when somebody else does."""
    run.mkdir(parents=True, exist_ok=True, mode=0o700)
    # No O_TRUNC: the file belongs to its holder until the lock is ours. Not inherited: a child must not keep the lock alive.
    handle = os.open(run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(run.parent, _pid_in(handle)) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def holder(run: Path) -> Holder | None:
    """Who runs this installation now; None when nobody does."""
    try:
        handle = os.open(run / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Holder(_pid_in(handle))
    finally:
        os.close(handle)
    return None


def _pid_in(handle: int) -> int:
    text = os.pread(handle, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isdigit() else 0
