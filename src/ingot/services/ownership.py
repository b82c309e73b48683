"""One Ironic for each state folder, and nothing left over of the one before.

Ironic is a master and a worker. When the master is killed, its worker goes on for up to a minute with what it was doing; a
second Ironic beside it would drive the same hosts. So both hold one file lock, which the worker inherits, and which is gone
only when both are. Taking it ends a worker without a master, and refuses to disturb a master that is alive.

Whoever has the lock file open and is not the recorded master counts as such a worker. So only one process at a time tries to
take the lock: it has to hold a second one, the door, until its name is recorded.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ingot.services.errors import AlreadyRunning

_PATIENCE: Final = 10.0
_POLL: Final = 0.05


def take(lock_file: Path) -> int:
    """Own this state folder from now on, through exec and fork, until the last process of ours is gone.

    Returns the descriptor of the lock, for children that must not outlive us unnoticed.
    """
    with _door(lock_file):
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _end_orphans_until_locked(descriptor, lock_file)
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            os.close(descriptor)
            raise
    os.set_inheritable(descriptor, True)
    return descriptor


@contextmanager
def _door(lock_file: Path) -> Iterator[None]:
    with lock_file.with_name(f"{lock_file.name}.door").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield


def _end_orphans_until_locked(descriptor: int, lock_file: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not _try_lock(descriptor):
        master = _recorded_master(descriptor)
        holders = _holders(lock_file)
        if master in holders or time.monotonic() > deadline:
            who = f"process {master}" if master in holders else "a process that cannot be ended from here"
            raise AlreadyRunning(
                f"Ironic already runs on {lock_file.parent} ({who}). "
                "Stop that one first, or give this one a folder of its own by INGOT_IRONIC_STATE."
            )
        for orphan in holders:
            _kill(orphan)
        time.sleep(_POLL)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _recorded_master(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    return int(text) if text.isdigit() else None


def _holders(lock_file: Path) -> list[int]:
    """Who has the lock file open, apart from ourselves: by construction only processes of an Ironic started here."""
    wanted = lock_file.stat()
    others = (
        entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and int(entry.name) != os.getpid()
    )
    return [int(process.name) for process in others if _has_open(process, wanted)]


def _has_open(process: Path, wanted: os.stat_result) -> bool:
    try:
        for descriptor in (process / "fd").iterdir():
            here = descriptor.stat()
            if (here.st_dev, here.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    except OSError:  # it ended while we looked, or it belongs to somebody else
        return False
    return False


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # gone already, or somebody else's: then patience runs out
        return
