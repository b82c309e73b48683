"""A foreign client: the official Python client, with its typed, custom-object and dynamic faces, and its informer."""

from __future__ import annotations

import asyncio
import base64
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cuttable_line import line_to
from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer
from kubernetes_api import Api, a_host, a_status, eventually

OURS = ("metal3.io", "v1alpha1")


@pytest.fixture
def official(api: Api, kubeconfig: Path) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(kubeconfig)) as made:
        yield made


def names(items: list[Any]) -> list[str]:
    return [item.metadata.name for item in items]


def test_the_typed_client_works_on_built_in_kinds(api: Api, official: client.ApiClient) -> None:
    core, here = client.CoreV1Api(official), api.namespace
    for number in range(5):
        body = client.V1Secret(metadata={"name": f"s{number}"}, string_data={"k": str(number)})
        made = core.create_namespaced_secret(here, body)
        assert made.type == "Opaque"
    first = core.list_namespaced_secret(here, limit=2)
    assert first.metadata.remaining_item_count == 3
    second = core.list_namespaced_secret(here, limit=3, _continue=first.metadata._continue)
    assert names(first.items + second.items) == ["s0", "s1", "s2", "s3", "s4"]
    patched = core.patch_namespaced_secret("s0", here, {"metadata": {"labels": {"a": "b"}}})
    assert patched.metadata.labels == {"a": "b"}
    assert names(core.list_namespaced_secret(here, label_selector="a=b").items) == ["s0"]
    patched.data["k"] = base64.b64encode(b"new").decode()
    assert core.replace_namespaced_secret("s0", here, patched).data["k"] == "bmV3"
    patched.metadata.resource_version = made.metadata.resource_version
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_secret("s0", here, patched)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    core.delete_namespaced_secret("s0", here)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_secret("s0", here)
    assert gone.value.status == 404
    core.delete_collection_namespaced_secret(here)
    assert core.list_namespaced_secret(here).items == []


def test_the_custom_objects_client_works_on_our_kinds(api: Api, official: client.ApiClient) -> None:
    custom, here = client.CustomObjectsApi(official), (*OURS, api.namespace, "baremetalhosts")
    made = custom.create_namespaced_custom_object(*here, a_host("h1"))
    assert made["spec"]["automatedCleaningMode"] == "metadata"
    custom.create_namespaced_custom_object(*here, a_host("h2"))
    page = custom.list_namespaced_custom_object(*here, limit=1)
    assert [item["metadata"]["name"] for item in page["items"]] == ["h1"]
    assert page["metadata"]["continue"]
    patched = custom.patch_namespaced_custom_object(*here, "h1", {"spec": {"online": True}})
    assert patched["metadata"]["generation"] == 2
    status = custom.patch_namespaced_custom_object_status(*here, "h1", {"status": a_status("available")})
    assert status["status"]["provisioning"]["state"] == "available"
    whole = custom.get_namespaced_custom_object(*here, "h1")
    whole["metadata"]["labels"] = {"rack": "a"}
    custom.replace_namespaced_custom_object(*here, "h1", whole)
    assert len(custom.list_namespaced_custom_object(*here, label_selector="rack=a")["items"]) == 1
    assert custom.delete_namespaced_custom_object(*here, "h1")["status"] == "Success"
    assert [i["metadata"]["name"] for i in custom.list_namespaced_custom_object(*here)["items"]] == ["h2"]


async def test_the_watch_goes_on_through_changes(api: Api, official: client.ApiClient) -> None:
    watcher, seen = watch.Watch(), []
    await api.new_host("h1")

    def look() -> None:
        custom = client.CustomObjectsApi(official)
        for event in watcher.stream(
            custom.list_namespaced_custom_object, *OURS, api.namespace, "baremetalhosts"
        ):
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if event["type"] == "DELETED":
                watcher.stop()

    looking = asyncio.create_task(asyncio.to_thread(look))

    async def saw_the_first() -> bool:
        return bool(seen)

    await eventually(saw_the_first)
    await api.patch(api.host("h1"), {"spec": {"online": True}})
    await api.new_host("h2")
    await api.delete(api.host("h2"))
    await looking
    assert seen == [("ADDED", "h1"), ("MODIFIED", "h1"), ("ADDED", "h2"), ("DELETED", "h2")]


def test_the_dynamic_client_finds_our_kinds_by_itself(
    api: Api, official: client.ApiClient, tmp_path: Path
) -> None:
    found = dynamic.DynamicClient(official, cache_file=str(tmp_path / "discovery"))
    hosts = found.resources.get(api_version="metal3.io/v1alpha1", kind="BareMetalHost")
    assert (hosts.name, hosts.short_names, hosts.namespaced) == ("baremetalhosts", ["bmh", "bmhost"], True)
    here = {"namespace": api.namespace}
    made = hosts.create(body=a_host("h1", finalizers=["x.y/z"]), **here)
    assert made.metadata.generation == 1
    merge = {"content_type": "application/merge-patch+json", **here}
    assert hosts.patch(body=a_host("h1", spec={"online": True}), **merge).spec.online is True
    hosts.status.patch(body={**a_host("h1"), "status": a_status("inspecting")}, name="h1", **merge)
    assert hosts.get(name="h1", **here).status.provisioning.state == "inspecting"
    assert names(hosts.get(**here).items) == ["h1"]
    assert hosts.delete(name="h1", **here).metadata.deletionTimestamp
    hosts.patch(body={"metadata": {"name": "h1", "finalizers": None}}, **merge)
    with pytest.raises(dynamic.exceptions.NotFoundError):
        hosts.get(name="h1", **here)


async def test_the_informer_keeps_its_cache_true_although_its_line_is_cut(
    api: Api, kubeconfig: Path, tmp_path: Path
) -> None:
    await api.post(api.secrets, {"metadata": {"name": "goes"}})
    events: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()

    def told(kind: str) -> Any:
        return lambda thing: events.put((kind, thing.metadata.name))

    async with line_to(kubeconfig, tmp_path) as (line, detour):
        with config.new_client_from_config(str(detour)) as official:
            core = client.CoreV1Api(official)
            informer = SharedInformer(core.list_namespaced_secret, namespace=api.namespace)
            for kind in (ADDED, MODIFIED, DELETED):
                informer.add_event_handler(kind, told(kind))

            async def holds(*wanted: str) -> None:
                async def so() -> bool:
                    return sorted(names(informer.cache.list())) == sorted(wanted)

                await eventually(so)

            informer.start()
            try:
                await holds("goes")
                await api.post(api.secrets, {"metadata": {"name": "comes"}})
                await holds("goes", "comes")
                line.cut()
                await api.delete(f"{api.secrets}/goes")
                await api.post(api.secrets, {"metadata": {"name": "late"}})
                await holds("comes", "late")
            finally:
                informer.stop()
                line.cut()
    seen = {events.get_nowait() for _ in range(events.qsize())}
    assert {("ADDED", "goes"), ("ADDED", "comes"), ("ADDED", "late"), ("DELETED", "goes")} <= seen
