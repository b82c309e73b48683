"""Collections that come and go while the store is open, and objects that were made by another version of their kind."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from running_server import widget_crd

from ingot.api.meta import Key
from ingot.embedded.server.errors import Refused
from ingot.embedded.server.kinds.builtins import BUILT_IN, NAMESPACES
from ingot.embedded.server.kinds.definitions import family_of
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.collection import Change
from ingot.embedded.server.storage.store import Store

WHOLE = {"type": "integer"}
FAR = family_of(widget_crd(properties={"size": WHOLE})).home


def defined(*versions: tuple[str, dict[str, Any]], storage: str, ending: bool = False) -> dict[str, Kind]:
    """The kinds of a definition with these versions, by name."""
    definition = widget_crd()
    (template,) = definition["spec"]["versions"]
    definition["spec"]["versions"] = [
        {
            **template,
            "name": name,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }
        for name, spec in versions
    ]
    if ending:
        definition["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {kind.version: kind for kind in family_of(definition).served}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@contextlib.asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Store]:
    store = Store(folder / "api.db", Registry(BUILT_IN))
    try:
        yield store
    finally:
        await store.close()


def widget(name: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": spec,
    }


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name}}


def key(name: str) -> Key:
    return Key("default", name)


async def test_a_collection_that_is_opened_late_knows_nothing_of_the_time_before(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        store.started()
        await store.put(NAMESPACES, namespace("n"))
        then = store.version
        await store.put(NAMESPACES, namespace("m"))
        store.open(FAR)
        with pytest.raises(Refused, match="too old resource version"):
            store.collection(FAR).after(then)
        assert store.collection(FAR).after(store.version) == []
        await store.put(FAR, widget("a", size=1))
        assert [change.now.key.name for change in store.collection(FAR).after(store.version - 1)] == ["a"]
        assert list(store.collection(FAR).at(store.version - 1)) == []
        with pytest.raises(Refused, match="too old"):
            store.collection(FAR).at(then)


async def test_what_is_asked_of_a_kind_that_went_is_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        store.open(FAR)
        item = await store.put(FAR, widget("a"))
        assert not store.is_empty(FAR)
        removing = store.remove(FAR, item.document())
        # Gone for those who decide, not yet for those who read: it is not empty before it is on disk.
        assert not store.is_empty(FAR)
        await removing
        assert store.is_empty(FAR)
        era = store.collection(FAR).era
        collection = store.collection(FAR)
        store.close_collection(FAR)
        assert collection.era != era
        for asked in (lambda: store.get(FAR, key("a")), lambda: store.put(FAR, widget("a"))):
            with pytest.raises(Refused) as refused:
                asked()
            assert refused.value.code == 404


async def test_objects_that_a_kind_leaves_behind_come_back_with_it_writes_under_way_included(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        store.started()
        store.open(FAR)
        await store.put(FAR, widget("a", size=1))
        writing = store.put(FAR, widget("b", size=1))
        store.close_collection(FAR)
        await writing
        with pytest.raises(Refused):
            store.get(FAR, key("a"))
        again = family_of(widget_crd(properties={"size": {**WHOLE}, "more": {**WHOLE, "default": 2}})).home
        store.open(again)
        shown = {item.key.name: item.document()["spec"] for item in store.collection(again).items.values()}
        assert shown == {"a": {"size": 1, "more": 2}, "b": {"size": 1, "more": 2}}


async def test_a_kind_that_ends_takes_no_new_objects_but_lets_those_there_change(tmp_path: Path) -> None:
    fields = of(size=WHOLE)
    async with opened(tmp_path) as store:
        kind = defined(("v1", fields), storage="v1")["v1"]
        store.open(kind)
        await store.put(kind, widget("a", size=1))
        era = store.collection(kind).era
        store.open(defined(("v1", fields), storage="v1", ending=True)["v1"])
        # Its watchers want to see its objects go.
        assert store.collection(kind).era == era
        with pytest.raises(Refused) as refused:
            store.put(kind, widget("b"))
        assert (refused.value.code, refused.value.reason) == (403, "Forbidden")
        assert (await store.put(kind, widget("a", size=2))).document()["spec"] == {"size": 2}


async def test_objects_of_a_kind_that_nobody_opened_wait_on_disk_and_are_announced_when_somebody_does(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        store.open(FAR)
        await store.put(FAR, widget("a", size=1))
    async with opened(tmp_path) as store:
        store.started()
    async with opened(tmp_path) as store:
        store.started()
        seen: list[Change] = []
        store.subscribe(seen.append)
        store.open(FAR)
        assert [(change.type, change.now.key.name) for change in seen] == [("ADDED", "a")]
        assert store.get(FAR, key("a")) is seen[0].now


async def test_at_the_start_a_collection_gets_its_past_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        store.open(FAR)
        first = await store.put(FAR, widget("a", size=1))
        await store.put(FAR, widget("b", size=1))
        await store.remove(FAR, first.document())
    async with opened(tmp_path) as store:
        store.open(FAR)
        changes = store.collection(FAR).after(first.version)
        assert [(change.type, change.now.key.name) for change in changes] == [
            ("ADDED", "b"),
            ("DELETED", "a"),
        ]


async def test_an_object_is_kept_in_the_form_of_its_home_and_read_in_every_version(tmp_path: Path) -> None:
    kinds = defined(
        ("v1", of(size=WHOLE, weight={**WHOLE, "default": 7})),
        ("v2", of(size=WHOLE, color=WHOLE)),
        storage="v1",
    )
    async with opened(tmp_path) as store:
        store.open(kinds["v1"])
        item = await store.put(kinds["v2"], widget("a", "v2", size=1, color=2))
        assert item.kind is kinds["v1"]
        assert item.document() == item.document(kinds["v1"])
        assert item.document()["apiVersion"] == "example.com/v1"
        assert item.document()["spec"] == {"size": 1, "weight": 7}
        assert item.document(kinds["v2"])["apiVersion"] == "example.com/v2"
        assert item.document(kinds["v2"])["spec"] == {"size": 1}
        assert item.body_for(kinds["v1"]) is item.body


async def test_objects_of_an_earlier_form_are_read_in_the_new_one_before_and_after_they_are_brought_into_it(
    tmp_path: Path,
) -> None:
    before = defined(("v1", of(size=WHOLE, old=WHOLE)), storage="v1")["v1"]
    after = defined(
        ("v1", of(size=WHOLE, new={**WHOLE, "default": 5})), ("v2", of(size=WHOLE, new=WHOLE)), storage="v2"
    )
    async with opened(tmp_path) as store:
        store.open(before)
        written = await store.put(before, widget("a", size=1, old=2))
        era = store.collection(before).era
        store.open(after["v2"])
        assert store.collection(before).era != era
        item = store.get(after["v1"], key("a"))
        assert item is written
        assert item.document(after["v2"])["spec"] == {"size": 1}
        store.reshape(after["v2"], [key("a"), key("gone")])
        again = store.get(after["v1"], key("a"))
        assert again is not None
        assert (again.kind, again.version) == (after["v2"], written.version)
        assert again.document()["apiVersion"] == "example.com/v2"


async def test_what_was_written_before_the_kind_changed_is_brought_into_its_form_at_the_start(
    tmp_path: Path,
) -> None:
    before = defined(("v1", of(size=WHOLE)), storage="v1")["v1"]
    after = defined(("v1", of(size=WHOLE, new={**WHOLE, "default": 5})), storage="v1")["v1"]
    async with opened(tmp_path) as store:
        store.open(before)
        old = await store.put(before, widget("old", size=1))
        await store.put(before, widget("young", size=1))
    async with opened(tmp_path) as store:
        # The definition is as it is since just after the first of the two was written.
        store.open(after, changed_at=old.version + 1)
        shown = {item.key.name: item.document()["spec"] for item in store.collection(after).items.values()}
        assert shown == {"old": {"size": 1, "new": 5}, "young": {"size": 1}}


async def test_who_still_writes_by_an_earlier_definition_is_kept_in_the_form_of_the_new_one(
    tmp_path: Path,
) -> None:
    before = defined(("v1", of(size=WHOLE, old=WHOLE)), storage="v1")["v1"]
    after = defined(("v1", of(size=WHOLE)), storage="v1")["v1"]
    async with opened(tmp_path) as store:
        store.open(before)
        store.open(after)
        item = await store.put(before, widget("a", size=1, old=2))
        assert item.kind is after
        assert item.document()["spec"] == {"size": 1}
