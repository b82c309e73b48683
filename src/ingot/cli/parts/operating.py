"""The operator as a whole: what runs, in which order it begins and ends, and when it is ready.

What it works at is up to its crews (`host_crew`, `machine_crew`, `image_crew`). Everything that changes something waits for the
Lease, where there is one: the back end is opened, and so hears of its machines, by the leader alone, and its client refuses to
write for anybody else. Health, metrics and admission are served by all.
It ends in the opposite order: first the work, then what it needed, and last the Lease is handed over.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from ingot.cli.parts.crews import Crew, Job, Shop
from ingot.cli.parts.electing import Election
from ingot.cli.parts.host_crew import HostWork
from ingot.cli.parts.image_crew import ImageWork
from ingot.cli.parts.listen import Listen, told_to_stop
from ingot.cli.parts.machine_crew import MachineWork
from ingot.cli.parts.state import StateFolder
from ingot.kube import Client, Elector, EventRecorder, Manager
from ingot.kube.health import Check, HealthServer
from ingot.trust import Authority, ServingTls, kept_token


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line and in the environment; one of the three at the end at least."""

    state: StateFolder
    health: Listen | None
    election: Election | None
    hosts: HostWork | None
    machines: MachineWork | None
    images: ImageWork | None

    @property
    def folder(self) -> Path:
        """Where this process keeps what is its own: several of them may share a state folder."""
        if self.hosts is not None:
            return self.state.operator
        return self.state.machines if self.machines is not None else self.state.images

    def tls(self) -> ServingTls:
        """The certificate under which the back end reports and health is served."""
        called = self.hosts.backend.hosts if self.hosts is not None else []
        hosts = [*called, *([self.health.host] if self.health else []), "127.0.0.1", "localhost"]
        names, authority, folder = list(dict.fromkeys(hosts)), self.state.ca, self.folder
        return ServingTls(lambda: Authority(authority).issue(folder, "operator", names))


@contextmanager
def garbage_seldom_looked_for() -> Iterator[None]:
    """Python looks for cycles of objects after every 700 that were made, now and then among all there are. A pass makes
    thousands and drops them without a cycle: looking that often costs it a good part of its time, and holds up the loop."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


async def operate(wanted: Wanted) -> None:
    """Run until told to stop. Raises, in a group, `NotLeading` when the Lease is lost."""
    stop = told_to_stop()
    async with AsyncExitStack() as stack:
        elector = await stack.enter_async_context(wanted.election.elector()) if wanted.election else None
        client = await stack.enter_async_context(_client(elector))
        recorder = await stack.enter_async_context(EventRecorder(client))
        tls = await asyncio.to_thread(wanted.tls)
        shop = Shop(stack, wanted.state, client, recorder, elector)
        crews = await _crews(wanted, shop, tls)

        async def prepare() -> None:
            for crew in crews:
                if crew.prepare is not None:
                    await crew.prepare()

        if elector is None:
            await prepare()
        manager = Manager(
            [informer for crew in crews for informer in crew.informers],
            [controller for crew in crews for controller in crew.controllers],
            tasks=[job for crew in crews for job in crew.work],
            elector=elector,
            prepare=prepare if elector else None,
        )
        checks: dict[str, Check] = {"leadership": _leadership(elector), "caches": lambda: manager.trouble}
        for crew in crews:
            checks |= crew.checks
        if wanted.health is not None:
            await _serve_health(shop, wanted.folder, wanted.health, tls, checks)

        async def announce() -> None:
            await manager.started()
            click.echo(f"operator ready, {', '.join(crew.announcement() for crew in crews)}")

        beside = [job for crew in crews for job in crew.beside]
        await _until_told(stop, [manager.run, tls.keep, *beside], announce)


async def _crews(wanted: Wanted, shop: Shop, tls: ServingTls) -> list[Crew]:
    crews = []
    if wanted.hosts is not None:
        crews.append(await wanted.hosts.crew(shop, tls))
    if wanted.machines is not None:
        crews.append(await wanted.machines.crew(shop, crews[0].hosts if crews else None))
    if wanted.images is not None:
        crews.append(await wanted.images.crew(shop))
    return crews


def _client(elector: Elector | None) -> Client:
    if elector is None:
        return Client.from_kubeconfig()
    return Client.from_kubeconfig(guard=elector.leadership.check)


def _leadership(elector: Elector | None) -> Check:
    """Who leads is ready, and so is who stands by and can see the Lease."""

    def check() -> str:
        if elector is None or elector.leadership.held:
            return ""
        return elector.leadership.why_over or elector.trouble

    return check


async def _serve_health(
    shop: Shop, folder: Path, listen: Listen, tls: ServingTls, checks: dict[str, Check]
) -> None:
    token = await asyncio.to_thread(kept_token, folder / "metrics-token")
    server = HealthServer(checks, host=listen.host, port=listen.port, tls=tls, token=token)
    await shop.listening(server, "for health and metrics", listen, "--health-listen")
    click.echo(f"health and metrics served on port {server.port}")


async def _until_told(stop: asyncio.Event, jobs: Iterable[Job], announce: Job) -> None:
    """Run the jobs until the event is set, or one of them ends."""
    work = [asyncio.create_task(job()) for job in jobs]
    told = asyncio.create_task(stop.wait())
    announcing = asyncio.create_task(announce())
    try:
        done, _ = await asyncio.wait([*work, told], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        everything = [*work, told, announcing]
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
