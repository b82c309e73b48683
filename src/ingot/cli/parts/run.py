"""`ingot up` in the process that holds the parts: prepare, start, tend the lab's hosts, until somebody says stop."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.meta import Key
from ingot.cli.parts import advice, plan, practice
from ingot.cli.parts.plan import Wishes
from ingot.cli.parts.progress import still_missing, views_of
from ingot.cli.parts.show import Show
from ingot.cli.parts.state import StateFolder
from ingot.embedded.supervisor import Supervisor, end_remains, hold, kept_ports
from ingot.kube import Client, Informer, Unavailable
from ingot.lab import labfile
from ingot.lab.manifests import manifests
from ingot.services.environment import ensure
from ingot.trust import TrustError

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RENEW_EVERY: Final = 3600.0


async def bring_up(state: StateFolder, wishes: Wishes, show: Show) -> None:
    """Returns when everything has stopped again."""
    with hold(state.run):
        if ended := await end_remains(state.run):
            show.say(f"ended {len(ended)} processes that an earlier run left behind")
        await asyncio.to_thread(ensure, progress=show.say)
        trusted = await asyncio.to_thread(plan.make_ready, state)
        ports = kept_ports(state.run, plan.LISTENERS)
        supervisor = Supervisor(state.run, plan.parts(state, ports, trusted, wishes), on_change=show.parts)
        tending = asyncio.create_task(_tend(state, wishes, supervisor, show))
        renewing = asyncio.create_task(_renew(state, show))
        # It ends by itself only by an error: that stops the parts too, and is raised below.
        tending.add_done_callback(lambda _: supervisor.stop())
        for number in STOP_SIGNALS:
            # Started with nohup it is to outlive the terminal.
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, _stop, supervisor, tending, show)
        try:
            await supervisor.run()
        finally:
            renewing.cancel()
            tending.cancel()
            with suppress(asyncio.CancelledError):
                await tending


async def _renew(state: StateFolder, show: Show) -> None:
    """Renew the certificate of Ironic and its front server when it is due; both take up new files while they run."""
    while True:
        await asyncio.sleep(RENEW_EVERY * random.uniform(0.9, 1.1))  # noqa: S311 - jitter
        try:
            await asyncio.to_thread(plan.make_ready, state)
        except (OSError, TrustError) as error:
            # What is served is good for weeks; somebody has until then to mend it.
            show.say(f"certificates cannot be renewed: {error}")


def _stop(supervisor: Supervisor, tending: asyncio.Task[None], show: Show) -> None:
    """The first request is polite, the second one is not."""
    if supervisor.stopping:
        supervisor.stop_now()
        return
    tending.cancel()
    supervisor.stop()
    show.stopping()


async def _tend(state: StateFolder, wishes: Wishes, supervisor: Supervisor, show: Show) -> None:
    """Create the lab's hosts once the API is there, then show all hosts, until cancelled."""
    await supervisor.ready("api-server", *(("lab",) if wishes.lab else ()))
    practise = wishes.lab and wishes.hosts
    objects = manifests(labfile.load(state.path), provision=wishes.provision) if practise else []
    async with Client.from_kubeconfig(state.kubeconfig) as client:
        applied = await _patiently_create(client, state, objects)
        hosts = Informer(client, BARE_METAL_HOSTS)
        hosts.subscribe(lambda _: show.hosts(views_of(hosts.items())))
        async with asyncio.TaskGroup() as group:
            group.create_task(hosts.run())
            await supervisor.ready()
            await hosts.synced()

            def expected() -> list[Key]:
                """The lab's hosts; one that is deleted meanwhile is not waited for."""
                return [key for key in applied.hosts if hosts.get(key) is not None]

            while still_missing(views_of(hosts.items()), expected()):  # noqa: ASYNC110 - no event says "all are there"
                await asyncio.sleep(0.2)
            show.advise(advice.commands(state, expected(), detached=False))


async def _patiently_create(
    client: Client, state: StateFolder, objects: Sequence[Mapping[str, Any]]
) -> practice.Applied:
    while True:
        try:
            return await practice.create_once(client, state, objects)
        except Unavailable:
            # The API was restarted under our hands; the supervisor brings it back.
            await asyncio.sleep(1)
