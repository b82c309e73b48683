"""What a claim's host is made of, for a tenant who cannot look into the namespace of the host.

A HardwareData under the name of the claim, owned by the claim, so that it goes with it. It holds what Ingot knows as hardware,
and nothing besides: a description with more in it, about a management controller say, is not passed on as it is. Where claim and
host share a namespace, the host's own one is named. One that is not ours is never written.
"""

from __future__ import annotations

import contextlib
import hashlib

import msgspec

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hardwaredata import HARDWARE_DATA, HardwareDetails
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim, ObjectPlace
from ingot.api.meta import ObjectMeta, OwnerReference, PartialObjectMetadata
from ingot.api.wire import wire
from ingot.kube import AlreadyExists, Client, Conflict, Informer, NotFound
from ingot.machines.claims.data import VERSION
from ingot.machines.claims.linking import place_of


class HardwareCopies:
    def __init__(self, client: Client, hardware: Informer[PartialObjectMetadata]) -> None:
        self._client = client
        self._hardware = hardware

    async def show(self, claim: HostClaim, host: BareMetalHost) -> ObjectPlace | None:
        """Have the description of the host where the tenant can read it; where that is, or None where there is none."""
        if claim.metadata.namespace == host.metadata.namespace:
            await self.hide(claim)
            return place_of(host.key) if self._hardware.get(host.key) is not None else None
        raw = host.status.hardware
        details = _details(host)
        if isinstance(raw, msgspec.UnsetType) or details is None:
            await self.hide(claim)
            return None
        version = hashlib.blake2b(bytes(raw), key=host.metadata.uid.encode(), digest_size=16).hexdigest()
        there = self._hardware.get(claim.key)
        if there is not None:
            if not _is_of(there.metadata, claim):
                return None
            if there.metadata.annotations.get(VERSION) == version:
                return place_of(claim.key)
            await self._remove(there)
        return place_of(claim.key) if await self._make(claim, details, version) else None

    async def hide(self, claim: HostClaim) -> None:
        """Of a claim without a host, or whose host is not described."""
        there = self._hardware.get(claim.key)
        if there is not None and _is_of(there.metadata, claim):
            await self._remove(there)

    async def _make(self, claim: HostClaim, details: HardwareDetails, version: str) -> bool:
        owner = OwnerReference(
            api_version=HOST_CLAIMS.api_version,
            kind=HOST_CLAIMS.kind,
            name=claim.metadata.name,
            uid=claim.metadata.uid,
            controller=True,
            block_owner_deletion=False,
        )
        body = {
            "metadata": {
                "name": claim.metadata.name,
                "namespace": claim.metadata.namespace,
                "annotations": {VERSION: version},
                "ownerReferences": wire([owner]),
            },
            "spec": {"hardware": wire(details)},
        }
        try:
            made = await self._client.create(HARDWARE_DATA, body, namespace=claim.metadata.namespace)
        except AlreadyExists:
            # Somebody else's, or ours that is on its way out: the watch tells.
            return False
        self._hardware.observe(PartialObjectMetadata(metadata=made.metadata))
        return True

    async def _remove(self, there: PartialObjectMetadata) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(HARDWARE_DATA, there.key, uid=there.metadata.uid)


def _is_of(meta: ObjectMeta, claim: HostClaim) -> bool:
    return any(owner.uid == claim.metadata.uid for owner in meta.owner_references)


def _details(host: BareMetalHost) -> HardwareDetails | None:
    try:
        return host.hardware()
    except msgspec.DecodeError:
        return None
