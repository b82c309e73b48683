"""Several versions of one kind: the same objects, read and written in each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from defined_kinds import Group, a_group, a_version
from kubernetes_api import Api, Kubectl, eventually

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def old(**more: Any) -> dict[str, Any]:
    spec = {"size": {**WHOLE, "default": 1}, "color": TEXT}
    return a_version("v1beta1", storage=False, spec=spec, **more)


def new(**more: Any) -> dict[str, Any]:
    spec = {"size": {**WHOLE, "maximum": 10}, "weight": {**WHOLE, "default": 7}}
    return a_version("v1", **{"storage": True, **more}, spec=spec)


@pytest.fixture
async def group(api: Api) -> AsyncIterator[Group]:
    async with a_group(api) as group:
        yield group


async def test_an_object_is_seen_in_every_served_version_under_one_name_uid_and_version(
    api: Api, group: Group
) -> None:
    await group.define(old(), new())
    body = group.a_widget("w", spec={"size": 3, "weight": 4})
    made = await api.post(group.place("v1"), body)
    assert made.code == 201, made.body
    seen = await api.get(f"{group.place('v1beta1')}/w")
    assert seen.body["apiVersion"] == f"{group.name}/v1beta1"
    for name in ("uid", "resourceVersion", "creationTimestamp", "generation"):
        assert seen.body["metadata"][name] == made.body["metadata"][name]
    listed = (await api.get(group.place("v1beta1"))).body
    assert (listed["apiVersion"], listed["kind"]) == (f"{group.name}/v1beta1", "WidgetList")
    assert [item["apiVersion"] for item in listed["items"]] == [f"{group.name}/v1beta1"]


async def test_each_version_shows_only_the_fields_it_has(api: Api, group: Group) -> None:
    await group.define(old(), new())
    await api.post(group.place("v1"), group.a_widget("w", spec={"size": 3, "weight": 4}))
    assert (await api.get(f"{group.place('v1beta1')}/w")).body["spec"] == {"size": 3}
    assert (await api.get(f"{group.place('v1')}/w")).body["spec"] == {"size": 3, "weight": 4}


async def test_a_write_is_pruned_defaulted_and_checked_by_the_version_it_is_made_in(
    api: Api, group: Group
) -> None:
    await group.define(old(), new())
    body = group.a_widget("w", version="v1beta1", spec={"color": "red", "weight": 4})
    made = await api.post(group.place("v1beta1"), body)
    assert made.code == 201, made.body
    assert made.body["apiVersion"] == f"{group.name}/v1beta1"
    assert made.body["spec"]["size"] == 1
    assert "weight" not in made.body["spec"]
    large = {"spec": {"size": 11}}
    assert (await api.patch(f"{group.place('v1')}/w", large)).code == 422
    assert (await api.patch(f"{group.place('v1beta1')}/w", large)).code == 200


async def test_the_storage_version_keeps_what_it_knows_and_gives_its_defaults(api: Api, group: Group) -> None:
    await group.define(old(), new())
    body = group.a_widget("w", version="v1beta1", spec={"size": 2, "color": "red"})
    assert (await api.post(group.place("v1beta1"), body)).code == 201
    # The storage version knows no colour, so that it is lost; its own default is there for all who read.
    assert (await api.get(f"{group.place('v1')}/w")).body["spec"] == {"size": 2, "weight": 7}
    assert (await api.get(f"{group.place('v1beta1')}/w")).body["spec"] == {"size": 2}


async def test_a_document_of_another_version_than_its_place_is_refused(api: Api, group: Group) -> None:
    await group.define(old(), new())
    done = await api.post(group.place("v1"), group.a_widget("w", version="v1beta1", spec={}))
    assert (done.code, done.body["reason"]) == (400, "BadRequest")


async def test_a_watch_is_in_its_version_whatever_version_writes(api: Api, group: Group) -> None:
    await group.define(old(), new())
    begin = (await api.get(group.place("v1"))).version
    first = await api.watch(group.place("v1"), resourceVersion=begin)
    second = await api.watch(group.place("v1beta1"), resourceVersion=begin)
    await api.post(group.place("v1"), group.a_widget("a", spec={"size": 1}))
    await api.post(group.place("v1beta1"), group.a_widget("b", version="v1beta1", spec={"size": 1}))
    for stream, version in ((first, "v1"), (second, "v1beta1")):
        events = [await stream.next() for _ in range(2)]
        assert [event["object"]["metadata"]["name"] for event in events] == ["a", "b"]
        assert {event["object"]["apiVersion"] for event in events} == {f"{group.name}/{version}"}
        assert all(("weight" in event["object"]["spec"]) is (version == "v1") for event in events)


async def test_a_version_that_is_not_served_is_not_there(api: Api, group: Group) -> None:
    await group.define(a_version("v1beta1", storage=False, served=False, spec={"size": WHOLE}), new())
    found = await api.get(group.place("v1beta1"))
    assert found.code == 404
    listed = (await api.get(f"/apis/{group.name}")).body["versions"]
    assert [version["version"] for version in listed] == ["v1"]


async def test_the_storage_version_need_not_be_served(api: Api, group: Group) -> None:
    await group.define(
        a_version("v1beta1", storage=True, served=False, spec={"size": WHOLE}),
        a_version("v1", storage=False, spec={"size": WHOLE, "weight": WHOLE}),
    )
    made = await api.post(group.place("v1"), group.a_widget("w", spec={"size": 1, "weight": 2}))
    assert made.code == 201, made.body
    assert made.body["apiVersion"] == f"{group.name}/v1"
    assert (await api.get(f"{group.place('v1')}/w")).body["spec"] == {"size": 1}


async def test_clients_of_a_deprecated_version_are_warned(api: Api, group: Group, kubectl: Kubectl) -> None:
    words = "widgets of yesterday; use v1"
    await group.define(
        old(deprecated=True, deprecationWarning=words),
        a_version("v1alpha1", storage=False, deprecated=True, spec={"size": WHOLE}),
        new(),
    )
    body = group.a_widget("w", version="v1beta1", spec={"size": 1})
    made = await api.post(group.place("v1beta1"), body)
    assert made.headers.getall("Warning") == [f'299 - "{words}"']
    for path in (group.place("v1beta1"), f"{group.place('v1beta1')}/w"):
        assert (await api.get(path)).headers.getall("Warning") == [f'299 - "{words}"']
    found = await api.get(group.place("v1alpha1"))
    instead = f"{group.name}/v1alpha1 Widget is deprecated; use {group.name}/v1 Widget"
    assert found.headers.getall("Warning") == [f'299 - "{instead}"']
    assert "Warning" not in (await api.get(group.place("v1"))).headers
    stream = await api.watch(group.place("v1beta1"), resourceVersion=found.version)
    assert stream.response.headers.getall("Warning") == [f'299 - "{words}"']
    assert f"Warning: {words}" in kubectl.run("get", f"widgets.v1beta1.{group.name}").stderr


async def test_discovery_lists_versions_in_the_order_of_kubernetes_and_prefers_the_first(
    api: Api, group: Group
) -> None:
    names = ["v1alpha1", "v2beta1", "foo1", "v1", "v10", "v2", "v1beta2", "v11beta2"]
    spec = {"size": WHOLE}
    await group.define(*(a_version(name, storage=name == "v1", spec=spec) for name in names))
    wanted = ["v10", "v2", "v1", "v11beta2", "v2beta1", "v1beta2", "v1alpha1", "foo1"]
    found = (await api.get(f"/apis/{group.name}")).body
    assert [version["version"] for version in found["versions"]] == wanted
    assert found["preferredVersion"] == {"groupVersion": f"{group.name}/v10", "version": "v10"}
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = (await api.get("/apis", accept=accept)).body["items"]
    mine = next(found for found in groups if found["metadata"]["name"] == group.name)
    assert [version["version"] for version in mine["versions"]] == wanted


async def test_kubectl_takes_the_preferred_version_and_any_other_it_is_told(
    api: Api, group: Group, kubectl: Kubectl
) -> None:
    await group.define(old(), new())
    await api.post(group.place("v1"), group.a_widget("w", spec={"size": 3}))
    path = "-o=jsonpath={.apiVersion}"
    assert kubectl("get", f"widgets.{group.name}", "w", path) == f"{group.name}/v1"
    assert kubectl("get", f"widgets.v1beta1.{group.name}", "w", path) == f"{group.name}/v1beta1"


async def test_objects_of_an_earlier_storage_version_are_read_and_written_in_the_new_one(
    api: Api, group: Group
) -> None:
    await group.define(
        a_version("v1beta1", storage=True, spec={"size": WHOLE}),
        a_version("v1", storage=False, spec={"size": WHOLE, "weight": {**WHOLE, "default": 7}}),
    )
    for name in ("a", "b"):
        body = group.a_widget(name, version="v1beta1", spec={"size": 1})
        assert (await api.post(group.place("v1beta1"), body)).code == 201
    definition = (await api.get(group.definition())).body
    assert definition["status"]["storedVersions"] == ["v1beta1"]
    for version in definition["spec"]["versions"]:
        version["storage"] = version["name"] == "v1"
    changed = await api.patch(group.definition(), {"spec": {"versions": definition["spec"]["versions"]}})
    assert changed.code == 200, changed.body
    assert changed.body["status"]["storedVersions"] == ["v1beta1", "v1"]

    async def in_force() -> bool:
        # A server may need a moment to take up the change; a field that only the new one keeps shows it.
        done = await api.patch(f"{group.place('v1')}/b", {"spec": {"weight": 9}})
        return done.code == 200 and (await api.get(f"{group.place('v1')}/b")).body["spec"].get("weight") == 9

    await eventually(in_force)
    for name in ("a", "b"):
        seen = (await api.get(f"{group.place('v1')}/{name}")).body
        assert (seen["apiVersion"], seen["spec"]["size"]) == (f"{group.name}/v1", 1)
        assert (await api.get(f"{group.place('v1beta1')}/{name}")).body["spec"] == {"size": 1}


async def test_a_version_that_objects_may_still_be_kept_in_cannot_be_dropped(api: Api, group: Group) -> None:
    await group.define(a_version("v1beta1", spec={"size": WHOLE}))
    only = [a_version("v1", spec={"size": WHOLE})]
    refused = await api.patch(group.definition(), {"spec": {"versions": only}})
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert refused.body["details"]["causes"][0]["field"] == "status.storedVersions[0]"
    both = [a_version("v1beta1", storage=False, spec={"size": WHOLE}), *only]
    assert (await api.patch(group.definition(), {"spec": {"versions": both}})).code == 200
    assert (await api.patch(group.definition(), {"spec": {"versions": only}})).code == 422
    migrated = await api.patch(f"{group.definition()}/status", {"status": {"storedVersions": ["v1"]}})
    assert migrated.code == 200, migrated.body
    assert (await api.patch(group.definition(), {"spec": {"versions": only}})).code == 200


async def test_fields_can_be_selected_by_as_each_version_says(api: Api, group: Group) -> None:
    await group.define(
        a_version("v1beta1", storage=False, spec={"color": TEXT}),
        a_version("v1", spec={"color": TEXT, "size": WHOLE}, selectableFields=[{"jsonPath": ".spec.color"}]),
    )
    for name, color in (("a", "red"), ("b", "blue")):
        await api.post(group.place("v1"), group.a_widget(name, spec={"color": color}))
    found = await api.get(group.place("v1"), fieldSelector="spec.color=red")
    assert [item["metadata"]["name"] for item in found.body["items"]] == ["a"]
    refused = await api.get(group.place("v1beta1"), fieldSelector="spec.color=red")
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")
    begin = found.version
    stream = await api.watch(group.place("v1"), resourceVersion=begin, fieldSelector="spec.color=red")
    await api.patch(f"{group.place('v1')}/b", {"spec": {"color": "red"}})
    async with asyncio.timeout(60):
        assert await stream.names(1) == [("ADDED", "b")]


async def test_a_conversion_that_needs_nothing_but_another_name_is_all_there_is_by_default(
    api: Api, group: Group
) -> None:
    made = await group.define(old(), new())
    assert made.body["spec"]["conversion"] == {"strategy": "None"}
