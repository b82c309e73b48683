"""What wakes a host: its own changes, its companions, its Secrets, its back end.

A change of nothing but the status wakes nobody: the status is written by us. Hosts of the first list, and all of them after a
gap in the back end's news, go behind hosts that changed just now.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import CONFIG_MAPS, SECRETS
from ingot.api.meta import Key, PartialObjectMetadata, now
from ingot.hosts.beside.companions import Companions
from ingot.hosts.echoes import Echoes
from ingot.hosts.host_pass import Tools
from ingot.hosts.leaving.census import HostCensus
from ingot.hosts.leaving.leftovers import FORGOTTEN, Leftovers
from ingot.hosts.metrics import EVENT_TO_STATUS
from ingot.hosts.reconciler import HostReconciler
from ingot.hosts.secrets.marks import BY_SECRET, SecretKeeper, index_of_secrets
from ingot.hosts.settings import HostSettings
from ingot.kube import Again, Change, Client, Controller, Done, EventRecorder, Informer, metadata_of
from ingot.provisioner import EVERYTHING, Provisioner


class HostController:
    """The hosts of one API and one back end: informers, queue and reconciler, ready to be run."""

    def __init__(
        self,
        client: Client,
        backend: Provisioner,
        recorder: EventRecorder,
        *,
        settings: HostSettings = HostSettings(),  # noqa: B008 - frozen
        namespace: str = "",
        workers: int = 32,
        clock: Callable[[], datetime] = now,
        indexes: Mapping[str, Callable[[BareMetalHost], Iterable[str]]] | None = None,
    ) -> None:
        """`indexes` are for others, who find hosts in `hosts` and need not keep them in memory once more."""
        self.hosts = Informer(
            client,
            BARE_METAL_HOSTS,
            namespace=namespace,
            indexes={BY_SECRET: index_of_secrets, **(indexes or {})},
        )
        self.secrets = Informer(client, metadata_of(SECRETS), namespace=namespace)
        self._echoes = Echoes()
        self.companions = Companions(client, self._echoes, namespace=namespace)
        self.forgotten = Informer(
            client, CONFIG_MAPS, namespace=namespace, fields=f"metadata.name={FORGOTTEN}"
        )
        self._backend = backend
        tools = Tools(
            client,
            self.hosts,
            self.secrets,
            self.companions,
            self.forgotten,
            backend,
            recorder,
            clock,
            settings,
            echoes=self._echoes,
        )
        reconciler = HostReconciler(tools)
        self._reconcile = reconciler
        self._heard: dict[Key, float] = {}
        """When the back end told of hosts that have not been looked at since."""
        self.controller = Controller("hosts", self._timed, workers=workers)
        reconciler.capacity.follow(self.hosts)
        reconciler.capacity.wake = self.controller.wake
        self.hosts.subscribe(self._host_changed)
        for companion in self.companions:
            companion.subscribe(self._companion_changed)
        self.companions.schemas.informer.subscribe(self._schema_changed)
        self.secrets.subscribe(self._secret_changed)
        self._keeper = SecretKeeper(client, self.hosts, self.secrets)
        self._census = HostCensus(client, self.hosts, namespace=namespace)
        self._leftovers = Leftovers(
            client, backend, self.hosts, self.forgotten, wake_host=self.controller.wake
        )

    @property
    def controllers(self) -> list[Controller]:
        """What has to run: the hosts themselves, and what is seen to for hosts that are gone."""
        return [self.controller, self._leftovers.controller, self._keeper.controller]

    @property
    def informers(self) -> list[Informer[Any]]:
        """What has to be in memory before the first host is looked at."""
        return [self.hosts, self.secrets, self.forgotten, *self.companions, self.companions.schemas.informer]

    async def follow_backend(self) -> None:
        """Wake the hosts that the back end has news of, until cancelled; and let it know which hosts there are."""
        self._backend.follow(self._census)
        async for change in self._backend.changes():
            self._leftovers.backend_changed(change)
            if change is EVERYTHING:
                for host in self.hosts.items():
                    self.controller.wake(host.key, low=True)
            else:
                self._heard.setdefault(change, time.monotonic())
                self.controller.wake(change)

    async def _timed(self, key: Key) -> Done | Again:
        heard = self._heard.pop(key, None)
        self._echoes.begin(key)
        try:
            result = await self._reconcile(key)
        finally:
            if self._echoes.end(key):
                self._reconcile.overtaken(key)
                self.controller.wake(key)
        if heard is not None:
            EVENT_TO_STATUS.observe(time.monotonic() - heard)
        return result

    def _host_changed(self, change: Change[BareMetalHost]) -> None:
        old, new = change.old, change.new
        if old is None or new is None or _concerns_us(old, new):
            self._tell(change.key, change)

    def _companion_changed(self, change: Change[Any]) -> None:
        self._tell(change.key, change)

    def _tell(self, host: Key, change: Change[Any]) -> None:
        """Wake the host, unless what changed is what its own pass wrote."""
        if change.new is None or self._echoes.is_news(host, change.new.metadata.resource_version):
            self.controller.wake(host, low=change.initial)

    def _schema_changed(self, change: Change[PartialObjectMetadata]) -> None:
        """A schema that somebody removed is made again by those who name it."""
        if change.new is None:
            for key in self.companions.schemas.used_by(change.key):
                self.controller.wake(key)

    def _secret_changed(self, change: Change[PartialObjectMetadata]) -> None:
        for host in self.hosts.by_index(BY_SECRET, str(change.key)):
            self._tell(host.key, change)


def _concerns_us(old: BareMetalHost, new: BareMetalHost) -> bool:
    before, after = old.metadata, new.metadata
    return (
        before.generation != after.generation
        or before.annotations != after.annotations
        or before.finalizers != after.finalizers
        or before.deletion_timestamp != after.deletion_timestamp
    )
