"""How fast the simulated servers are, and how they are built. The defaults are safe against Ironic's own races."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ingot.lab.errors import LabError
from ingot.lab.hardware import BUILDS
from ingot.lab.labfile import NETWORK
from ingot.lab.profiles import profile

_UNFIT: Final = re.compile(r"[^A-Za-z0-9:/.\[\]_~%-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Seconds, unless a name says otherwise."""

    boot: float = 2.0
    """From the moment the powered-on server was first looked at until the ramdisk runs. Ironic looks right before it begins
    to wait for the agent; an agent that speaks before that is not heard."""
    boot_unwatched: float = 10.0
    """How long a boot waits to be looked at before it goes on by itself."""
    power: float = 0.0
    """How long the BMC shows PoweringOn or PoweringOff after a reset. Ironic looks after one second for the first time."""
    task: float = 1.0
    """How long a task of the BMC takes: a volume, a firmware image after it was fetched, a profile that is imported."""
    bmc_restart: float = 5.0
    """How long the BMC is away when it restarts."""
    shutdown: float = 1.0
    """How long an operating system takes to stop when it is asked to."""
    heartbeat_gap: float = 5.0
    """Least time between two heartbeats. Ironic drops one that comes while it still works on the answer to the last."""
    step: float = 0.2
    """Least time a clean or deploy step takes."""
    disk_mib_per_second: float = 0.0
    """0 is as fast as the machine below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmSettings:
    """One farm: where it lives, how many servers it has, which Ironic its ramdisk calls."""

    state: Path
    servers: int = 3
    network: str = NETWORK
    """Where the servers of a new lab have their addresses."""
    profiles: tuple[str, ...] = ("generic",)
    """Whose BMC new servers have, in turn."""
    builds: tuple[str, ...] = ("standard",)
    """What is in new servers, in turn."""
    listen_host: str = "127.0.0.1"
    listen_port: int = 0
    agent_api: str
    """Base URL of the agent's API, without the version."""
    agent_ca: Path | None = None
    """Who signed the agent API's certificate; the installation's CA when not given."""
    ipxe_url: str = ""
    """The script that a boot from the network loads; without one, nothing answers there."""
    timings: Timings = field(default_factory=Timings)

    def __post_init__(self) -> None:
        for name in self.profiles:
            profile(name)
        for name in self.builds:
            if name not in BUILDS:
                raise LabError(f"the lab knows no build {name!r}; it has {', '.join(BUILDS)}")
        # It becomes a kernel parameter and a URL, so nothing that either would read differently may be in it.
        if not _is_web_address(self.agent_api):
            raise LabError(
                f"{self.agent_api!r} is no address of an Ironic API; give one like https://127.0.0.1:6385"
            )
        if self.ipxe_url and not _is_web_address(self.ipxe_url):
            raise LabError(
                f"{self.ipxe_url!r} is no address of a boot script; give one like http://127.0.0.1:6180/boot.ipxe"
            )


def _is_web_address(text: str) -> bool:
    url = urlsplit(text)
    return url.scheme in ("http", "https") and bool(url.hostname) and not _UNFIT.search(text)
