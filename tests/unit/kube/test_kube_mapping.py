"""Whose concern a change is."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest
from kube_scripted_api import WIDGET, ScriptedApi, Widget

from ingot.api.meta import Key, ObjectMeta, OwnerReference
from ingot.kube import Again, Client, Controller, Done, Informer, follow, named_in, owned_by

OWNER = OwnerReference(
    api_version="test.ingot.dev/v1", kind="Widget", name="parent", uid="u", controller=True
)


def owned(*owners: OwnerReference) -> Widget:
    return Widget(metadata=ObjectMeta(namespace="rack", name="child", owner_references=list(owners)))


def changed(**fields: object) -> OwnerReference:
    return OwnerReference(**({field: getattr(OWNER, field) for field in OWNER.__struct_fields__} | fields))


@pytest.mark.parametrize(
    ("owners", "keys"),
    [
        ([], []),
        ([OWNER], [Key("rack", "parent")]),
        ([changed(api_version="test.ingot.dev/v1beta7")], [Key("rack", "parent")]),
        ([changed(api_version="other.ingot.dev/v1")], []),
        ([changed(api_version="v1")], []),
        ([changed(kind="Gadget")], []),
        ([changed(controller=False)], []),
        ([changed(controller=None)], []),
        ([changed(kind="Gadget"), changed(name="second")], [Key("rack", "second")]),
    ],
)
def test_the_owner_that_controls_an_object_is_found(owners: list[OwnerReference], keys: list[Key]):
    assert owned_by(WIDGET)(owned(*owners)) == keys


def test_an_owner_without_namespace_has_a_key_without_one():
    assert owned_by(dataclasses.replace(WIDGET, namespaced=False))(owned(OWNER)) == [Key("", "parent")]


def test_a_kind_of_the_core_is_an_owner_too():
    node = dataclasses.replace(WIDGET, group="", version="v1", kind="Node", namespaced=False)
    assert owned_by(node)(owned(changed(api_version="v1", kind="Node", name="n1"))) == [Key("", "n1")]


class Diary:
    """A controller that notes whom it looked at."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.controller = Controller("diary", self.reconcile)

    async def reconcile(self, key: Key) -> Done | Again:
        self.keys.append(key)
        return Done()


@asynccontextmanager
async def running(*parts: Informer | Controller) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def reference(name: str) -> dict[str, object]:
    return {
        "apiVersion": "test.ingot.dev/v1",
        "kind": "Widget",
        "name": name,
        "uid": "u",
        "controller": True,
    }


async def test_both_owners_are_woken_when_an_object_changes_hands(
    api: ScriptedApi, client: Client, eventually
):
    diary, informer = Diary(), Informer(client, WIDGET)
    follow(diary.controller, informer, owned_by(WIDGET))
    api.put("child", metadata={"ownerReferences": [reference("one")]})
    async with running(informer, diary.controller):
        await eventually(lambda: diary.keys == [Key("default", "one")])
        api.put("child", metadata={"ownerReferences": [reference("two")]})
        await eventually(lambda: len(diary.keys) == 3)
        assert set(diary.keys[1:]) == {Key("default", "one"), Key("default", "two")}
        api.remove("child")
        await eventually(lambda: diary.keys[3:] == [Key("default", "two")])


async def test_those_who_name_an_object_are_woken_by_its_change(api: ScriptedApi, client: Client, eventually):
    def names(widget: Widget) -> Iterable[str]:
        return [f"default/{widget.metadata.labels['names']}"] if widget.metadata.labels else []

    diary, informer = Diary(), Informer(client, WIDGET, indexes={"names": names})
    follow(diary.controller, informer, named_in(informer, "names"))
    api.put("a", metadata={"labels": {"names": "secret"}})
    api.put("b", metadata={"labels": {"names": "secret"}})
    api.put("c", metadata={"labels": {"names": "another"}})
    async with running(informer, diary.controller):
        await informer.synced()
        api.put("secret")
        await eventually(lambda: sorted(diary.keys) == [Key("default", "a"), Key("default", "b")])


async def test_a_change_that_does_not_matter_wakes_nobody(api: ScriptedApi, client: Client, eventually):
    diary, informer = Diary(), Informer(client, WIDGET)
    follow(diary.controller, informer, when=lambda old, new: old.spec.size != new.spec.size)
    api.put("one", 1)
    async with running(informer, diary.controller):
        await eventually(lambda: diary.keys == [Key("default", "one")])
        for _ in range(3):
            api.put("one", 1)
        api.put("two", 5)
        await eventually(lambda: Key("default", "two") in diary.keys)
        assert diary.keys == [Key("default", "one"), Key("default", "two")]
        api.put("one", 2)
        await eventually(lambda: diary.keys[2:] == [Key("default", "one")])
