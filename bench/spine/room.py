"""The installation that both ways of driving use: one API, one Ironic, one lab, as `ingot up` starts them.

They run from the first to the last run. Only the one who is told by Ironic changes: the operator, or a script that listens in its
place. Whoever it is listens for `SETTLE` seconds before it is given anything to do, because an idle Ironic speaks to its receiver
every ten seconds, and must have found the new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ingot.cli.parts import plan
from ingot.cli.parts.plan import Credentials, Wishes
from ingot.cli.parts.state import StateFolder
from ingot.embedded.supervisor import Part, Supervisor, hold, kept_ports
from ingot.lab.labfile import free_port
from ingot.services.settings import IronicSettings
from ingot.trust import client_context

SETTLE: Final = 12.0
START_WITHIN: Final = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    state: StateFolder
    ports: dict[str, int]
    trusted: Credentials
    ironic: IronicSettings
    operator: Part
    metrics_port: int
    """Where the operator tells what it counts."""
    parts: Supervisor

    @property
    def account(self) -> tuple[str, str]:
        """Name and password of whoever drives Ironic."""
        folder = self.trusted.auth_root / "ironic"
        return (folder / "username").read_text().strip(), (folder / "password").read_text().strip()

    def leader(self, name: str) -> int:
        """The process of a part, which leads a session of its own."""
        return next(part.pid for part in self.parts.status.parts if part.name == name)


@contextlib.asynccontextmanager
async def open_room(folder: Path, servers: int) -> AsyncIterator[Room]:
    state = StateFolder(folder / "state")
    state.create()
    trusted = await asyncio.to_thread(plan.make_ready, state)
    with hold(state.run):
        ports = dict(kept_ports(state.run, plan.LISTENERS))
        wishes = Wishes(servers=servers, hosts=False)
        planned = plan.parts(state, ports, trusted, wishes)
        always = [part for part in planned if part.name != "operator"]
        operator = next(part for part in planned if part.name == "operator")
        metrics_port = free_port("127.0.0.1")
        told = ("--health-listen", f"127.0.0.1:{metrics_port}")
        operator = replace(operator, argv=(*operator.argv, *told), after=())
        async with supervised(state.run, always) as parts:
            yield Room(
                state=state,
                ports=ports,
                trusted=trusted,
                ironic=plan.ironic_settings(state, ports, trusted, wishes),
                operator=operator,
                metrics_port=metrics_port,
                parts=parts,
            )


@contextlib.asynccontextmanager
async def running_operator(room: Room) -> AsyncIterator[int]:
    """The operator, settled; gives its process."""
    run = room.state.run / "operator"
    run.mkdir(exist_ok=True, mode=0o700)
    async with supervised(run, [room.operator]) as supervisor:
        await asyncio.sleep(SETTLE)
        yield supervisor.status.parts[0].pid


def operator_metrics(room: Room) -> list[str]:
    """What the running operator counts, a line each."""
    token = (room.state.operator / "metrics-token").read_text()
    request = urllib.request.Request(
        f"https://127.0.0.1:{room.metrics_port}/metrics", headers={"Authorization": f"Bearer {token}"}
    )
    context = client_context(room.trusted.ca_file)
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
        return str(answer.read().decode()).splitlines()


@contextlib.asynccontextmanager
async def supervised(run: Path, parts: list[Part]) -> AsyncIterator[Supervisor]:
    """These parts, ready; stopped at the end."""
    supervisor = Supervisor(run, parts)
    running = asyncio.create_task(supervisor.run())
    ready = asyncio.create_task(supervisor.ready())
    try:
        async with asyncio.timeout(START_WITHIN):
            await asyncio.wait([running, ready], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        yield supervisor
    finally:
        ready.cancel()
        supervisor.stop()
        await running
