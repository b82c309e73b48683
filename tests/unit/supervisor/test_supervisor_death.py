"""What happens when the supervisor itself ends: politely, or by kill -9; and that there is only one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from supervised import end, lives

from ingot.embedded.supervisor import AlreadyRunning, Holder, end_remains, hold, holder, read_status

PROGRAM = Path(__file__).with_name("supervised.py")


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)


children: list[int] = []


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    while children:
        end(children.pop())


@contextmanager
def supervisor(run: Path) -> Iterator[tuple[subprocess.Popen[str], int, int, list[int]]]:
    """A supervisor in a process of its own: the process, its part, the part's child, the remains it ended at its start."""
    process = subprocess.Popen([sys.executable, str(PROGRAM), str(run)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        part, child, *ended = map(int, process.stdout.readline().split())
        try:
            yield process, part, child, ended
        finally:
            process.kill()
            children.append(child)


def test_kill_9_of_the_supervisor_leaves_no_part_behind(tmp_path: Path) -> None:
    with supervisor(tmp_path / "run") as (process, part, _child, _):
        assert lives(part)
        process.kill()
        until(lambda: not lives(part), "the part dies with its supervisor")


def test_what_a_killed_supervisor_left_is_ended_at_the_next_start(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with supervisor(run) as (process, part, child, _):
        process.kill()
        until(lambda: not lives(part), "the part dies with its supervisor")
    assert lives(child), "the grandchild is not tied to the supervisor"
    with supervisor(run) as (_, _, _, ended):
        assert ended == [child]
        assert not lives(child)


def test_a_process_that_only_has_the_same_number_is_left_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with supervisor(run) as (process, part, _child, _):
        process.kill()
        process.wait()
    stranger = subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    try:
        status = (run / "status.json").read_text()
        (run / "status.json").write_text(status.replace(f'"pid": {part}', f'"pid": {stranger.pid}'))
        assert asyncio.run(end_remains(run)) == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_nothing_is_ended_for_a_status_from_before_a_reboot(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with supervisor(run) as (process, part, child, _):
        process.kill()
        until(lambda: not lives(part), "the part dies with its supervisor")
    told = read_status(run)
    assert told is not None
    path = run / "status.json"
    before = path.read_text()
    path.write_text(before.replace(told.boot_id, "another-boot"))
    assert asyncio.run(end_remains(run)) == []
    assert lives(child)
    path.write_text(before)
    assert asyncio.run(end_remains(run)) == [child]


def test_sigterm_ends_the_part_and_its_children(tmp_path: Path) -> None:
    with supervisor(tmp_path / "run") as (process, part, child, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not lives(part)
        assert not lives(child)


def test_a_second_supervisor_of_a_folder_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with supervisor(run) as (process, *_):
        with pytest.raises(AlreadyRunning, match=rf"process {process.pid} already runs this"), hold(run):
            pass
        held = holder(run)
        assert held is not None
        assert held.pid == process.pid
    assert holder(run) is None


def test_the_lock_goes_with_its_holder_and_parts_do_not_keep_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with supervisor(run) as (process, _part, child, _):
        process.kill()
        process.wait()
        assert lives(child)
        with hold(run):
            held = holder(run)
            assert held is not None
            assert held.pid == os.getpid()


def test_asking_who_holds_a_folder_never_keeps_anybody_from_holding_it(tmp_path: Path) -> None:
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            holder(tmp_path)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(2000):
            with hold(tmp_path):
                pass
    finally:
        over.set()
        asking.join()


@pytest.mark.parametrize("left", ["", "1\n", f"{os.getpid()}\n", f"{os.getpid()} 1\n", "spoilt"])
def test_a_number_that_somebody_else_left_in_the_lock_is_not_taken_for_the_holder(
    tmp_path: Path, left: str
) -> None:
    with hold(tmp_path):
        (tmp_path / "lock").write_text(left)
        assert holder(tmp_path, patience=0) == Holder(0)


def test_nobody_holds_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert holder(tmp_path / "nothing") is None
