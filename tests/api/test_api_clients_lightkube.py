"""A foreign client: lightkube, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from kubernetes_api import Api, a_status
from lightkube import ApiError, AsyncClient, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret
from lightkube.types import PatchType

Host = create_namespaced_resource("metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts")


@pytest.fixture
def lightkube(api: Api, kubeconfig: Path) -> Iterator[Client]:
    made = Client(KubeConfig.from_file(kubeconfig), namespace=api.namespace, field_manager="lightkube")
    yield made
    made.close()


@pytest.fixture
async def lightkube_async(api: Api, kubeconfig: Path) -> AsyncIterator[AsyncClient]:
    made = AsyncClient(KubeConfig.from_file(kubeconfig), namespace=api.namespace)
    yield made
    await made.close()


def a_light_host(name: str, **spec: object) -> Host:
    return Host(metadata=ObjectMeta(name=name), spec={"online": False, **spec})


def test_lightkube_creates_lists_changes_and_deletes(lightkube: Client) -> None:
    for number in range(5):
        made = lightkube.create(a_light_host(f"h{number}"))
        assert made.metadata.generation == 1
    listed = [host.metadata.name for host in lightkube.list(Host, chunk_size=2)]
    assert listed == ["h0", "h1", "h2", "h3", "h4"]
    patched = lightkube.patch(Host, "h1", {"spec": {"online": True}}, patch_type=PatchType.MERGE)
    assert patched.spec["online"] is True
    operations = [{"op": "replace", "path": "/spec/online", "value": False}]
    assert lightkube.patch(Host, "h1", operations, patch_type=PatchType.JSON).spec["online"] is False
    lightkube.set(Host, "h1", labels={"rack": "a"})
    assert [host.metadata.name for host in lightkube.list(Host, labels={"rack": "a"})] == ["h1"]
    assert len(list(lightkube.list(Host, fields={"metadata.name": "h2"}))) == 1
    host = lightkube.get(Host, "h1")
    host["status"] = a_status("available")
    replaced = lightkube.replace(Host.Status(host), "h1")
    assert replaced.status["provisioning"]["state"] == "available"
    lightkube.delete(Host, "h1")
    with pytest.raises(ApiError) as gone:
        lightkube.get(Host, "h1")
    assert (gone.value.status.code, gone.value.status.reason) == (404, "NotFound")
    lightkube.deletecollection(Host)
    assert list(lightkube.list(Host)) == []


def test_lightkube_patches_built_in_kinds_strategically(lightkube: Client) -> None:
    made = lightkube.create(Secret(metadata=ObjectMeta(name="s"), stringData={"a": "1"}))
    assert made.data == {"a": "MQ=="}
    assert lightkube.patch(Secret, "s", {"stringData": {"b": "2"}}).data == {"a": "MQ==", "b": "Mg=="}
    with pytest.raises(ApiError) as again:
        lightkube.create(Secret(metadata=ObjectMeta(name="s")))
    assert again.value.status.reason == "AlreadyExists"


async def test_lightkube_watches_and_waits(api: Api, lightkube_async: AsyncClient) -> None:
    await api.new_host("h1")

    async def look() -> list[tuple[str, str]]:
        seen = []
        async for kind, host in lightkube_async.watch(Host):
            seen.append((kind, host.metadata.name))
            if kind == "ADDED" and host.metadata.name == "h1":
                await api.patch(api.host("h1"), {"spec": {"online": True}})
                await api.delete(api.host("h1"))
            if kind == "DELETED":
                break
        return seen

    async with asyncio.timeout(60):
        assert await look() == [("ADDED", "h1"), ("MODIFIED", "h1"), ("DELETED", "h1")]
        await api.new_host("h2")
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "Available",
            "message": "it is there",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"status": a_status("available", conditions=[condition])}
        waiting = asyncio.create_task(lightkube_async.wait(Host, "h2", for_conditions=["Ready"]))
        await api.patch(f"{api.host('h2')}/status", status)
        assert (await waiting).status["conditions"][0]["reason"] == "Available"
