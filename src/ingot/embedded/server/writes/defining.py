"""Definitions at work: what clients define is served, changes with its definition, and goes with it.

What is served follows from the stored definitions alone, so a restart serves the same. A definition that is created or
changed is in force when its write is acknowledged: `_noticed` is called before that. Its conditions are written after.
A definition that is deleted first takes all its objects with it, and waits for those that somebody holds on to; none
can be created meanwhile.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, dig, timestamp
from ingot.embedded.server.errors import Refused
from ingot.embedded.server.kinds.builtins import DEFINITIONS
from ingot.embedded.server.kinds.builtins.definitions import RELEASED
from ingot.embedded.server.kinds.definitions import family_of, naming
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.collection import Change
from ingot.embedded.server.storage.objects import Stored, is_terminating
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.chores import Chores
from ingot.embedded.server.writes.writing import Deletion, Edit, Manner, Writing

log = logging.getLogger(__name__)

_SLICE: Final = 100


class Defining:
    """Keeps the registry and the store's collections as the stored definitions say, and the definitions' status true."""

    def __init__(self, store: Store, registry: Registry, writing: Writing) -> None:
        self._store = store
        self._registry = registry
        self._writing = writing
        # What each definition has been given, by its name; ahead of what its stored status says.
        self._names: dict[str, naming.Names] = {}
        # What each family was made from, or could not be: a change of anything else changes nothing.
        self._made_from: dict[str, object] = {}
        self._released: dict[str, Mapping[str, Any]] = {}
        self._chores: Chores[str] = Chores("the upkeep of the definition", self._consider)
        self._serve_stored()
        store.subscribe(self._noticed)

    async def release(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        """Store the definitions of the release, in place of whatever has their names, and serve them.

        Those of an earlier release that this one no longer has stay, with their objects, and are the clients' own.
        """
        self._released = {definition["metadata"]["name"]: definition for definition in definitions}
        for definition in self._released.values():
            await self._install(definition)
        for item in list(self._store.collection(DEFINITIONS).items.values()):
            document = item.document()
            if item.key.name not in self._released and dig(document, "metadata", "annotations", RELEASED):
                del document["metadata"]["annotations"][RELEASED]
                await self._writing.install(DEFINITIONS, document)

    async def _install(self, definition: Mapping[str, Any]) -> None:
        name = definition["metadata"]["name"]
        there = self._store.head(DEFINITIONS, Key("", name))
        old = there.document() if there else {}
        document: Document = {
            "apiVersion": DEFINITIONS.api_version,
            "kind": DEFINITIONS.kind,
            "metadata": dict(definition["metadata"]),
            "spec": copy.deepcopy(definition["spec"]),
            "status": old.get("status") or {},
        }
        DEFINITIONS.prepare(document, None)
        document["metadata"] = _marked(document["metadata"], dig(old, "metadata") or {})
        document["status"] = {
            **self._status(name, document),
            "storedVersions": _stored_versions(document, dig(old, "status", "storedVersions") or ()),
        }
        await self._writing.install(DEFINITIONS, document)

    async def run(self) -> None:
        """Write what follows from definitions: their conditions, and the end of what they defined."""
        await self._chores.run()

    def _serve_stored(self) -> None:
        items = self._store.collection(DEFINITIONS).items.values()
        # Those that have their names keep them; the others get what is left, the oldest first.
        for item in sorted(items, key=lambda item: (not _has_names(item), item.version)):
            self._take_up(item)
            self._look_at(item.key.name)

    # What happened

    def _noticed(self, change: Change) -> None:
        if change.kind.resource != DEFINITIONS.resource:
            family = self._registry.family(change.kind.resource)
            if change.type == "DELETED" and family is not None and family.home.terminating:
                self._look_at(change.kind.resource)
        elif change.type == "DELETED":
            self._drop(change.now)
        else:
            self._take_up(change.now)
            self._look_at(change.now.key.name)

    def _look_at(self, name: str) -> None:
        self._chores.add(name)

    def _take_up(self, item: Stored) -> None:
        """Serve what this definition defines now."""
        try:
            self._serve(item)
        except Exception as error:
            # Rules got stricter, or the file was written by something else: one bad definition must not stop the others.
            log.error(
                "the definition %s cannot be served (%s: %s)", item.key.name, type(error).__name__, error
            )

    def _serve(self, item: Stored) -> None:
        name, definition = item.key.name, item.document()
        status = self._status(name, definition)
        if self._names.get(name) != status["acceptedNames"]:
            self._names[name] = status["acceptedNames"]
            self._reconsider(definition["spec"]["group"], but=name)
        definition["status"] = status
        if not naming.is_true(definition, naming.ESTABLISHED):
            return
        made_from = (definition["spec"], status["acceptedNames"], is_terminating(definition))
        if self._made_from.get(name) == made_from:
            return
        # Also where it fails: it would fail the same way again.
        self._made_from[name] = made_from
        family = family_of(definition)
        self._registry.define(name, family)
        self._store.open(family.home, changed_at=item.version)

    def _drop(self, item: Stored) -> None:
        name = item.key.name
        family = self._registry.family(name)
        self._names.pop(name, None)
        self._made_from.pop(name, None)
        self._registry.undefine(name)
        if family is not None:
            self._store.close_collection(family.home)
        self._look_at(name)
        self._reconsider(dig(item.document(), "spec", "group"), but=name)

    def _reconsider(self, group: str, *, but: str) -> None:
        """A name may have become free for others of the group."""
        for key in self._store.collection(DEFINITIONS).items:
            if key.name != but and _group_of(key.name) == group:
                self._look_at(key.name)

    def _status(self, name: str, definition: Mapping[str, Any]) -> Document:
        group = definition["spec"]["group"]
        others = [
            names for other, names in self._names.items() if other != name and _group_of(other) == group
        ]
        others += [_names_of(kind) for kind in self._registry.built_in() if kind.group == group]
        return naming.status_of(definition, naming.taken(others))

    # What follows from it

    async def _consider(self, name: str) -> None:
        item = self._store.get(DEFINITIONS, Key("", name))
        if item is None:
            # One that a client was deleting when a release came that has it: now it can begin anew.
            if name in self._released:
                await self._install(self._released[name])
            return
        # Once more: a name that was taken may be free by now.
        self._take_up(item)
        await self._write_status(item.key)
        family = self._registry.family(name)
        if is_terminating(item.document()):
            await self._end(item.key, family.home if family else None)
        elif family is not None:
            await self._reshape(family.home)

    async def _write_status(self, key: Key) -> None:
        def edit(document: Document) -> Document:
            document["status"] = self._status(key.name, document)
            return document

        await self._change(key, edit)

    async def _reshape(self, kind: Kind) -> None:
        """Bring objects that were made by an earlier definition into the form of this one, a few at a time."""
        old = iter([key for key, item in self._store.collection(kind).items.items() if item.kind is not kind])
        while keys := list(islice(old, _SLICE)):
            self._store.reshape(kind, keys)
            await asyncio.sleep(0)

    async def _end(self, key: Key, home: Kind | None) -> None:
        """Delete the objects, and when none is left, let the definition go."""
        if home is None:
            await self._finish(key, "NeverEstablished", "resource was never established")
            return
        await self._say(key, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        refused = ""
        items = iter(list(self._store.collection(home).items.values()))
        while batch := list(islice(items, _SLICE)):
            deleting = (self._delete(home, item) for item in batch if not is_terminating(item.document()))
            refused = next(filter(None, await asyncio.gather(*deleting)), refused)
        if self._store.is_empty(home):
            await self._finish(key, "InstanceDeletionCompleted", "removed all instances")
        elif refused:
            words = f"could not issue all deletes: {refused}"
            await self._say(key, "True", "InstanceDeletionFailed", words)
            self._chores.add_later(key.name)

    async def _delete(self, kind: Kind, item: Stored) -> str:
        try:
            await self._writing.delete(kind, item.key, Deletion(uid=item.uid))
        except Refused as refusal:
            return "" if refusal.code in (404, 409) else refusal.message
        return ""

    async def _finish(self, key: Key, reason: str, message: str) -> None:
        await self._say(key, "False", reason, message)

        def edit(document: Document) -> Document:
            left = [
                found for found in dig(document, "metadata", "finalizers") or [] if found != naming.FINALIZER
            ]
            document["metadata"]["finalizers"] = left
            return document

        await self._change(key, edit, subresource="")

    async def _say(self, key: Key, status: str, reason: str, message: str) -> None:
        def edit(document: Document) -> Document:
            found: Sequence[Document] = dig(document, "status", "conditions") or []
            conditions = naming.with_condition(found, naming.TERMINATING, status, reason, message)
            document["status"] = {**(document.get("status") or {}), "conditions": conditions}
            return document

        await self._change(key, edit)

    async def _change(self, key: Key, edit: Edit, *, subresource: str = "status") -> None:
        manner = Manner(field_validation="Ignore")
        await self._writing.change(DEFINITIONS, key, edit, manner, subresource=subresource)


def _group_of(name: str) -> str:
    """Definitions are called `PLURAL.GROUP`, and a plural has no dots."""
    return name.partition(".")[2]


def _has_names(item: Stored) -> bool:
    return naming.is_true(item.document(), naming.NAMES_ACCEPTED)


def _names_of(kind: Kind) -> naming.Names:
    return {
        "plural": kind.plural,
        "singular": kind.singular,
        "shortNames": list(kind.short_names),
        "kind": kind.kind,
        "listKind": kind.list_kind,
    }


def _stored_versions(definition: Mapping[str, Any], before: Sequence[str]) -> list[str]:
    """The versions objects may be kept in: those of before that still exist, and the one they are kept in now."""
    versions = definition["spec"]["versions"]
    names = [version["name"] for version in versions]
    now = next(version["name"] for version in versions if version.get("storage"))
    return [name for name in dict.fromkeys((*before, now)) if name in names]


def _marked(metadata: Document, old: Document) -> Document:
    """The metadata of a definition of the release: what others noted on it stays.

    The server owns its mark and nothing else, so that whoever applies a definition of the same name meets no conflict.
    """
    annotations = {**(old.get("annotations") or {}), **(metadata.get("annotations") or {}), RELEASED: "true"}
    labels = {**(old.get("labels") or {}), **(metadata.get("labels") or {})}
    kept = {name: old[name] for name in ("finalizers", "ownerReferences") if old.get(name)}
    mark = {
        "manager": "ingot",
        "operation": "Update",
        "apiVersion": DEFINITIONS.api_version,
        "time": timestamp(),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{RELEASED}": {}}}},
    }
    return {
        **kept,
        **metadata,
        "annotations": annotations,
        "managedFields": [mark],
        **({"labels": labels} if labels else {}),
    }
