"""Watching an `ingot up` that runs in another process, until everything it brings up is where it should be.

Reads the files that process writes and asks the API it started; changes nothing. It looks at files several times a second rather
than being told: it lives for a minute, and the other process must not depend on anybody watching.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from typing import Final

import click

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.meta import Key
from ingot.cli.parts import advice, practice
from ingot.cli.parts.plan import ingot
from ingot.cli.parts.progress import part_line, still_missing, views_of
from ingot.cli.parts.show import Show
from ingot.cli.parts.state import StateFolder
from ingot.embedded.supervisor import State, Status, holder, read_status
from ingot.kube import Client, Informer

LOOK_EVERY: Final = 0.2
LAST_LINES: Final = 30


def start_in_background(state: StateFolder, *options: str) -> subprocess.Popen[bytes]:
    """Another `ingot up`, in a session of its own, that prints into `run/logs/up.log`."""
    state.log.parent.mkdir(exist_ok=True, mode=0o700)
    with state.log.open("wb") as log:
        return subprocess.Popen(
            [*ingot("up", "--state", str(state.path)), *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


async def until_up(state: StateFolder, show: Show, *, alive: Callable[[], bool], within: float) -> list[Key]:
    """Returns the lab's hosts once all parts are ready and these hosts are where they should be."""
    missing: list[str] = []
    try:
        async with asyncio.timeout(within):
            await _parts_ready(state, show, alive, missing)
            return await _hosts_arrived(state, show, alive, missing)
    except TimeoutError:
        look = advice.ingot("status", state)
        raise click.ClickException(
            f"not everything is up after {within:g} s; it goes on in the background (`{look}` shows it). What is missing:\n"
            + "\n".join(f"  {line}" for line in missing)
        ) from None


async def _parts_ready(state: StateFolder, show: Show, alive: Callable[[], bool], missing: list[str]) -> None:
    while True:
        _must_live(state, alive)
        status = status_now(state)
        if status is not None:
            show.parts(status)
            missing[:] = [part_line(part) for part in status.parts if part.state is not State.READY]
            if not missing and practice.read_applied(state).by == status.supervisor_pid:
                return
        await asyncio.sleep(LOOK_EVERY)


async def _hosts_arrived(
    state: StateFolder, show: Show, alive: Callable[[], bool], missing: list[str]
) -> list[Key]:
    async with Client.from_kubeconfig(state.kubeconfig) as client:
        hosts = Informer(client, BARE_METAL_HOSTS)
        following = asyncio.create_task(hosts.run())
        try:
            await hosts.synced()
            while True:
                _must_live(state, alive)
                # A host that is deleted meanwhile is not waited for.
                expected = [key for key in practice.read_applied(state).hosts if hosts.get(key) is not None]
                views = views_of(hosts.items())
                show.hosts(views)
                missing[:] = still_missing(views, expected)
                if not missing:
                    return expected
                await asyncio.sleep(LOOK_EVERY)
        finally:
            following.cancel()


def status_now(state: StateFolder) -> Status | None:
    """What the process that holds the folder says; None when nobody does, or it has said nothing yet."""
    held, status = holder(state.run), read_status(state.run)
    if held is None or status is None or status.supervisor_pid != held.pid:
        return None
    return status


def _must_live(state: StateFolder, alive: Callable[[], bool]) -> None:
    if not alive():
        said = state.log.read_text(errors="replace").splitlines()[-LAST_LINES:] if state.log.exists() else []
        raise click.ClickException(
            "it ended before everything was up. Its last words:\n" + "\n".join(f"  {line}" for line in said)
        )
