"""Discovery: what this API serves, and which one it is, in every form that clients ask for."""

from __future__ import annotations

import pytest
from kubernetes_api import HOSTS, Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KUBECTL = (
    f"{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


@pytest.mark.parametrize("path", ["/version", "/version/"])
async def test_the_version_is_that_of_a_kubernetes_that_clients_know(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert answer.code == 200
    assert answer.body["major"] == "1"
    assert answer.body["gitVersion"].startswith(f"v1.{answer.body['minor']}.")


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_what_kubectl_asks_for_is_answered_at_once_for_all_groups(api: Api, path: str) -> None:
    answer = await api.get(path, accept=KUBECTL)
    assert answer.headers["Content-Type"] == AGGREGATED
    assert (answer.body["kind"], answer.body["apiVersion"]) == (
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )
    again = await api.get(path, accept=KUBECTL, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.code == 304


async def test_aggregated_discovery_says_the_same_as_the_documents_of_each_group(api: Api) -> None:
    listed = (await api.get("/apis", accept=AGGREGATED)).body["items"]
    versions = next(item for item in listed if item["metadata"]["name"] == "metal3.io")["versions"]
    assert [version["version"] for version in versions] == ["v1alpha1"]
    together = {r["resource"]: r for r in versions[0]["resources"]}
    apart = {r["name"]: r for r in (await api.get(HOSTS)).body["resources"]}
    assert set(together) == {name for name in apart if "/" not in name}
    for name, resource in together.items():
        one = apart[name]
        assert resource["responseKind"]["kind"] == one["kind"]
        assert resource["scope"] == ("Namespaced" if one["namespaced"] else "Cluster")
        assert resource["singularResource"] == one["singularName"]
        assert set(resource["verbs"]) == set(one["verbs"])
        assert resource.get("shortNames") == one.get("shortNames")
        assert resource.get("categories") == one.get("categories")
        subresources = {f"{name}/{part['subresource']}" for part in resource.get("subresources", ())}
        assert subresources == {other for other in apart if other.startswith(f"{name}/")}


async def test_each_group_and_version_has_a_document_of_its_own(api: Api) -> None:
    core = (await api.get("/api")).body
    assert (core["kind"], core["versions"]) == ("APIVersions", ["v1"])
    groups = (await api.get("/apis")).body
    assert (groups["kind"], groups["apiVersion"]) == ("APIGroupList", "v1")
    ours = next(group for group in groups["groups"] if group["name"] == "metal3.io")
    assert ours["preferredVersion"] == {"groupVersion": "metal3.io/v1alpha1", "version": "v1alpha1"}
    group = (await api.get("/apis/metal3.io")).body
    assert (group["kind"], group["name"]) == ("APIGroup", "metal3.io")
    assert group["versions"] == ours["versions"]
    resources = (await api.get(HOSTS)).body
    assert (resources["kind"], resources["groupVersion"]) == ("APIResourceList", "metal3.io/v1alpha1")
    hosts = next(r for r in resources["resources"] if r["name"] == "baremetalhosts")
    assert (hosts["singularName"], hosts["namespaced"], hosts["kind"]) == (
        "baremetalhost",
        True,
        "BareMetalHost",
    )
    status = next(r for r in resources["resources"] if r["name"] == "baremetalhosts/status")
    assert set(status["verbs"]) == {"get", "patch", "update"}


@pytest.mark.parametrize(
    "accept", ["text/html", "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"]
)
async def test_a_form_of_discovery_that_nobody_knows_is_not_acceptable(api: Api, accept: str) -> None:
    answer = await api.get("/apis", accept=accept)
    assert (answer.code, answer.body["reason"]) == (406, "NotAcceptable")


async def test_openapi_documents_can_be_kept_for_as_long_as_their_hash_holds(api: Api) -> None:
    place = (await api.get("/openapi/v3")).body["paths"]["apis/metal3.io/v1alpha1"]["serverRelativeURL"]
    assert place.startswith("/openapi/v3/apis/metal3.io/v1alpha1?hash=")
    answer = await api.get(place)
    assert answer.code == 200
    assert "immutable" in answer.headers["Cache-Control"]
    same = await api.get(place, headers={"If-None-Match": answer.headers["ETag"]})
    assert same.code == 304
    assert (await api.get("/openapi/v3/apis/nothing.io/v1")).code == 404


async def test_openapi_has_a_document_for_each_version_that_is_served(api: Api) -> None:
    paths = set((await api.get("/openapi/v3")).body["paths"])
    assert {"api/v1", "apis/metal3.io/v1alpha1", "apis/ironic.metal3.io/v1alpha1"} <= paths
    core = (await api.get("/openapi/v3/api/v1")).body
    post = core["paths"]["/api/v1/namespaces/{namespace}/secrets"]["post"]
    assert post["x-kubernetes-action"] == "post"
    assert post["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Secret"}


@pytest.mark.parametrize("check", ["livez", "readyz", "healthz"])
async def test_health_says_ok_and_with_verbose_why(api: Api, check: str) -> None:
    assert (await api.get(f"/{check}")).body == "ok"
    verbose = await api.get(f"/{check}", verbose="")
    assert "[+]ping ok\n" in verbose.body
    assert verbose.body.endswith(f"{check} check passed\n")


async def test_metrics_are_for_those_who_are_known(api: Api) -> None:
    assert "apiserver_request_total" in (await api.get("/metrics")).body
    assert (await api.get("/metrics", headers={"Authorization": ""})).code == 401
