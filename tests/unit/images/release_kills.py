"""Kills a process with SIGKILL at one step of its work after the other, and looks at what it leaves behind.

    python release_kills.py SCENARIO FOLDER [SEED]

A step is anything that touches the file system, as Python's audit events tell. For each of them a child is forked, works, and is
killed just before that step; then the folder must be fit for whoever serves it, and doing the work again must end well. With a
seed, some of the steps are drawn by it. It is a process of its own because children are forked from it, which no process with
threads should do.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from release_room import payload_in

from ingot.images.release import Payload
from ingot.images.release.extracting import Parts
from ingot.images.release.mirroring import mirror
from ingot.images.release.places import FolderPlace
from ingot.images.release.unpacking import CURRENT, Wish, check_unpacked, unpack

STEPS = ("open", "os.rename", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.link")
OLD, NEW = "fedora-coreos-1", "fedora-coreos-2"
SOME = 10


def killed_at(step: int | None, work: Callable[[], None]) -> tuple[bool, int]:
    """Have a child do the work and be killed at this step, or never: whether it was, and how many steps it took."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:

        def hook(event: str, _: tuple[object, ...]) -> None:
            nonlocal step
            if event in STEPS:
                if step == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                step = None if step is None else step - 1
                os.write(writing, b".")

        sys.addaudithook(hook)
        work()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        steps = len(pipe.read())
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True, steps
    assert os.WEXITSTATUS(status) == 0, "the work failed"
    return False, steps


def steps_of(work: Callable[[], None], seed: int | None) -> list[int | None]:
    """When to kill it: at each of its steps, or at some; and not at all."""
    _, count = killed_at(None, work)
    every = range(count)
    assert len(every) > 2 * SOME
    return [*(every if seed is None else random.Random(seed).sample(every, SOME)), None]


def unpacking(folder: Path, seed: int | None) -> int:
    """An upgrade of what was unpacked, with another architecture gone and other kernel arguments."""
    old = Payload.open(payload_in(folder / "old", ("x86_64", "aarch64"), OLD).folder)
    new = Payload.open(payload_in(folder / "new", ("x86_64",), NEW).folder)
    before, target = folder / "before", folder / "images"
    unpack(old, before, Wish(parts=Parts.IMAGE_BUILD))

    def work() -> None:
        unpack(new, target, Wish(arguments=["console=ttyS0"], parts=Parts.IMAGE_BUILD))

    shutil.copytree(before, target, symlinks=True)
    killed = 0
    for step in steps_of(work, seed):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(before, target, symlinks=True)
        killed += killed_at(step, work)[0]
        check_fit_to_serve(target)
        work()
        assert check_unpacked(target).versions == {"x86_64": NEW}
        assert not (target / "coreos-aarch64.iso").is_symlink()
        assert not list(target.glob(".*")), "something was left half written"
    return killed


def check_fit_to_serve(target: Path) -> None:
    """No name leads nowhere, and all that is there is of one release, whole."""
    for path in target.iterdir():
        assert path.exists() or path.name.startswith("."), f"{path} leads nowhere"
    stamp = check_unpacked(target)
    assert set(stamp.versions.values()) in ({OLD}, {NEW})
    current = (target / CURRENT).resolve()
    names = [path for path in target.iterdir() if path.name.startswith(("coreos-", "ironic-python-agent"))]
    assert all(path.resolve().parent == current for path in names)


def mirroring(folder: Path, seed: int | None) -> int:
    """Another payload into the folder of one that is served."""
    old = payload_in(folder / "old", ("x86_64",), OLD)
    new = payload_in(folder / "new", ("x86_64",), NEW)
    target = folder / "served"

    def work() -> None:
        asyncio.run(mirror(FolderPlace(new.folder), FolderPlace(target)))

    shutil.copytree(old.folder, target)
    killed = 0
    for step in steps_of(work, seed):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(old.folder, target)
        served = Payload.open(target)
        killed += killed_at(step, work)[0]
        served.verify("x86_64")
        found = Payload.open(target)
        found.verify("x86_64")
        assert found.digest in (old.root().digest, new.root().digest)
        work()
        Payload.open(target).verify("x86_64")
        assert Payload.open(target).digest == new.root().digest
        assert not list(target.rglob(".*")), "something was left half written"
    return killed


if __name__ == "__main__":
    scenario, where, *drawn_by = sys.argv[1:]
    seed = int(drawn_by[0]) if drawn_by else None
    killed = {"unpacking": unpacking, "mirroring": mirroring}[scenario](Path(where), seed)
    print(f"killed at {killed} steps")
