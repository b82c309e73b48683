"""Garbage collection: what goes when something else goes.

A dependent goes when its last owner is gone. Owners are known by their uid, so one that was deleted and made anew
under the same name does not count; an owner of a kind that this API does not serve is left in peace. A namespace
being deleted is emptied, then goes. Deleting with `Orphan` sets dependents free instead, with `Foreground` the owner
stays until those that block it are gone. Events go after an hour.

All of it is decided from what is stored, so a restart goes on where it was; and on the newest state, writes under way
included, so that nothing is deleted for an owner that it is just losing. A disk that refuses a write makes it wait.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Final

from ingot.api.meta import Key
from ingot.embedded.server import unforeseen
from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Refused
from ingot.embedded.server.kinds.builtins import EVENTS, NAMESPACES
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.collection import Change
from ingot.embedded.server.storage.objects import Stored, is_terminating
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.chores import Chores
from ingot.embedded.server.writes.deleting import FOREGROUND, ORPHAN
from ingot.embedded.server.writes.writing import Deletion, Manner, Writing

log = logging.getLogger(__name__)

EVENT_LIFE: Final = 3600.0
_EXPIRE_EVERY: Final = 60.0
_AT_ONCE: Final = 64

# Kinds can be defined anew while their objects stay, so a place is named by resource.
Place = tuple[str, Key]


class Garbage:
    def __init__(self, store: Store, registry: Registry, writing: Writing) -> None:
        self._store = store
        self._registry = registry
        self._writing = writing
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, set[Place]] = {}
        self._chores: Chores[Place] = Chores("garbage collection", self._consider)
        # Namespaces that are being deleted, and those of them in which something may be left that nobody has deleted yet.
        self._ending: set[str] = set()
        self._unswept: set[str] = set()
        for collection in store.collections():
            for item in collection.items.values():
                self._index(collection.kind, item)
                if collection.kind is NAMESPACES:
                    self._notice_namespace(item)
                if _concerns_us(collection.kind, item):
                    self._look_at((collection.kind.resource, item.key))
        store.subscribe(self._noticed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._chores.run())
            tasks.create_task(self._expire())

    async def _expire(self) -> None:
        while True:
            oldest = time.time() - EVENT_LIFE
            try:
                old = (item for item in self._store.collection(EVENTS).items.values() if item.at < oldest)
                await self._delete_all([(EVENTS, item) for item in old])
            except Refused as refusal:
                log.info("events older than an hour stay for now: %s", refusal.message)
            except Exception as error:  # the edge of a task that must go on
                unforeseen.tell(log, "forgetting events older than an hour", error)
            await asyncio.sleep(_EXPIRE_EVERY)

    # What happened

    def _noticed(self, change: Change) -> None:
        if change.before is not None:
            self._unindex(change.kind, change.before)
        if change.type == "DELETED":
            for place in self._dependents.get(change.now.uid, ()):
                self._look_at(place)
        else:
            self._index(change.kind, change.now)
            if _concerns_us(change.kind, change.now):
                self._look_at((change.kind.resource, change.now.key))
        for owner in change.now.owners:
            # An owner that waits for its dependents wants to know.
            if (waiting := self._places.get(owner)) is not None:
                self._look_at(waiting)
        if change.kind is NAMESPACES:
            self._notice_namespace(change.now, gone=change.type == "DELETED")
        elif (namespace := change.now.key.namespace) in self._ending:
            if change.type == "ADDED":
                # It was decided before the end of the namespace was.
                self._unswept.add(namespace)
            self._look_at((NAMESPACES.resource, Key("", namespace)))

    def _notice_namespace(self, item: Stored, *, gone: bool = False) -> None:
        name = item.key.name
        if gone:
            self._ending.discard(name)
            self._unswept.discard(name)
        elif name not in self._ending and is_terminating(item.document()):
            self._ending.add(name)
            self._unswept.add(name)

    def _look_at(self, place: Place) -> None:
        self._chores.add(place)

    def _index(self, kind: Kind, item: Stored) -> None:
        self._places[item.uid] = (kind.resource, item.key)
        for owner in item.owners:
            self._dependents.setdefault(owner, set()).add((kind.resource, item.key))

    def _unindex(self, kind: Kind, item: Stored) -> None:
        self._places.pop(item.uid, None)
        for owner in item.owners:
            places = self._dependents.get(owner, set())
            places.discard((kind.resource, item.key))
            if not places:
                self._dependents.pop(owner, None)

    # What follows from it

    async def _consider(self, place: Place) -> None:
        resource, key = place
        if (kind := self._registry.home(resource)) is None:
            return
        # A namespace is looked at as readers see it: once they see it end, they also see all that was created in it before.
        item = self._store.get(kind, key) if kind is NAMESPACES else self._store.head(kind, key)
        if item is None:
            return
        if kind is NAMESPACES:
            await self._empty_namespace(item)
        elif item.owners:
            await self._without_gone_owners(kind, item)
        document = item.document()
        if not is_terminating(document):
            return
        finalizers = document["metadata"].get("finalizers", ())
        if ORPHAN in finalizers:
            await self._set_free(kind, item)
        elif FOREGROUND in finalizers:
            await self._finish_foreground(kind, item)

    async def _without_gone_owners(self, kind: Kind, item: Stored) -> None:
        references = item.document()["metadata"].get("ownerReferences", [])
        gone = [
            reference["uid"] for reference in references if not self._is_there(reference, item.key.namespace)
        ]
        if not gone:
            return
        if len(gone) == len(references):
            await self._delete(kind, item)
        else:
            await self._drop_owners(kind, item, gone)

    def _is_there(self, reference: Document, namespace: str) -> bool:
        kind = self._registry.named(reference["apiVersion"], reference["kind"])
        if kind is None:
            return True
        found = self._places.get(reference["uid"])
        return found is not None and found[0] == kind.resource and found[1].namespace in ("", namespace)

    async def _empty_namespace(self, namespace: Stored) -> None:
        name = namespace.key.name
        if name not in self._ending:
            return
        if name in self._unswept:
            self._unswept.discard(name)
            await self._sweep(name)
        if all(collection.is_empty(name) for collection in self._store.collections()):
            await self._writing.finish_namespace(name)

    async def _sweep(self, namespace: str) -> None:
        """Delete all that is in a namespace. Some take a while to go."""
        left = [
            (collection.kind, item)
            for collection in self._store.collections()
            if collection.kind.namespaced
            for key in collection.keys(namespace)
            if not is_terminating((item := collection.items[key]).document())
        ]
        try:
            await self._delete_all(left)
        except Exception:
            # What is still in use goes when its users are gone; the next sweep finds it.
            self._unswept.add(namespace)
            raise

    async def _set_free(self, kind: Kind, owner: Stored) -> None:
        for dependent_kind, item in self._dependents_of(owner):
            await self._drop_owners(dependent_kind, item, [owner.uid])
        await self._drop_finalizer(kind, owner, ORPHAN)

    async def _finish_foreground(self, kind: Kind, owner: Stored) -> None:
        waits = False
        for dependent_kind, item in self._dependents_of(owner):
            document = item.document()
            if not is_terminating(document):
                await self._delete(dependent_kind, item)
            if self._store.get(dependent_kind, item.key) is not None and any(
                reference.get("blockOwnerDeletion")
                for reference in document["metadata"]["ownerReferences"]
                if reference["uid"] == owner.uid
            ):
                waits = True
        if not waits:
            await self._drop_finalizer(kind, owner, FOREGROUND)

    def _dependents_of(self, owner: Stored) -> Iterable[tuple[Kind, Stored]]:
        for resource, key in list(self._dependents.get(owner.uid, ())):
            if (kind := self._registry.home(resource)) is None:
                continue
            item = self._store.head(kind, key)
            if item is not None and owner.uid in item.owners:
                yield kind, item

    async def _delete(self, kind: Kind, item: Stored) -> None:
        try:
            await self._writing.delete(kind, item.key, Deletion(uid=item.uid))
        except Refused as refusal:
            if refusal.code not in (404, 409):
                raise

    async def _delete_all(self, items: Sequence[tuple[Kind, Stored]]) -> None:
        """Many at a time: they share the price of a sync. Raises the first refusal, when all that can be deleted is."""
        held: list[BaseException] = []
        for start in range(0, len(items), _AT_ONCE):
            some = items[start : start + _AT_ONCE]
            ends = await asyncio.gather(*(self._delete(*one) for one in some), return_exceptions=True)
            held += [end for end in ends if end is not None]
        if held:
            raise held[0]

    async def _drop_owners(self, kind: Kind, item: Stored, uids: list[str]) -> None:
        def edit(document: Document) -> Document:
            left = [
                owner for owner in document["metadata"].get("ownerReferences", []) if owner["uid"] not in uids
            ]
            document["metadata"]["ownerReferences"] = left
            return document

        await self._writing.change(kind, item.key, edit, Manner(field_validation="Ignore"))

    async def _drop_finalizer(self, kind: Kind, item: Stored, name: str) -> None:
        def edit(document: Document) -> Document:
            left = [found for found in dig(document, "metadata", "finalizers") or [] if found != name]
            document["metadata"]["finalizers"] = left
            return document

        await self._writing.change(kind, item.key, edit, Manner(field_validation="Ignore"))


def _concerns_us(kind: Kind, item: Stored) -> bool:
    """A quick look without decoding: most objects have neither owners nor one of our finalizers."""
    return (
        kind is NAMESPACES
        or bool(item.owners)
        or f'"{ORPHAN}"'.encode() in item.body
        or f'"{FOREGROUND}"'.encode() in item.body
    )
