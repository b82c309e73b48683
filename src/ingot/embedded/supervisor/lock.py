"""One supervisor for one state folder.

The lock is the kernel's, so it goes when its holder does, however it ends. Asking who holds it takes nothing: a question never
keeps anybody from holding it. The holder's process id and start time are in the file for others to read. What a holder that was
killed left there names no living process, so nobody takes it for the next one, whose own words come an instant after the lock.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.embedded.supervisor.errors import AlreadyRunning
from ingot.embedded.supervisor.procfs import process

PATIENCE: Final = 1.0
# The kernel's struct flock: type, whence, start, length (0: to the end), process id, padding.
_FLOCK: Final = struct.Struct("@hhqqi0q")


@dataclass(frozen=True, slots=True)
class Holder:
    """`pid` is 0 where the holder cannot be named: it runs in another container, or was stopped while it began."""

    pid: int


@contextmanager
def hold(run: Path) -> Iterator[None]:
    """Hold `run/lock` for as long as the block runs; raises AlreadyRunning when somebody else does."""
    run.mkdir(parents=True, exist_ok=True, mode=0o700)
    # No O_TRUNC: the file belongs to its holder until the lock is ours. Not inherited: a child must not keep the lock alive.
    handle = os.open(run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            # A lock of the open file, not of the process: closing another handle of the same file does not end it.
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _exclusive())
        except BlockingIOError:
            raise AlreadyRunning(run.parent, _pid_in(handle, PATIENCE)) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, _name_of(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)


def holder(run: Path, *, patience: float = PATIENCE) -> Holder | None:
    """Who runs this installation now; None when nobody does. Waits for a moment where the holder has not said it yet."""
    try:
        handle = os.open(run / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return Holder(_pid_in(handle, patience)) if _is_held(handle) else None
    finally:
        os.close(handle)


def _exclusive() -> bytes:
    return _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


def _is_held(handle: int) -> bool:
    kind, *_ = _FLOCK.unpack(fcntl.fcntl(handle, fcntl.F_OFD_GETLK, _exclusive()))
    return bool(kind != fcntl.F_UNLCK)


def _pid_in(handle: int, patience: float) -> int:
    deadline = time.monotonic() + patience
    while True:
        text = os.pread(handle, 64, 0).decode(errors="replace")
        number = text.partition(" ")[0]
        if number.isdecimal() and text == _name_of(int(number)):
            return int(number)
        if time.monotonic() >= deadline or not _is_held(handle):
            return 0
        time.sleep(0.01)


def _name_of(pid: int) -> str:
    """What names one process for as long as the machine runs; nothing where there is no such process."""
    found = process(pid)
    return f"{pid} {found.started}\n" if found else ""
