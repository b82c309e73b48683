"""Firmware schemas: one for all the hosts of a namespace whose firmware has the same settings.

Named by their content, so a schema is made once and never changed. None of the many hosts that share one is its owner: ten
thousand owner references would be more than an API object can hold, and every host would have to write them. A schema of ours
that no HostFirmwareSettings names any more is removed here instead; `having` holds one while somebody is about to name it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

from ingot.api.firmwareschema import FIRMWARE_SCHEMAS, FirmwareSchemaSpec
from ingot.api.hostfirmwaresettings import HostFirmwareSettings, SchemaReference
from ingot.api.meta import Key, PartialObjectMetadata
from ingot.api.wire import wire
from ingot.kube import AlreadyExists, ApiError, Change, Client, Conflict, Informer, NotFound, metadata_of

log = logging.getLogger(__name__)

BY_SCHEMA: Final = "schema"
OURS: Final = {"app.kubernetes.io/managed-by": "ingot"}
"""The label of the schemas that are removed when nobody names them any more."""


def named_schema(settings: HostFirmwareSettings) -> Iterable[str]:
    """For the index of settings by the schema they name."""
    reference = settings.status.schema
    return [] if reference is None else [str(_key(settings, reference))]


def _key(settings: HostFirmwareSettings, reference: SchemaReference) -> Key:
    return Key(reference.namespace or settings.metadata.namespace, reference.name)


class Schemas:
    """The schemas of one API, as far as they exist."""

    def __init__(
        self, client: Client, settings: Informer[HostFirmwareSettings], *, namespace: str = ""
    ) -> None:
        """`settings` has the index `BY_SCHEMA`."""
        self.informer = Informer(client, metadata_of(FIRMWARE_SCHEMAS), namespace=namespace)
        self._client = client
        self._settings = settings
        self._lock = asyncio.Lock()
        self._in_hand: Counter[Key] = Counter()
        self._perhaps_unused: set[Key] = set()
        self._removed: set[str] = set()
        """UIDs of schemas that are gone, whether the watch has told so or not."""
        settings.subscribe(self._settings_changed)
        self.informer.subscribe(self._schema_changed)

    def exists(self, settings: HostFirmwareSettings) -> bool:
        """Whether the schema that these settings name is there. Settings without a schema miss none."""
        reference = settings.status.schema
        return reference is None or self._found(_key(settings, reference)) is not None

    def used_by(self, key: Key) -> list[Key]:
        return [settings.key for settings in self._settings.by_index(BY_SCHEMA, str(key))]

    @asynccontextmanager
    async def having(self, key: Key, spec: FirmwareSchemaSpec) -> AsyncIterator[SchemaReference]:
        """The schema of this name, made with this content where there is none, for as long as the block lasts."""
        self._in_hand[key] += 1
        try:
            # One at a time: a rack of equal machines must not ask for the same object all at once.
            async with self._lock:
                if self._found(key) is None:
                    await self._make(key, wire(spec))
            yield SchemaReference(name=key.name, namespace=key.namespace)
        finally:
            self._in_hand[key] -= 1
            if not self._in_hand[key]:
                del self._in_hand[key]

    async def _make(self, key: Key, spec: Mapping[str, object]) -> None:
        metadata = {"name": key.name, "namespace": key.namespace, "labels": OURS}
        try:
            made = await self._client.create(
                metadata_of(FIRMWARE_SCHEMAS), {"metadata": metadata, "spec": spec}, namespace=key.namespace
            )
        except AlreadyExists:
            made = await self._client.get(metadata_of(FIRMWARE_SCHEMAS), key)
        self.informer.observe(made)

    async def sweep(self) -> None:
        """Remove the schemas that were left since the last time."""
        if not self._perhaps_unused:
            return
        async with self._lock:
            for key in [key for key in self._perhaps_unused if key not in self._in_hand]:
                found = self._found(key)
                if found is not None and not self.used_by(key):
                    try:
                        await self._remove(found)
                    except ApiError as error:
                        # Nobody waits for it, and no host is to be held up by it.
                        log.warning(
                            "FirmwareSchema %s is not used any more, and cannot be removed yet: %s",
                            key,
                            error,
                        )
                        continue
                self._perhaps_unused.discard(key)

    async def _remove(self, schema: PartialObjectMetadata) -> None:
        if any(schema.metadata.labels.get(label) != value for label, value in OURS.items()):
            return
        uid = schema.metadata.uid
        with suppress(NotFound, Conflict):
            await self._client.delete(FIRMWARE_SCHEMAS, schema.key, uid=uid)
            self._removed.add(uid)

    def _found(self, key: Key) -> PartialObjectMetadata | None:
        found = self.informer.get(key)
        return None if found is None or found.metadata.uid in self._removed else found

    def _settings_changed(self, change: Change[HostFirmwareSettings]) -> None:
        before = change.old.status.schema if change.old is not None else None
        after = change.new.status.schema if change.new is not None else None
        if change.old is not None and before is not None and before != after:
            self._perhaps_unused.add(_key(change.old, before))

    def _schema_changed(self, change: Change[PartialObjectMetadata]) -> None:
        if change.new is None and change.old is not None:
            self._removed.discard(change.old.metadata.uid)
        elif change.initial:
            # Whoever named it may have gone while nobody looked.
            self._perhaps_unused.add(change.key)
