"""One service for each state folder, with real processes that hold the lock as Ironic's do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingot.services import ownership
from ingot.services.errors import AlreadyRunning

# Takes the lock, says so, forks a worker that inherits it, and waits; like Ironic's master.
MASTER = """
import os, sys, time
from pathlib import Path
from ingot.services import ownership
ownership.take(Path(sys.argv[1]))
worker = os.fork()
if worker == 0:
    time.sleep(600)
print(worker, flush=True)
time.sleep(600)
"""


# Takes the lock when told to, says what came of it, and stays.
STARTER = """
import sys, time
from pathlib import Path
from ingot.services import ownership
from ingot.services.errors import AlreadyRunning
print("ready", flush=True)
sys.stdin.readline()
try:
    ownership.take(Path(sys.argv[1]))
except AlreadyRunning:
    print("refused", flush=True)
else:
    print("taken", flush=True)
    time.sleep(600)
"""


@contextmanager
def master(lock_file: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", MASTER, str(lock_file)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    try:
        yield process, worker
    finally:
        for each in (worker, process.pid):
            try:
                os.kill(each, 9)
            except ProcessLookupError:
                continue
        process.wait()
        process.stdout.close()


def test_a_free_folder_is_taken_and_remembers_by_whom(tmp_path: Path) -> None:
    descriptor = ownership.take(tmp_path / "lock")
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    assert os.get_inheritable(descriptor)
    os.close(descriptor)


def test_a_service_that_is_alive_is_not_disturbed(tmp_path: Path) -> None:
    with master(tmp_path / "lock") as (process, worker):
        with pytest.raises(AlreadyRunning, match=f"process {process.pid}"):
            ownership.take(tmp_path / "lock")
        assert process.poll() is None
        os.kill(worker, 0)


def test_a_worker_without_its_master_is_ended(tmp_path: Path) -> None:
    with master(tmp_path / "lock") as (process, worker):
        process.kill()
        process.wait()
        os.close(ownership.take(tmp_path / "lock"))
        assert not Path(f"/proc/{worker}/fd").exists() or not any(Path(f"/proc/{worker}/fd").iterdir())


def test_of_several_that_start_at_once_one_gets_the_folder_and_none_is_harmed(tmp_path: Path) -> None:
    with master(tmp_path / "lock") as (process, _):
        process.kill()
        process.wait()
        starters = [
            subprocess.Popen(
                [sys.executable, "-c", STARTER, str(tmp_path / "lock")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(6)
        ]
        try:
            assert [said(each) for each in starters] == ["ready"] * 6
            for each in starters:
                assert each.stdin is not None
                each.stdin.write("go\n")
                each.stdin.flush()
            assert sorted(said(each) for each in starters) == ["refused"] * 5 + ["taken"]
            assert (tmp_path / "lock").read_text() in {f"{each.pid}\n" for each in starters}
        finally:
            for each in starters:
                each.kill()
                each.communicate()


def said(process: subprocess.Popen[str]) -> str:
    """The next line of this process; nothing when it was ended before it could say one."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
