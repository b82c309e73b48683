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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
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
from ingot.trust import Authority, Certificate, ServingTls
from ingot.trust.serving import LOOK_EVERY

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
    look_every: float = LOOK_EVERY,
) -> AsyncIterator[Running]:
    """Serve the API of this state folder until the block is left. Without `crds`, the kinds of this release are served.

    Every so many seconds (`look_every`) the certificate is looked at, and renewed when its end is near.
    """
    definitions = all_crds() if crds is None else crds
    folder = state / "api"
    with locked(folder):
        with _usable(state):
            authority = await asyncio.to_thread(Authority, state / "ca")
            tls = await asyncio.to_thread(ServingTls, lambda: _certificate(authority, folder, host))
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
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(metrics.watch_the_loop()),
                    tasks.create_task(defining.run()),
                    tasks.create_task(Garbage(store, registry, writing).run()),
                    tasks.create_task(tls.keep(look_every)),
                ]
                try:
                    async with _listening(api, store, host, port, tls.context) as bound:
                        running = _reachable(state, host, bound, authority.ca_file)
                        with _usable(state):
                            trusted = _write_kubeconfigs(running, gate)
                        keeping = _keep_kubeconfigs(running, gate, trusted, every=look_every)
                        background.append(tasks.create_task(keeping))
                        yield running
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
    # Tickets are for coming back faster, which clients of an API hardly ever try; making them is a quarter of a handshake.
    context.num_tickets = 0
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


def _reachable(state: Path, host: str, port: int, ca_file: Path) -> Running:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared with, not bound to)
    url = f"https://[{reachable}]:{port}" if ":" in reachable else f"https://{reachable}:{port}"
    return Running(url, port, ca_file, state / "kubeconfig", state / "kubeconfig-readonly")


def _write_kubeconfigs(running: Running, gate: Gate) -> bytes:
    """Answers with the certificate of the authority that they trust."""
    ca = running.ca_file.read_bytes()
    for path, who, token in (
        (running.kubeconfig, ADMIN, gate.admin_token),
        (running.kubeconfig_readonly, READ_ONLY, gate.read_only_token),
    ):
        kubeconfig.write(path, url=running.url, ca=ca, user=who.name, token=token)
    return ca


async def _keep_kubeconfigs(running: Running, gate: Gate, trusted: bytes, *, every: float) -> None:
    """Write them again when the authority has renewed itself, and only then: people change theirs."""
    while True:
        await asyncio.sleep(every)
        try:
            if await asyncio.to_thread(running.ca_file.read_bytes) != trusted:
                trusted = await asyncio.to_thread(_write_kubeconfigs, running, gate)
                log.info("the authority was renewed, and %s trusts the new certificate", running.kubeconfig)
        except OSError as error:
            # A third of the old certificate's life is left: a disk that is full today is no reason to stop serving.
            log.warning(
                "%s was not written (%s); it is tried again in %g s", running.kubeconfig, error, every
            )


@contextlib.contextmanager
def _usable(state: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(
            f"{state} cannot be used as the state folder ({error}). Mend it, or choose another one with --state."
        ) from error


def _certificate(authority: Authority, folder: Path, host: str) -> Certificate:
    names = dict.fromkeys(("127.0.0.1", "::1", "localhost", host))
    return authority.issue(folder, "api-server", [name for name in names if name not in ("0.0.0.0", "::")])  # noqa: S104 (compared with, not bound to)


def _kubelet_client(authority: Authority, folder: Path) -> Certificate:
    """How this server introduces itself to the nodes."""
    return authority.issue(folder, "kube-apiserver-kubelet-client", ["localhost"])


async def _install(store: Store, writing: Writing) -> None:
    """What is there from the start: the first namespaces."""
    for name in FIRST_NAMESPACES:
        if store.head(NAMESPACES, Key("", name)) is None:
            await writing.create(NAMESPACES, "", {"metadata": {"name": name}}, Manner())
