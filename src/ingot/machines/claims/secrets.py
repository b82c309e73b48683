"""Copies of a claim's Secrets, beside its host: made, kept up to date, removed.

Every copy is owned by the host, so that it goes with the host whatever happens to the claim, and carries the UID of the claim. A
Secret without that mark is somebody else's and is never written, even under a name that should be ours. Values are read when
they are copied and kept nowhere: which version a copy was made of is written on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ingot.api.baremetalhost import BARE_METAL_HOSTS, SECRET_LABEL, BareMetalHost
from ingot.api.core import SECRETS, SecretObject
from ingot.api.hostclaim import HostClaim
from ingot.api.meta import Key, ObjectMeta, OwnerReference, PartialObjectMetadata
from ingot.api.wire import wire
from ingot.kube import AlreadyExists, Client, Conflict, Informer, NotFound, metadata_of
from ingot.machines.claims.data import (
    COPY_OF,
    VERSION,
    BadSecret,
    Content,
    Role,
    check,
    content_of,
    copy_name,
    named_secrets,
)

BY_CLAIM: Final = "claim"
"""The index of Secrets by the claim that they are a copy for."""


def secret_informer(client: Client, *, namespace: str = "") -> Informer[PartialObjectMetadata]:
    """Metadata alone: values are asked for when they are needed."""
    return Informer(client, metadata_of(SECRETS), namespace=namespace, indexes={BY_CLAIM: _claims})


def _claims(secret: PartialObjectMetadata) -> Iterable[str]:
    uid = secret.metadata.labels.get(COPY_OF)
    return [uid] if uid else []


class NameTaken(Exception):
    """Somebody has a Secret under the name of a copy."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"Secret {key} is in the way of a copy and is not one; remove it")
        self.key = key


class SecretCopies:
    def __init__(self, client: Client, secrets: Informer[PartialObjectMetadata]) -> None:
        self._client = client
        self._secrets = secrets
        self._checked: dict[Key, tuple[object, dict[Role, str]]] = {}
        """For each claim: with what to be installed, and with which versions, nothing was found wrong."""

    async def needed(self, claim: HostClaim) -> dict[Role, Key]:
        """The Secrets that the claim's host needs, all of them there and fit for use. Raises `BadSecret` where one is not."""
        named = named_secrets(claim)
        if not named:
            return named
        versions = {role: self._version(role, key) for role, key in named.items()}
        what = (claim.spec.image, claim.spec.custom_deploy)
        if self._checked.get(claim.key) != (what, versions):
            found = {role: await self._read(role, key) for role, key in named.items()}
            # What users wrote can be long.
            await asyncio.to_thread(check, claim, found)
            self._checked[claim.key] = (what, versions)
        return named

    def forget(self, claim: Key) -> None:
        self._checked.pop(claim, None)

    async def make(self, claim: HostClaim, host: BareMetalHost, named: Mapping[Role, Key]) -> None:
        """Have all copies beside the host, owned by it, as the Secrets of the claim are now."""
        owner = OwnerReference(
            api_version=BARE_METAL_HOSTS.api_version,
            kind=BARE_METAL_HOSTS.kind,
            name=host.metadata.name,
            uid=host.metadata.uid,
        )
        for role, key in named.items():
            place = Key(host.metadata.namespace, copy_name(claim.metadata.uid, role))
            copy = self._secrets.get(place)
            version = self._version(role, key)
            if copy is None or not _is(copy.metadata, claim, version, owner):
                secret = await self._read(role, key)
                await self._write(claim, place, content_of(role, secret), _version_of(secret), owner)

    async def tidy(self, claim: HostClaim, host: BareMetalHost | None, roles: Iterable[Role]) -> None:
        """Remove every copy that the claim does not need: those beside another host, and those of no use any more."""
        uid = claim.metadata.uid
        kept = {Key(host.metadata.namespace, copy_name(uid, role)) for role in roles} if host else set()
        await self._remove(copy for copy in self._copies_for(uid) if copy.key not in kept)

    async def clear(self, claim: str, host: BareMetalHost) -> None:
        """Remove what was copied beside the host for a claim that had this UID and is gone."""
        here = host.metadata.namespace
        await self._remove(copy for copy in self._copies_for(claim) if copy.metadata.namespace == here)

    def _copies_for(self, claim: str) -> list[PartialObjectMetadata]:
        names = {copy_name(claim, role) for role in Role}
        return [copy for copy in self._secrets.by_index(BY_CLAIM, claim) if copy.metadata.name in names]

    async def _remove(self, copies: Iterable[PartialObjectMetadata]) -> None:
        for copy in copies:
            # Another one of that name is not what was looked at; it is looked at when the watch tells of it.
            with contextlib.suppress(NotFound, Conflict):
                await self._client.delete(SECRETS, copy.key, uid=copy.metadata.uid)

    def _version(self, role: Role, key: Key) -> str:
        found = self._secrets.get(key)
        if found is None:
            raise _missing(role, key)
        return _version_of(found)

    async def _read(self, role: Role, key: Key) -> SecretObject:
        try:
            return await self._client.get(SECRETS, key)
        except NotFound:
            raise _missing(role, key) from None

    async def _write(
        self, claim: HostClaim, place: Key, content: Content, version: str, owner: OwnerReference
    ) -> None:
        label, value = SECRET_LABEL
        metadata = {
            "labels": {label: value, COPY_OF: claim.metadata.uid},
            "annotations": {VERSION: version},
            "ownerReferences": wire([owner]),
        }
        body = {
            "metadata": {"name": place.name, "namespace": place.namespace, **metadata},
            "type": content.type,
            "data": content.data,
        }
        try:
            written = await self._client.create(SECRETS, body, namespace=place.namespace)
        except AlreadyExists:
            there = await self._client.get(SECRETS, place)
            if there.metadata.labels.get(COPY_OF) != claim.metadata.uid:
                raise NameTaken(place) from None
            if there.type != content.type:
                # The type of a Secret never changes.
                await self._client.delete(SECRETS, place, uid=there.metadata.uid)
                written = await self._client.create(SECRETS, body, namespace=place.namespace)
            else:
                change: dict[str, Any] = {
                    "metadata": metadata,
                    "data": {**dict.fromkeys(there.data), **content.data},
                }
                written = await self._client.patch(
                    SECRETS, place, change, resource_version=there.metadata.resource_version
                )
        self._secrets.observe(PartialObjectMetadata(metadata=written.metadata))


def _missing(role: Role, key: Key) -> BadSecret:
    return BadSecret(
        role,
        f"Secret {key.name}, named by spec.{role.field}, does not exist in namespace {key.namespace}. Create it; the claim goes "
        "on as soon as it is there.",
    )


def _version_of(secret: SecretObject | PartialObjectMetadata) -> str:
    return f"{secret.metadata.uid}/{secret.metadata.resource_version}"


def _is(copy: ObjectMeta, claim: HostClaim, version: str, owner: OwnerReference) -> bool:
    return (
        copy.labels.get(COPY_OF) == claim.metadata.uid
        and copy.annotations.get(VERSION) == version
        and any(found.uid == owner.uid for found in copy.owner_references)
        and copy.deletion_timestamp is None
    )
