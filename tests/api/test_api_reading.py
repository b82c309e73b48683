"""Lists, pages, selectors, tables, metadata-only reads, discovery."""

from __future__ import annotations

import pytest
from kubernetes_api import HOSTS, Api, a_status

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def names(body: dict) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


async def three_racks(api: Api) -> None:
    await api.new_host("h1", labels={"rack": "a", "n": "1"})
    await api.new_host("h2", labels={"rack": "b", "n": "2"})
    await api.new_host("h3")


async def test_a_list_has_a_kind_a_version_and_items_in_order(api: Api) -> None:
    for name in ("b", "c", "a"):
        await api.new_host(name)
    answer = (await api.get(api.hosts)).body
    assert (answer["kind"], answer["apiVersion"]) == ("BareMetalHostList", "metal3.io/v1alpha1")
    assert names(answer) == ["a", "b", "c"]
    assert int(answer["metadata"]["resourceVersion"]) >= int(
        answer["items"][-1]["metadata"]["resourceVersion"]
    )


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("rack=a", ["h1"]),
        ("rack==b", ["h2"]),
        ("rack!=a", ["h2", "h3"]),
        ("rack in (a, b)", ["h1", "h2"]),
        ("rack notin (a)", ["h2", "h3"]),
        ("rack", ["h1", "h2"]),
        ("!rack", ["h3"]),
        ("rack,n=2", ["h2"]),
        ("n>1", ["h2"]),
        ("n<2", ["h1"]),
    ],
)
async def test_label_selectors(api: Api, selector: str, found: list[str]) -> None:
    await three_racks(api)
    assert names((await api.get(api.hosts, labelSelector=selector)).body) == found


@pytest.mark.parametrize("selector", ["rack=a=b", "=a", "rack in a", "a b", "rack=(a)"])
async def test_a_selector_that_is_none_is_a_bad_request(api: Api, selector: str) -> None:
    assert (await api.get(api.hosts, labelSelector=selector)).code == 400


async def test_field_selectors_find_by_name_and_refuse_what_they_do_not_know(api: Api) -> None:
    await three_racks(api)
    assert names((await api.get(api.hosts, fieldSelector="metadata.name=h2")).body) == ["h2"]
    assert names((await api.get(api.hosts, fieldSelector="metadata.name!=h2")).body) == ["h1", "h3"]
    assert (await api.get(api.hosts, fieldSelector="spec.nothing=1")).code == 400


async def test_events_are_found_by_the_object_they_are_about(api: Api) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/events"
    for about, kind in (("h1", "BareMetalHost"), ("h2", "BareMetalHost"), ("h1", "Secret")):
        body = {
            "metadata": {"generateName": "e."},
            "involvedObject": {"kind": kind, "name": about, "namespace": api.namespace},
            "reason": "Registered",
            "message": "told",
            "type": "Normal",
        }
        assert (await api.post(path, body)).code == 201
    found = await api.get(path, fieldSelector="involvedObject.name=h1,involvedObject.kind=BareMetalHost")
    assert [event["involvedObject"]["name"] for event in found.body["items"]] == ["h1"]
    elsewhere = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Secret", "name": "x", "namespace": "other"},
    }
    assert (await api.post(path, elsewhere)).code == 422


async def test_pages_show_the_list_as_it_was_when_the_first_was_read(api: Api) -> None:
    for number in range(7):
        await api.new_host(f"h{number}")
    first = (await api.get(api.hosts, limit=3)).body
    assert names(first) == ["h0", "h1", "h2"]
    assert first["metadata"]["remainingItemCount"] == 4
    # All of this happens after the snapshot, so the pages that follow do not show it.
    await api.delete(api.host("h4"))
    await api.new_host("h3x")
    await api.patch(api.host("h5"), {"metadata": {"labels": {"late": "yes"}}})
    second = (await api.get(api.hosts, limit=3, **{"continue": first["metadata"]["continue"]})).body
    assert names(second) == ["h3", "h4", "h5"]
    assert "labels" not in second["items"][2]["metadata"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = (await api.get(api.hosts, limit=3, **{"continue": second["metadata"]["continue"]})).body
    assert names(third) == ["h6"]
    assert not third["metadata"].get("continue")


async def test_a_page_with_a_selector_counts_matches_only(api: Api) -> None:
    for number in range(6):
        await api.new_host(f"h{number}", labels={"even": str(number % 2 == 0).lower()})
    first = (await api.get(api.hosts, limit=2, labelSelector="even=true")).body
    token = {"continue": first["metadata"]["continue"]}
    second = (await api.get(api.hosts, limit=2, labelSelector="even=true", **token)).body
    assert names(first) + names(second) == ["h0", "h2", "h4"]


async def test_a_continue_token_that_is_none_is_a_bad_request(api: Api) -> None:
    assert (await api.get(api.hosts, **{"continue": "bm9uc2Vuc2U"})).code == 400


async def test_a_list_over_all_namespaces_includes_ours(api: Api) -> None:
    await api.new_host("h1")
    found = (await api.get(f"{HOSTS}/baremetalhosts")).body["items"]
    assert (api.namespace, "h1") in [(i["metadata"]["namespace"], i["metadata"]["name"]) for i in found]


async def test_metadata_only_reads_hold_no_values(api: Api) -> None:
    await api.post(
        api.secrets, {"metadata": {"name": "s", "labels": {"a": "b"}}, "stringData": {"k": "hidden"}}
    )
    one = (await api.get(f"{api.secrets}/s", accept=METADATA)).body
    assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert one["metadata"]["labels"] == {"a": "b"}
    assert set(one) == {"kind", "apiVersion", "metadata"}
    listed = (await api.get(api.secrets, accept=METADATA_LIST)).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [set(item) for item in listed["items"]] == [{"kind", "apiVersion", "metadata"}]


async def test_a_table_has_the_columns_of_the_kind_and_a_row_an_object(api: Api) -> None:
    await api.new_host("h1", spec={"online": True, "consumerRef": {"name": "m1", "kind": "Machine"}})
    await api.patch(f"{api.host('h1')}/status", {"status": a_status("provisioned")})
    table = (await api.get(api.hosts, accept=TABLE)).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = {column["name"]: column for column in table["columnDefinitions"]}
    cells = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    assert (cells["Name"], cells["State"], cells["Consumer"]) == ("h1", "provisioned", "m1")
    assert cells["Age"].endswith("s")
    assert columns["BMC"]["priority"] == 1
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = (await api.get(api.hosts, accept=TABLE, includeObject="Object")).body
    assert whole["rows"][0]["object"]["spec"]["online"] is True


async def test_built_in_kinds_have_columns_too(api: Api) -> None:
    await api.post(api.secrets, {"metadata": {"name": "s"}, "stringData": {"a": "1", "b": "2"}})
    table = (await api.get(api.secrets, accept=TABLE)).body
    cells = dict(zip((c["name"] for c in table["columnDefinitions"]), table["rows"][0]["cells"], strict=True))
    assert (cells["Name"], cells["Type"], cells["Data"]) == ("s", "Opaque", 2)


async def test_a_representation_that_is_not_served_is_not_acceptable(api: Api) -> None:
    assert (await api.get(api.hosts, accept="text/html")).code == 406


@pytest.mark.parametrize(
    "accept", ["application/json", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"]
)
async def test_discovery_tells_of_our_kinds_in_either_form(api: Api, accept: str) -> None:
    answer = await api.get("/apis", accept=accept)
    if answer.body["kind"] == "APIGroupDiscoveryList":
        assert "as=APIGroupDiscoveryList" in answer.headers["Content-Type"]
        group = next(item for item in answer.body["items"] if item["metadata"]["name"] == "metal3.io")
        found = next(r for r in group["versions"][0]["resources"] if r["resource"] == "baremetalhosts")
        assert found["responseKind"]["kind"] == "BareMetalHost"
        assert found["subresources"][0]["subresource"] == "status"
    else:
        assert "metal3.io" in [group["name"] for group in answer.body["groups"]]
        resources = (await api.get(HOSTS)).body["resources"]
        assert {"baremetalhosts", "baremetalhosts/status"} <= {resource["name"] for resource in resources}
        found = next(r for r in resources if r["name"] == "baremetalhosts")
    assert "bmh" in found["shortNames"]
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(found["verbs"])


async def test_the_core_group_is_discovered_too(api: Api) -> None:
    assert (await api.get("/api")).body["versions"] == ["v1"]
    assert {"namespaces", "secrets", "events"} <= {
        r["name"] for r in (await api.get("/api/v1")).body["resources"]
    }


async def test_openapi_describes_our_kinds(api: Api) -> None:
    index = (await api.get("/openapi/v3")).body["paths"]
    place = index["apis/metal3.io/v1alpha1"]["serverRelativeURL"]
    document = (await api.get(place)).body
    schema = next(
        schema
        for schema in document["components"]["schemas"].values()
        if {"group": "metal3.io", "version": "v1alpha1", "kind": "BareMetalHost"}
        in schema.get("x-kubernetes-group-version-kind", [])
    )
    assert schema["properties"]["spec"]["properties"]["online"]["description"]
    path = document["paths"]["/apis/metal3.io/v1alpha1/namespaces/{namespace}/baremetalhosts"]
    assert "fieldValidation" in [parameter["name"] for parameter in path["post"]["parameters"]]


async def test_a_path_that_is_none_is_not_found(api: Api) -> None:
    for path in ("/nothing", "/apis/metal3.io/v1alpha1/nothing", "/apis/nothing.io/v1/things"):
        assert (await api.get(path)).code == 404, path


async def test_a_subresource_that_is_none_is_a_status(api: Api) -> None:
    await api.new_host("h1")
    answer = await api.get(f"{api.host('h1')}/nothing")
    assert (answer.code, answer.body["kind"], answer.body["reason"]) == (404, "Status", "NotFound")
