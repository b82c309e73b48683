"""The operator as a whole: what runs, in which order it begins and ends, and when it is ready.

Everything that changes something waits for the Lease, where there is one: the back end is opened, and so hears of its machines,
by the leader alone, and its client refuses to write for anybody else. Health, metrics and admission are served by all.
It ends in the opposite order: first the work, then what it needed, and last the Lease is handed over.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import click

from ingot.cli.parts.backend_health import BackendHealth
from ingot.cli.parts.backends import Backend
from ingot.cli.parts.electing import Election
from ingot.cli.parts.listen import Listen, cannot_listen, told_to_stop
from ingot.cli.parts.looking_after import LookingAfter
from ingot.cli.parts.state import StateFolder
from ingot.cli.parts.webhook import Webhook
from ingot.hosts import HostController, SubscriptionController, SwitchController, SwitchSettings
from ingot.kube import Client, Elector, EventRecorder, Manager
from ingot.kube.admission import Registration
from ingot.kube.health import Check, HealthServer
from ingot.trust import Authority, ServingTls, kept_token

Job = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line and in the environment."""

    state: StateFolder
    backend: Backend
    health: Listen | None
    election: Election | None
    webhook: Webhook | None
    switches: SwitchSettings | None
    looking_after: LookingAfter

    def tls(self) -> ServingTls:
        """The certificate under which the back end reports and health is served."""
        hosts = [*self.backend.hosts, *([self.health.host] if self.health else []), "127.0.0.1", "localhost"]
        names, authority, folder = list(dict.fromkeys(hosts)), self.state.ca, self.state.operator
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
        backend = wanted.backend.made(wanted.state, tls)
        namespace = wanted.looking_after.namespace
        hosts = HostController(
            client,
            backend,
            recorder,
            settings=wanted.looking_after.settings,
            namespace=namespace,
            workers=wanted.looking_after.workers,
        )
        subscriptions = SubscriptionController(
            client, backend, recorder, hosts=hosts.hosts, secrets=hosts.secrets, namespace=namespace
        )
        informers = [*hosts.informers, *subscriptions.informers]
        controllers = [*hosts.controllers, subscriptions.controller]
        if wanted.switches is not None:
            switches = SwitchController(client, wanted.switches, secrets=hosts.secrets, namespace=namespace)
            informers += switches.informers
            controllers.append(switches.controller)
        health = BackendHealth(backend.check, backend.notice, wanted.state.backend_notice)

        async def open_backend() -> None:
            try:
                await stack.enter_async_context(backend)
            except Exception as error:  # what is foreseen is said in a sentence, the rest is raised as it is
                if (told := wanted.backend.cannot_open(error)) is None:
                    raise
                raise told from error

        work: list[Job] = [hosts.follow_backend, health.run]
        beside: list[Job] = [tls.keep]
        checks: dict[str, Check] = {"leadership": _leadership(elector), "backend": lambda: health.trouble}
        if wanted.webhook is not None:
            webhook_tls = await asyncio.to_thread(wanted.webhook.tls, wanted.state)
            registration = await _serve_webhook(stack, wanted.webhook, client, hosts, webhook_tls)
            work.append(registration.run)
            beside.append(webhook_tls.keep)
            checks["webhook"] = lambda: registration.trouble if _acts(elector) else ""
        if elector is None:
            await open_backend()
        manager = Manager(
            informers,
            controllers,
            tasks=work,
            elector=elector,
            prepare=open_backend if elector else None,
        )
        checks["caches"] = lambda: manager.trouble
        if wanted.health is not None:
            await _serve_health(stack, wanted.state, wanted.health, tls, checks)

        async def announce() -> None:
            await manager.started()
            click.echo(f"operator ready, {wanted.backend.announcement(backend)}")

        await _until_told(stop, [manager.run, *beside], announce)


def _client(elector: Elector | None) -> Client:
    if elector is None:
        return Client.from_kubeconfig()
    return Client.from_kubeconfig(guard=elector.leadership.check)


def _acts(elector: Elector | None) -> bool:
    return elector is None or elector.leadership.held


def _leadership(elector: Elector | None) -> Check:
    """Who leads is ready, and so is who stands by and can see the Lease."""

    def check() -> str:
        if elector is None or _acts(elector):
            return ""
        return elector.leadership.why_over or elector.trouble

    return check


async def _serve_webhook(
    stack: AsyncExitStack, webhook: Webhook, client: Client, hosts: HostController, tls: ServingTls
) -> Registration:
    """All serve it; the registration is for the leader to run."""
    server = webhook.server(client, hosts.hosts, tls)
    await _listening(stack, server, "for the admission webhook", webhook.listen, "--webhook-listen")
    click.echo(f"admission webhook served on port {server.port}")
    return webhook.registration(client, tls, server.port)


async def _serve_health(
    stack: AsyncExitStack, state: StateFolder, listen: Listen, tls: ServingTls, checks: dict[str, Check]
) -> None:
    token = await asyncio.to_thread(kept_token, state.operator / "metrics-token")
    server = HealthServer(checks, host=listen.host, port=listen.port, tls=tls, token=token)
    await _listening(stack, server, "for health and metrics", listen, "--health-listen")
    click.echo(f"health and metrics served on port {server.port}")


async def _listening(
    stack: AsyncExitStack, server: AbstractAsyncContextManager[Any], what: str, listen: Listen, option: str
) -> None:
    try:
        await stack.enter_async_context(server)
    except OSError as error:
        raise cannot_listen(error, listen, what, option) from error


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
