"""Foreign clients apply: client-go, the official Python client, lightkube."""

from __future__ import annotations

from pathlib import Path

import pytest
from go_informer import informer
from kubernetes import client, config, dynamic
from kubernetes_api import Api, a_host
from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap


async def test_a_go_controller_applies_what_it_wants(api: Api, kubeconfig: Path) -> None:
    await api.new_host("h1")
    async with informer(kubeconfig, api.namespace) as go:
        applied = (await go.do("apply h1"))["object"]
        assert (applied["spec"]["online"], applied["spec"]["description"]) == (True, "applied")
        assert ("informer", "Apply") in [
            (entry["manager"], entry["operation"]) for entry in applied["metadata"]["managedFields"]
        ]
        assert (await go.do("apply h1"))["object"]["metadata"] == applied["metadata"]
        assert (await go.do("apply other"))["object"]["metadata"]["generation"] == 1


def test_the_official_client_applies(api: Api, kubeconfig: Path, tmp_path: Path) -> None:
    with config.new_client_from_config(str(kubeconfig)) as official:
        check_the_dynamic_client(official, api.namespace, tmp_path)


def check_the_dynamic_client(official: client.ApiClient, namespace: str, tmp_path: Path) -> None:
    found = dynamic.DynamicClient(official, cache_file=str(tmp_path / "discovery"))
    hosts = found.resources.get(api_version="metal3.io/v1alpha1", kind="BareMetalHost")
    here = {"namespace": namespace}
    first = hosts.server_side_apply(body=a_host("h1"), field_manager="one", **here)
    assert first.metadata.managedFields[0].manager == "one"
    other = a_host("h1", spec={"online": True})
    with pytest.raises(dynamic.exceptions.ConflictError):
        hosts.server_side_apply(body=other, field_manager="two", **here)
    taken = hosts.server_side_apply(body=other, field_manager="two", force_conflicts=True, **here)
    assert taken.spec.online is True


Host = create_namespaced_resource("metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts")


def a_light_host(name: str, *, online: bool) -> Host:
    return Host(metadata=ObjectMeta(name=name), spec={"online": online})


def test_lightkube_applies(api: Api, kubeconfig: Path) -> None:
    lightkube = Client(KubeConfig.from_file(kubeconfig), namespace=api.namespace, field_manager="lightkube")
    first = lightkube.apply(a_light_host("h1", online=False))
    assert (first.metadata.generation, first.metadata.managedFields[0].manager) == (1, "lightkube")
    with pytest.raises(ApiError) as refused:
        lightkube.apply(a_light_host("h1", online=True), field_manager="other")
    assert refused.value.status.reason == "Conflict"
    taken = lightkube.apply(a_light_host("h1", online=True), field_manager="other", force=True)
    assert taken.spec["online"] is True
    made = lightkube.apply(
        ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="c"), data={"a": "1"})
    )
    assert made.data == {"a": "1"}
    lightkube.close()
