"""Writing the firmware objects beside a host: made in the host's name, owned by it, and written only where they change.

Every write is guarded by the version that was read, and its answer goes to the informer at once, so the pass goes on with what
is true.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.hostfirmwarecomponents import HostFirmwareComponentsStatus
from ingot.api.hostfirmwaresettings import HostFirmwareSettingsStatus
from ingot.api.meta import Object, Resource
from ingot.api.wire import wire
from ingot.hosts.host_pass import Pass
from ingot.hosts.patches import status_difference
from ingot.hosts.secrets.reading import owner_of
from ingot.kube import AlreadyExists, Informer

K = TypeVar("K", bound=Object)
S = TypeVar("S", HostFirmwareSettingsStatus, HostFirmwareComponentsStatus)


async def make(p: Pass, informer: Informer[K], kind: Resource[K], spec: dict[str, Any]) -> K:
    """An object of this kind with the host's name, which goes when the host goes."""
    metadata = {
        "name": p.key.name,
        "namespace": p.key.namespace,
        "ownerReferences": wire([owner_of(p.host)]),
    }
    body = {"metadata": metadata, "spec": spec}
    try:
        made = await p.tools.client.create(kind, body, namespace=p.key.namespace)
    except AlreadyExists:
        # Somebody was faster than the watch could tell.
        return await own(p, informer, kind, await p.tools.client.get(kind, p.key))
    p.tools.companions.wrote(informer, made)
    return made


async def own(p: Pass, informer: Informer[K], kind: Resource[K], found: K) -> K:
    """The same object, owned by this host. One of an earlier host of the name would go together with that one."""
    owners = found.metadata.owner_references
    if any(owner.uid == p.host.metadata.uid for owner in owners) or found.metadata.deletion_timestamp:
        return found
    kept = [owner for owner in owners if (owner.kind, owner.name) != (BARE_METAL_HOSTS.kind, p.key.name)]
    written = await p.tools.client.patch(
        kind,
        found.key,
        {"metadata": {"ownerReferences": wire([*kept, owner_of(p.host)])}},
        resource_version=found.metadata.resource_version,
    )
    p.tools.companions.wrote(informer, written)
    return written


async def write_status(p: Pass, informer: Informer[K], kind: Resource[K], found: K, *, old: S, new: S) -> K:
    """The object with this status; written if it differs from the one it has."""
    patch = status_difference(old, new)
    if not patch:
        return found
    patch["lastUpdated"] = wire(p.tools.now())
    written = await p.tools.client.patch(
        kind,
        found.key,
        {"status": patch},
        subresource="status",
        resource_version=found.metadata.resource_version,
    )
    p.tools.companions.wrote(informer, written)
    return written
