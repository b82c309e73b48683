"""Starting and stopping: a state folder becomes a server, and a server leaves its folder as it must be found again.

    async with serve(state) as running:
        running.url, running.kubeconfig

Leaving the block ends open watches, writes what is waiting, and lets go of the folder. One server at a time may use a
folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from ingot.api.crd import all_crds
from ingot.api.meta import Key
from ingot.embedded.server import kubeconfig
from ingot.embedded.server.errors import StateError
from ingot.embedded.server.face.app import Api, server
from ingot.embedded.server.face.auth import ADMIN, READ_ONLY, Gate
from ingot.embedded.server.face.kubelets import Kubelets
from ingot.embedded.server.face.logs import Logs
from ingot.embedded.server.face.metrics import Metrics
from ingot.embedded.server.kinds.builtins import BUILT_IN, FIRST_NAMESPACES, NAMESPACES
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage import file
from ingot.embedded.server.storage.lock import locked
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.admission import Admission
from ingot.embedded.server.writes.defining import Defining
from ingot.embedded.server.writes.garbage import Garbage
from ingot.embedded.server.writes.webhooks import Webhooks
from ingot.embedded.server.writes.writing import Manner, Writing
from ingot.trust import Authority, Certificate

log = logging.getLogger(__name__)

_STOP_WITHIN: Final = 3.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    url: str
    port: int
    ca_file: Path
    kubeconfig: Path
    kubeconfig_readonly: Path


@contextlib.asynccontextmanager
async def serve(
    state: Path,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    crds: Sequence[Mapping[str, Any]] | None = None,
    renew_every: float = 12 * 3600.0,
) -> AsyncIterator[Running]:
    """Serve the API of this state folder until the block is left. Without `crds`, the kinds of this release are served.

    Every so many seconds (`renew_every`) the certificate is looked at, and renewed when its end is near.
    """
    definitions = all_crds() if crds is None else crds
    folder = state / "api"
    with locked(folder):
        authority = await asyncio.to_thread(Authority, state / "ca")
        certificate = await asyncio.to_thread(_certificate, authority, folder, host)
        gate = await asyncio.to_thread(Gate, folder)
        registry = Registry(BUILT_IN)
        store = Store(folder / file.NAME, registry)
        try:
            webhooks = Webhooks(store, registry)
            writing = Writing(store, Admission(store, registry), webhooks)
            defining = Defining(store, registry, writing)
            await defining.release(definitions)
            await _install(store, writing)
            store.started()
            metrics = Metrics(store)
            kubelets = Kubelets(store, registry, lambda: _kubelet_client(authority, folder))
            api = Api(
                store=store,
                registry=registry,
                gate=gate,
                writing=writing,
                metrics=metrics,
                pod_logs=Logs(store, registry, kubelets),
            )
            context = certificate.server_context()
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(metrics.watch_the_loop()),
                    tasks.create_task(defining.run()),
                    tasks.create_task(Garbage(store, registry, writing).run()),
                    tasks.create_task(_keep_renewed(authority, folder, host, context, every=renew_every)),
                ]
                try:
                    async with _listening(api, store, host, port, context) as bound:
                        yield _announced(state, host, bound, certificate, gate)
                finally:
                    for task in background:
                        task.cancel()
                    await webhooks.close()
        finally:
            await store.close()


@contextlib.asynccontextmanager
async def _listening(
    api: Api, store: Store, host: str, port: int, context: ssl.SSLContext
) -> AsyncIterator[int]:
    runner = web.ServerRunner(server(api), shutdown_timeout=_STOP_WITHIN)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            raise StateError(
                f"the API cannot listen on {host}:{port} ({error.strerror or error}). Choose another address with --listen."
            ) from error
        yield int(runner.addresses[0][1])
    finally:
        store.end_watches()
        await runner.cleanup()


def _announced(state: Path, host: str, port: int, certificate: Certificate, gate: Gate) -> Running:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared with, not bound to)
    url = f"https://[{reachable}]:{port}" if ":" in reachable else f"https://{reachable}:{port}"
    running = Running(url, port, certificate.ca_file, state / "kubeconfig", state / "kubeconfig-readonly")
    for path, who, token in (
        (running.kubeconfig, ADMIN, gate.admin_token),
        (running.kubeconfig_readonly, READ_ONLY, gate.read_only_token),
    ):
        kubeconfig.write(path, url=url, ca_file=certificate.ca_file, user=who.name, token=token)
    return running


def _certificate(authority: Authority, folder: Path, host: str) -> Certificate:
    names = dict.fromkeys(("127.0.0.1", "::1", "localhost", host))
    return authority.issue(folder, "api-server", [name for name in names if name not in ("0.0.0.0", "::")])  # noqa: S104 (compared with, not bound to)


def _kubelet_client(authority: Authority, folder: Path) -> Certificate:
    """How this server introduces itself to the nodes."""
    return authority.issue(folder, "kube-apiserver-kubelet-client", ["localhost"])


async def _keep_renewed(
    authority: Authority, folder: Path, host: str, context: ssl.SSLContext, *, every: float
) -> None:
    """A server that runs for months must not end with its first certificate. New connections get the new one."""
    while True:
        await asyncio.sleep(every)
        try:
            renewed = await asyncio.to_thread(_certificate, authority, folder, host)
            context.load_cert_chain(renewed.cert_file, renewed.key_file)
        except OSError as error:
            # A third of its life is left: a disk that is full today is no reason to stop serving.
            log.error(
                "the certificate in %s was not renewed (%s); it is tried again in %g s", folder, error, every
            )


async def _install(store: Store, writing: Writing) -> None:
    """What is there from the start: the first namespaces."""
    for name in FIRST_NAMESPACES:
        if store.head(NAMESPACES, Key("", name)) is None:
            await writing.create(NAMESPACES, "", {"metadata": {"name": name}}, Manner())
