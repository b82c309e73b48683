"""The marks on Secrets that hosts use: a label on all of them, and on some an owner and a finalizer.

    BMC credentials                        label, owner (plain), finalizer
    network data of the ramdisk            label, finalizer
    user data, network data, metadata,     label
      and what a registry wants to see

The finalizer keeps a Secret while a host needs it, and comes off with the last host that does: when that host goes, and also when
it names another Secret. Both are one rule, kept by `SecretKeeper` for every Secret that carries the finalizer, so nothing depends
on who was looking when it happened. Values are none of its business: it sees metadata only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from ingot.api.baremetalhost import BARE_METAL_HOSTS, SECRET_FINALIZER, SECRET_LABEL, BareMetalHost, State
from ingot.api.core import SECRETS, SecretObject
from ingot.api.detachment import detachment
from ingot.api.meta import Key, ObjectMeta, OwnerReference, PartialObjectMetadata
from ingot.api.wire import wire
from ingot.hosts.finalizers import release, without
from ingot.hosts.host_pass import Pass, Tools
from ingot.hosts.outcome import Outcome
from ingot.kube import Change, Client, Controller, Done, Informer, NotFound, metadata_of

BY_SECRET: Final = "secret"  # noqa: S105 - the name of an index
"""The index of hosts by the Secrets they name, as `namespace/name`."""

_METADATA: Final = metadata_of(SECRETS)


# Which


def secret_keys(host: BareMetalHost) -> list[Key]:
    """Every Secret the host names; a change of one of them concerns the host."""
    spec = host.spec
    named = [*_kept_names(host), spec.image.oci_auth_secret_name if spec.image is not None else ""]
    named += [ref.name for ref in (spec.user_data, spec.network_data, spec.meta_data) if ref is not None]
    return [Key(host.metadata.namespace, name) for name in dict.fromkeys(named) if name]


def index_of_secrets(host: BareMetalHost) -> Iterable[str]:
    return [str(key) for key in secret_keys(host)]


def _kept_names(host: BareMetalHost) -> list[str]:
    """The Secrets that must not go before the host does."""
    return [
        name for name in (host.spec.bmc.credentials_name, host.spec.preprovisioning_network_data_name) if name
    ]


# Marking


async def claim(p: Pass, secret: SecretObject, owner: OwnerReference) -> SecretObject:
    """Mark the Secret with the BMC's credentials as the host's own, once."""
    owners = [
        _plain(found) if found.uid == owner.uid else found for found in secret.metadata.owner_references
    ]
    if not any(found.uid == owner.uid for found in owners):
        owners.append(owner)
    change = _marks(secret.metadata, finalizer=True)
    if owners != secret.metadata.owner_references:
        change["ownerReferences"] = wire(owners)
    if not change or p.deleting:
        return secret
    version = secret.metadata.resource_version
    claimed = await p.tools.client.patch(SECRETS, secret.key, {"metadata": change}, resource_version=version)
    _ours(
        p,
        PartialObjectMetadata(api_version=claimed.api_version, kind=claimed.kind, metadata=claimed.metadata),
    )
    return claimed


async def mark_secrets(p: Pass) -> Outcome | None:
    """Mark the other Secrets that the host names, as far as they are there."""
    if p.deleting or (p.detached and detachment(p.host) is not None):
        return None
    for key in secret_keys(p.host):
        found = p.tools.secrets.get(key)
        if found is None or key.name == p.host.spec.bmc.credentials_name:
            # That one is read, and marked, when the host is registered.
            continue
        change = _marks(found.metadata, finalizer=key.name in _kept_names(p.host))
        if change:
            # A label alone overwrites nothing of others; a list of finalizers would.
            version = found.metadata.resource_version if "finalizers" in change else ""
            with contextlib.suppress(NotFound):
                patch = {"metadata": change}
                _ours(p, await p.tools.client.patch(_METADATA, key, patch, resource_version=version))
    return None


def _marks(meta: ObjectMeta, *, finalizer: bool) -> dict[str, Any]:
    label, value = SECRET_LABEL
    change: dict[str, Any] = {}
    if meta.labels.get(label) != value:
        change["labels"] = {label: value}
    if finalizer and SECRET_FINALIZER not in meta.finalizers and meta.deletion_timestamp is None:
        change["finalizers"] = [*meta.finalizers, SECRET_FINALIZER]
    return change


def _plain(owner: OwnerReference) -> OwnerReference:
    """Older releases controlled the Secret, so that no second host could own it too."""
    return replace(owner, controller=None, block_owner_deletion=None)


def _ours(p: Pass, written: PartialObjectMetadata) -> None:
    """Our own write is no news, to anybody."""
    p.tools.echoes.wrote(written.metadata.resource_version)
    p.tools.secrets.observe(written)


# Releasing


async def release_secrets(p: Pass) -> None:
    """Take our finalizer off the Secrets of a host that goes, unless another host needs them."""
    status = p.status
    refs = [found.credentials for found in (status.tried_credentials, status.good_credentials)]
    tried = [ref.name for ref in refs if ref is not None and ref.name]
    for name in dict.fromkeys([*_kept_names(p.host), *tried]):
        key = Key(p.key.namespace, name)
        if not _needed_by_others(p.tools, key, p.host):
            await release(p.tools.client, _METADATA, key, SECRET_FINALIZER)


def _needed_by_others(tools: Tools, key: Key, host: BareMetalHost) -> bool:
    """A host that the back end is already forgetting needs it no more: two that go at once must not wait for each other."""
    return any(
        other.key != host.key and other.state is not State.DELETING for other in _keepers(tools.hosts, key)
    )


def _keepers(hosts: Informer[BareMetalHost], key: Key) -> list[BareMetalHost]:
    return [host for host in hosts.by_index(BY_SECRET, str(key)) if key.name in _kept_names(host)]


class SecretKeeper:
    """Takes off what we put on Secrets that no host needs any more."""

    def __init__(
        self, client: Client, hosts: Informer[BareMetalHost], secrets: Informer[PartialObjectMetadata]
    ) -> None:
        self._client, self._hosts, self._secrets = client, hosts, secrets
        self.controller = Controller("host-secrets", self._look, workers=4)
        hosts.subscribe(self._host_changed)
        secrets.subscribe(self._secret_changed)

    def _host_changed(self, change: Change[BareMetalHost]) -> None:
        if change.old is not None:
            kept = _kept_names(change.new) if change.new is not None else []
            for name in _kept_names(change.old):
                if name not in kept:
                    self.controller.wake(Key(change.key.namespace, name))

    def _secret_changed(self, change: Change[PartialObjectMetadata]) -> None:
        # Looked at once when we start, for what happened while nobody looked, and when somebody wants it gone.
        new = change.new
        if new is None or SECRET_FINALIZER not in new.metadata.finalizers:
            return
        if change.initial or new.metadata.deletion_timestamp is not None:
            self.controller.wake(change.key, low=change.initial)

    async def _look(self, key: Key) -> Done:
        found = self._secrets.get(key)
        if found is None:
            return Done()
        meta, change = found.metadata, dict[str, Any]()
        if SECRET_FINALIZER in meta.finalizers and not _keepers(self._hosts, key):
            change["finalizers"] = without(meta.finalizers, SECRET_FINALIZER)
        owners = [owner for owner in meta.owner_references if not self._has_let_go(key, owner)]
        if owners != meta.owner_references:
            change["ownerReferences"] = wire(owners)
        if change:
            patch = {"metadata": change}
            try:
                written = await self._client.patch(
                    _METADATA, key, patch, resource_version=meta.resource_version
                )
            except NotFound:
                return Done()
            self._secrets.observe(written)
        return Done()

    def _has_let_go(self, key: Key, owner: OwnerReference) -> bool:
        """Whether the owner is a host that lives and names another Secret now: this one must not go together with it."""
        if owner.kind != BARE_METAL_HOSTS.kind or owner.api_version != BARE_METAL_HOSTS.api_version:
            return False
        host = self._hosts.get(Key(key.namespace, owner.name))
        return (
            host is not None
            and host.metadata.uid == owner.uid
            and key not in secret_keys(host)
            and host.metadata.deletion_timestamp is None
        )
