"""`ingot up --detach` on an empty folder: when each part is ready, and when the hosts are where they belong.

The times of the parts are the supervisor's own records; those of the hosts are when a watch of the API tells of them. Nothing is
asked more often than a person's eyes would.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ingot.api.baremetalhost import BARE_METAL_HOSTS, State
from ingot.cli.parts.plan import ingot
from ingot.cli.parts.progress import views_of
from ingot.cli.parts.state import StateFolder
from ingot.embedded.supervisor import State as PartState
from ingot.embedded.supervisor import read_status
from ingot.kube import Client, Informer

HEADER: Final = ("", "median", "least", "most")
LOOK_EVERY: Final = 0.1
PATIENCE: Final = 600.0
# What `ingot up` makes when nobody says otherwise: the first of them gets an image.
SERVERS: Final = 3
_MOMENTS: Final = {
    "api-server": "API answers",
    "lab": "simulated servers answer",
    "ironic": "Ironic answers",
    "operator": "operator runs: every part is ready",
    "available": "first host available",
    "provisioned": "first host provisioned",
    "arrived": "all three hosts where they belong",
    "returned": "`ingot up --detach` returns",
}

Moments = Mapping[str, float]
"""Seconds since the command was started, by the keys of `_MOMENTS`."""


def rows(seen: Sequence[Moments]) -> list[list[str]]:
    found = []
    for key, words in _MOMENTS.items():
        times = [moments[key] for moments in seen]
        found.append([words, *(f"{f(times):.1f} s" for f in (statistics.median, min, max))])
    return found


def measure() -> Moments:
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        return asyncio.run(_measure(StateFolder(Path(folder) / "state")))


async def _measure(state: StateFolder) -> Moments:
    began = time.time()
    up = await _start("up", "--detach", state=state)
    try:
        async with asyncio.timeout(PATIENCE):
            hosts = await _watch_hosts(state, up, began)
            _, complaint = await up.communicate()
        returned = time.time() - began
        if up.returncode:
            raise SystemExit(f"`ingot up --detach` failed:\n{complaint.decode(errors='replace')}")
        status = read_status(state.run)
        assert status is not None
        parts = {part.name: part.since - began for part in status.parts if part.state is PartState.READY}
        return parts | hosts | {"returned": returned}
    finally:
        # It runs in the background by design, so it is stopped whatever happened here.
        if up.returncode is None:
            up.terminate()
        await (await _start("down", "--wipe", "--yes", state=state)).communicate()


async def _start(*arguments: str, state: StateFolder) -> Process:
    command = ingot(*arguments, "--state", str(state.path))
    return await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=PIPE)


async def _watch_hosts(state: StateFolder, up: Process, began: float) -> dict[str, float]:
    """When the first host was available, when one was provisioned, when all had arrived."""
    while not _api_is_ready(state):
        if up.returncode is not None:
            return {}
        await asyncio.sleep(LOOK_EVERY)
    seen: dict[str, float] = {}
    all_there = asyncio.Event()
    async with Client.from_kubeconfig(state.kubeconfig) as client:
        hosts = Informer(client, BARE_METAL_HOSTS)

        def look(_: object) -> None:
            now, views = time.time() - began, views_of(hosts.items())
            for name in (State.AVAILABLE, State.PROVISIONED):
                if any(view.state == name for view in views):
                    seen.setdefault(str(name), now)
            if len(views) == SERVERS and all(view.arrived for view in views):
                seen.setdefault("arrived", now)
                all_there.set()

        hosts.subscribe(look)
        following = [asyncio.create_task(hosts.run())]
        waiting = [asyncio.create_task(all_there.wait()), asyncio.create_task(up.wait())]
        try:
            await asyncio.wait([*following, *waiting], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*following, *waiting):
                task.cancel()
            await asyncio.gather(*following, *waiting, return_exceptions=True)
    return seen


def _api_is_ready(state: StateFolder) -> bool:
    status = read_status(state.run)
    return status is not None and any(
        part.name == "api-server" and part.state is PartState.READY for part in status.parts
    )
