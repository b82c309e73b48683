"""What is known of one run: when it came where, what it cost, and what the server saw of it.

The ends of the phases are the server's own: a phase ends when the next one reaches the machine. So both ways of driving it are
measured in one place by one clock, and what either of them believes in between does not matter. The end of the last phase is the
moment at which the one who waits is told.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ingot.lab.client import Lab
from ingot.lab.views import ServerView

PHASES: Final = ("register", "inspect", "clean and deploy", "total")
_MEDIUM: Final = "virtual medium inserted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One host, from nothing to provisioned. Times are seconds since the epoch."""

    began: float
    told: float
    server: ServerView
    processor: Mapping[str, float]
    """Seconds, by who spent them between the beginning and the end."""
    writes: Mapping[str, int] = field(default_factory=dict)
    """Writes to the API, by kind, without the ones that ordered the host."""

    def phases(self) -> dict[str, float]:
        # The ramdisk is put in to inspect, to clean, and to deploy.
        media = [line.at.timestamp() for line in self.server.log if line.text.startswith(_MEDIUM)]
        if len(media) != 3:
            raise SystemExit(
                f"{self.server.name} booted its ramdisk {len(media)} times; a run on a fresh server does so three times"
            )
        inspected, cleaned, _ = media
        times = (inspected - self.began, cleaned - inspected, self.told - cleaned, self.told - self.began)
        return dict(zip(PHASES, times, strict=True))

    def work(self) -> str:
        """What was done to the server, in words that are the same when the same was done."""
        seen = self.server
        image = seen.running.image_sha256[:12] if seen.running else "nothing"
        power = ", ".join(action.what for action in seen.power_actions)
        return (
            f"{seen.cleanings} cleaning, {seen.deployments} deployment, {seen.boots} boots, power {power}; "
            f"it runs the image {image} with the user data of the order"
        )


async def running(lab: Lab, name: str) -> ServerView:
    """The server once it has booted its disk: Ironic and Ingot are done a moment before the machine is."""
    async with asyncio.timeout(60):
        while True:
            if (seen := await lab.server(name)).booted_into == "instance":
                return seen
            await asyncio.sleep(0.25)


def processor_time(leader: int) -> float:
    """Seconds of all processes in the session of this process: a part and what it has started."""
    # After the name: state, parent, group, session, …; the times of the process and of children it has waited for.
    spent = sum(int(ticks) for fields in _session(leader).values() for ticks in fields[11:15])
    return spent / os.sysconf("SC_CLK_TCK")


def resident(leader: int) -> float:
    """Megabytes of the same processes."""
    pages = sum(int(fields[21]) for fields in _session(leader).values())
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _session(leader: int) -> dict[int, list[str]]:
    """The processes of a session: what the kernel says of each behind its name."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == leader:
                found[int(folder.name)] = fields
    return found
