"""Making hosts' images: one, beside what coreos-installer does, and a thousand."""

from __future__ import annotations

import asyncio
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
from ingot.images.controller.checking import Hashed
from ingot.images.controller.journal import Journal
from ingot.images.controller.publishing import Publisher
from ingot.images.ramdisk import agent_ignition
from ingot.images.region import Region
from ingot.images.server import Names, Shelf

TOOL = Path(__file__).parents[2] / "tools" / "coreos-installer" / "build"


@dataclass(frozen=True, slots=True)
class Made:
    """Seconds, bytes on disk, and megabytes of memory."""

    seconds: float
    disk: int
    memory: float = 0.0
    settling: float = 0.0
    """Seconds until the disk has it for good, which nobody waits for."""


def ours(iso: Path, folder: Path, count: int) -> tuple[Made, Made]:
    """The first image of a base, from opening it to an image that can be read, and then so many more."""
    return asyncio.run(_ours(iso, folder, count))


async def _ours(iso: Path, folder: Path, count: int) -> tuple[Made, Made]:
    sha256, settings = sha256_of(iso), settings_in(folder)
    shelf, journal = Shelf(), Journal(folder / "served")
    names = Names.kept_in(folder / "names.key")
    publisher = Publisher(shelf, names, "https://10.0.0.1:8084", linger=60.0, journal=journal)
    publisher.founded(Hashed(Region.whole(iso), sha256))
    disk, began = _disk(folder), time.perf_counter()
    maker = maker_of(iso, sha256, settings)

    async def make(number: int) -> None:
        made = maker.make("iso", hostname=f"host-{number}", keyfiles=keyfiles_of(number))
        publisher.publish(f"host-{number}", made.image, "coreos.iso")
        await publisher.served()

    await make(0)
    first = Made(time.perf_counter() - began, _disk(folder) - disk)
    disk, before, began = _disk(folder), memory([os.getpid()]), time.perf_counter()
    for number in range(1, count + 1):
        await make(number)
    seconds = time.perf_counter() - began
    assert len(shelf) == count + 1
    settling = time.perf_counter()
    await publisher.noted()
    settling = time.perf_counter() - settling
    found = Made(seconds, _disk(folder) - disk, memory([os.getpid()]) - before, settling)
    journal.close()
    return first, found


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
