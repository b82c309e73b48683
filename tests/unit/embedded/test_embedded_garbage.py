"""Garbage collection below HTTP: what it decides while others write, and that nothing brings it down."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from running_server import SECRETS, served, widget_crd

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document
from ingot.embedded.server.kinds.builtins import BUILT_IN, NAMESPACES
from ingot.embedded.server.kinds.definitions import family_of
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.objects import is_terminating
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.admission import Admission
from ingot.embedded.server.writes.garbage import Garbage
from ingot.embedded.server.writes.webhooks import Webhooks
from ingot.embedded.server.writes.writing import Deletion, Manner, Writing

WIDGET = family_of(widget_crd()).home
REGISTRY = Registry((*BUILT_IN, WIDGET))


class Room:
    """A store with one namespace, and the words to furnish it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writing = Writing(store, Admission(store, REGISTRY), Webhooks(store, REGISTRY))

    async def widget(self, name: str, *, owner: str = "", **metadata: Any) -> str:
        """Create a widget, perhaps one that belongs to the owner with this uid; answers with its uid."""
        if owner:
            reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner}
            metadata["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
        document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, **metadata}}
        made = await self.writing.create(WIDGET, "room", document, Manner())
        return made.uid

    async def set_free(self, name: str) -> None:
        def edit(document: Document) -> Document:
            del document["metadata"]["ownerReferences"]
            return document

        await self.writing.change(WIDGET, key(name), edit, Manner())

    def has(self, name: str) -> bool:
        return self.store.get(WIDGET, key(name)) is not None

    def will_have(self, name: str) -> bool:
        return self.store.head(WIDGET, key(name)) is not None

    async def gone(self, name: str) -> None:
        await until(lambda: not self.has(name))

    @contextlib.asynccontextmanager
    async def collecting(self) -> AsyncIterator[None]:
        task = asyncio.create_task(Garbage(self.store, REGISTRY, self.writing).run())
        try:
            yield
            assert not task.done()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def furnished(folder: Path) -> AsyncIterator[Room]:
    store = Store(folder / "api.db", REGISTRY)
    try:
        room = Room(store)
        await room.writing.create(NAMESPACES, "", {"metadata": {"name": "room"}}, Manner())
        yield room
    finally:
        await store.close()


async def until(condition: Callable[[], bool]) -> None:
    """Return in the very turn of the loop after the one in which the condition came to hold."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 (the store tells nobody what is only under way)
            await asyncio.sleep(0)


def key(name: str) -> Key:
    return Key("room", name)


async def test_a_dependent_that_is_being_set_free_is_not_deleted_for_its_gone_owner(tmp_path: Path) -> None:
    async with furnished(tmp_path) as room:
        await room.widget("child", owner="of-one-who-is-gone")
        await room.widget("other", owner="of-one-who-is-gone")
        freeing = asyncio.create_task(room.set_free("child"))
        await asyncio.sleep(0)
        assert not freeing.done()
        async with room.collecting():
            await freeing
            await room.gone("other")
            assert room.has("child")


async def test_a_dependent_set_free_during_a_foreground_deletion_stays(tmp_path: Path) -> None:
    async with furnished(tmp_path) as room:
        owner = await room.widget("owner")
        children = ("one", "two")
        for name in children:
            await room.widget(name, owner=owner)
        await room.writing.delete(WIDGET, key("owner"), Deletion(propagation="Foreground"))
        async with room.collecting():
            await until(lambda: not all(room.will_have(name) for name in children))
            (left,) = (name for name in children if room.will_have(name))
            await room.set_free(left)
            await room.gone("owner")
            assert room.has(left)


async def test_the_finalizers_of_deletion_mean_nothing_on_an_object_that_is_not_deleted(
    tmp_path: Path,
) -> None:
    async with furnished(tmp_path) as room:
        for finalizer in ("orphan", "foregroundDeletion"):
            owner = await room.widget(f"owner-{finalizer.lower()}", finalizers=[finalizer])
            await room.widget(f"child-{finalizer.lower()}", owner=owner)
        async with room.collecting():
            # What comes last is looked at last: when it is gone, the others were considered.
            await room.widget("last", owner="of-one-who-is-gone")
            await room.gone("last")
        for finalizer in ("orphan", "foregroundDeletion"):
            found = room.store.get(WIDGET, key(f"owner-{finalizer.lower()}"))
            assert found is not None
            assert found.document()["metadata"]["finalizers"] == [finalizer]
            child = room.store.get(WIDGET, key(f"child-{finalizer.lower()}"))
            assert child is not None
            assert child.owners == (found.uid,)


async def test_a_namespace_stays_until_what_was_created_just_before_its_deletion_is_gone(
    tmp_path: Path,
) -> None:
    async with furnished(tmp_path) as room:
        creating = asyncio.create_task(room.widget("late", finalizers=["example.com/hold"]))
        deleting = asyncio.create_task(room.writing.delete(NAMESPACES, Key("", "room"), Deletion()))
        # Neither is on disk yet; the namespace is looked at all the same.
        await asyncio.sleep(0)
        async with room.collecting():
            await asyncio.gather(creating, deleting)
            await until(lambda: is_terminating(found(room, "late")))
            assert room.store.get(NAMESPACES, Key("", "room")) is not None


def found(room: Room, name: str) -> Document:
    item = room.store.get(WIDGET, key(name))
    assert item is not None
    return item.document()


async def test_looking_at_many_objects_lets_others_have_their_turn(tmp_path: Path) -> None:
    async with furnished(tmp_path) as room:
        owner = await room.widget("owner")
        await asyncio.gather(*(room.widget(f"child-{number}", owner=owner) for number in range(200)))
        await room.widget("last", owner="of-one-who-is-gone")
        turns = 0
        async with room.collecting():
            while room.will_have("last"):
                turns += 1
                await asyncio.sleep(0)
        assert turns >= 200


async def test_a_disk_that_refuses_to_forget_old_events_does_not_end_the_server(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/default/events"
    event = {"involvedObject": {"kind": "Secret", "name": "s", "namespace": "default"}}
    async with served(tmp_path) as api:
        await api.call("POST", path, {"metadata": {"name": "old"}, **event})
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        database.execute("UPDATE object SET at = at - 3700 WHERE name = 'old'")
        database.execute(
            "CREATE TRIGGER full BEFORE DELETE ON object"
            " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        database.commit()
    async with served(tmp_path) as api:
        async with asyncio.timeout(60):
            while (await api.call("GET", "/readyz"))[0] != 500:  # noqa: ASYNC110 (what happens behind HTTP has no event)
                await asyncio.sleep(0.02)
        assert (await api.call("GET", f"{path}/old"))[0] == 200
        assert (await api.call("POST", SECRETS, {"metadata": {"name": "s"}}))[0] == 201


async def test_a_namespace_goes_when_the_last_of_many_that_held_on_has_gone(tmp_path: Path) -> None:
    async with furnished(tmp_path) as room:
        names = [f"held-{number}" for number in range(100)]
        held = [room.widget(name, finalizers=["example.com/hold"]) for name in names]
        free = [room.widget(f"free-{number}") for number in range(100)]
        await asyncio.gather(*held, *free)
        async with room.collecting():
            await room.writing.delete(NAMESPACES, Key("", "room"), Deletion())
            await until(lambda: len(room.store.collection(WIDGET).items) == len(names))
            await until(lambda: all(is_terminating(found(room, name)) for name in names))
            for name in names:
                assert room.store.get(NAMESPACES, Key("", "room")) is not None
                await room.writing.change(WIDGET, key(name), without_finalizers, Manner())
            await until(lambda: room.store.get(NAMESPACES, Key("", "room")) is None)


def without_finalizers(document: Document) -> Document:
    document["metadata"]["finalizers"] = []
    return document
