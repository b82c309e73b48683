"""Making hosts' images: one, beside what coreos-installer does, and a thousand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from api.procfs import memory
from images.live import keyfiles_of, maker_of, settings_in, sha256_of
from ingot.images.ramdisk import agent_ignition
from ingot.images.server import Names, Shelf

TOOL = Path(__file__).parents[2] / "tools" / "coreos-installer" / "build"


@dataclass(frozen=True, slots=True)
class Made:
    """Seconds, bytes on disk, and megabytes of memory."""

    seconds: float
    disk: int
    memory: float = 0.0


def ours(iso: Path, folder: Path, count: int) -> tuple[Made, Made]:
    """The first image of a base, from opening it to an image that can be read, and then so many more."""
    sha256, settings, names, shelf = (
        sha256_of(iso),
        settings_in(folder),
        Names.kept_in(folder / "names.key"),
        Shelf(),
    )
    disk, began = _disk(folder), time.perf_counter()
    maker = maker_of(iso, sha256, settings)

    def make(number: int) -> None:
        made = maker.make("iso", hostname=f"host-{number}", keyfiles=keyfiles_of(number))
        shelf.put(names.name("hosts", f"host-{number}", "iso"), made.image)

    make(0)
    first = Made(time.perf_counter() - began, _disk(folder) - disk)
    before, began = memory([os.getpid()]), time.perf_counter()
    for number in range(1, count + 1):
        make(number)
    seconds = time.perf_counter() - began
    assert len(shelf) == count + 1
    return first, Made(seconds, _disk(folder) - disk, memory([os.getpid()]) - before)


def ours_alone(iso: Path, folder: Path, count: int) -> tuple[Made, Made]:
    """The same in a process of its own, so that its memory is what the images take."""
    command = [sys.executable, __file__, str(iso), str(folder), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, all_of_them = (Made(**each) for each in json.loads(done.stdout))
    return first, all_of_them


def theirs(iso: Path, folder: Path, rounds: int) -> Made | None:
    """The median of `coreos-installer iso ignition embed -o` with the same config; None where the command is not built."""
    command = Path(
        subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=True).stdout.strip()
    )
    if not command.exists():
        return None
    config, output = folder / "config.ign", folder / "theirs.iso"
    config.write_bytes(agent_ignition(settings_in(folder), hostname="host-0", keyfiles=keyfiles_of(0)))
    seconds, written = [], 0
    for _ in range(rounds):
        output.unlink(missing_ok=True)
        began = time.perf_counter()
        subprocess.run([command, "iso", "ignition", "embed", "-i", config, "-o", output, iso], check=True)
        seconds.append(time.perf_counter() - began)
        written = output.stat().st_blocks * 512
    output.unlink()
    return Made(median(seconds), written)


def _disk(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    found = ours(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps([asdict(each) for each in found]))
