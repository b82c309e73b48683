"""The crew that looks after hosts: their controllers, the back end they drive, and admission where it is asked for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import click

from ingot.cli.parts.backend_health import BackendHealth
from ingot.cli.parts.backends import Backend
from ingot.cli.parts.crews import Crew, Job, Shop
from ingot.cli.parts.looking_after import LookingAfter
from ingot.cli.parts.webhook import Webhook
from ingot.hosts import HostController, SubscriptionController, SwitchController, SwitchSettings
from ingot.kube.admission import Registration
from ingot.kube.health import Check
from ingot.machines.pool import INDEXES
from ingot.trust import ServingTls


@dataclass(frozen=True, slots=True)
class HostWork:
    """What was asked for."""

    backend: Backend
    webhook: Webhook | None
    switches: SwitchSettings | None
    looking_after: LookingAfter

    async def crew(self, shop: Shop, tls: ServingTls) -> Crew:
        client, recorder, namespace = shop.client, shop.recorder, self.looking_after.namespace
        backend = self.backend.made(shop.state, tls)
        hosts = HostController(
            client,
            backend,
            recorder,
            settings=self.looking_after.settings,
            namespace=namespace,
            workers=self.looking_after.workers,
            # The crew that gives hosts away reads the same copy.
            indexes=INDEXES,
        )
        subscriptions = SubscriptionController(
            client, backend, recorder, hosts=hosts.hosts, secrets=hosts.secrets, namespace=namespace
        )
        informers = [*hosts.informers, *subscriptions.informers]
        controllers = [*hosts.controllers, subscriptions.controller]
        if self.switches is not None:
            switches = SwitchController(client, self.switches, secrets=hosts.secrets, namespace=namespace)
            informers += switches.informers
            controllers.append(switches.controller)
        health = BackendHealth(backend.check, backend.notice, shop.state.backend_notice)

        async def open_backend() -> None:
            try:
                await shop.stack.enter_async_context(backend)
            except Exception as error:  # what is foreseen is said in a sentence, the rest is raised as it is
                if (told := self.backend.cannot_open(error)) is None:
                    raise
                raise told from error

        work: list[Job] = [hosts.follow_backend, health.run]
        beside: list[Job] = []
        checks: dict[str, Check] = {"backend": lambda: health.trouble}
        if self.webhook is not None:
            webhook_tls = await asyncio.to_thread(self.webhook.tls, shop.state)
            registration = await _serve_webhook(shop, self.webhook, hosts, webhook_tls)
            work.append(registration.run)
            beside.append(webhook_tls.keep)
            checks["webhook"] = lambda: registration.trouble if shop.acts() else ""
        return Crew(
            informers=informers,
            controllers=controllers,
            work=work,
            beside=beside,
            prepare=open_backend,
            checks=checks,
            announcement=lambda: self.backend.announcement(backend),
            hosts=hosts.hosts,
        )


async def _serve_webhook(
    shop: Shop, webhook: Webhook, hosts: HostController, tls: ServingTls
) -> Registration:
    """All serve it; the registration is for the leader to run."""
    server = webhook.server(shop.client, hosts.hosts, tls)
    await shop.listening(server, "for the admission webhook", webhook.listen, "--webhook-listen")
    click.echo(f"admission webhook served on port {server.port}")
    return webhook.registration(shop.client, tls, server.port)
