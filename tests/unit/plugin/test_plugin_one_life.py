"""A worker ends with its master: real processes that are killed at the moments that matter."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

SOURCES = str(Path(__file__).parents[3] / "ironic-plugin" / "src")
DEADLINE = 60.0

KILLED_LATER = """
import os, signal, time
from ingot_ironic import one_life
one_life.install()
worker = os.fork()
if worker == 0:
    print(os.getpid(), flush=True)
    time.sleep(600)
signal.pause()
"""

KILLED_DURING_THE_FORK = """
import os, signal, time
from ingot_ironic import one_life

def master_dies():
    master = os.getppid()
    os.kill(master, signal.SIGKILL)
    while os.getppid() == master:
        time.sleep(0.01)
    print(os.getpid(), flush=True)

os.register_at_fork(after_in_child=master_dies)
one_life.install()
if os.fork() == 0:
    time.sleep(600)
signal.pause()
"""

OF_THE_WORKER = """
import os, signal, time
from ingot_ironic import one_life
one_life.install()
if os.fork() == 0:
    if os.fork() == 0:
        worker = os.getppid()
        os.kill(worker, signal.SIGKILL)
        while os.getppid() == worker:
            time.sleep(0.01)
        print(os.getpid(), flush=True)
        time.sleep(600)
    signal.pause()
signal.pause()
"""


def started(script: str) -> tuple[subprocess.Popen[str], int]:
    """The master, and the process that it tells of."""
    master = subprocess.Popen(
        [sys.executable, "-c", script], env={"PYTHONPATH": SOURCES}, stdout=subprocess.PIPE, text=True
    )
    assert master.stdout is not None
    with master.stdout:
        return master, int(master.stdout.readline())


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(process: int) -> bool:
    end = time.monotonic() + DEADLINE
    while alive(process) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(process)


def test_a_worker_ends_when_its_master_is_killed() -> None:
    master, worker = started(KILLED_LATER)
    assert alive(worker)
    master.kill()
    master.wait()
    assert gone(worker)


def test_a_worker_ends_when_its_master_was_killed_before_it_could_be_bound() -> None:
    master, worker = started(KILLED_DURING_THE_FORK)
    master.wait()
    assert gone(worker)


def test_what_a_worker_starts_is_not_bound() -> None:
    master, helper = started(OF_THE_WORKER)
    try:
        assert alive(helper)
    finally:
        os.kill(helper, 9)
        master.kill()
        master.wait()
