"""Patches that cannot be applied, and strategic patches, which merge what the schema says."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_api import JSON_PATCH, MERGE, STRATEGIC, Api

JSON = "application/json"


@pytest.mark.parametrize(
    ("patch", "type_", "code", "reason"),
    [
        (b'{"spec":', MERGE, 400, "BadRequest"),
        (b"[1]", MERGE, 400, "BadRequest"),
        (b'"x"', MERGE, 400, "BadRequest"),
        (b"[", JSON_PATCH, 400, "BadRequest"),
        (b"{}", JSON_PATCH, 400, "BadRequest"),
        (b"[1]", JSON_PATCH, 400, "BadRequest"),
        (b'[{"op":"test","path":"/spec/online","value":"x"}]', JSON_PATCH, 422, "Invalid"),
        (b'[{"op":"remove","path":"/spec/nope"}]', JSON_PATCH, 422, "Invalid"),
        (b'[{"op":"zap","path":"/spec/online"}]', JSON_PATCH, 422, "Invalid"),
        (b'[{"op":"add","path":"/spec/nope/x","value":1}]', JSON_PATCH, 422, "Invalid"),
        (b'[{"op":"add"}]', JSON_PATCH, 422, "Invalid"),
        (b'[{"op":"add","path":"","value":1}]', JSON_PATCH, 422, "Invalid"),
        (b"{}", STRATEGIC, 415, "UnsupportedMediaType"),
        (b"{}", JSON, 415, "UnsupportedMediaType"),
        (b"{}", "text/plain", 415, "UnsupportedMediaType"),
        (b'{"metadata":{"name":"other"}}', MERGE, 400, "BadRequest"),
        (b'{"metadata":{"labels":"x"}}', MERGE, 422, "Invalid"),
        (b'{"spec":{"online":"x"}}', MERGE, 422, "Invalid"),
    ],
)
async def test_a_patch_that_cannot_be_applied_is_refused_and_changes_nothing(
    api: Api, patch: bytes, type_: str, code: int, reason: str
) -> None:
    made = await api.new_host("h1", spec={"online": True})
    answer = await api.patch(api.host("h1"), patch, type_)
    assert (answer.code, answer.body["reason"]) == (code, reason), answer.body
    assert (await api.get(api.host("h1"))).body == made.body


async def test_replacing_what_is_not_there_adds_it(api: Api) -> None:
    await api.new_host("h1", spec={"online": True})
    patch = [{"op": "replace", "path": "/spec/description", "value": "x"}]
    assert (await api.patch(api.host("h1"), patch, JSON_PATCH)).body["spec"]["description"] == "x"


async def test_whether_there_is_something_to_patch_comes_before_the_patch(api: Api) -> None:
    for type_ in (MERGE, JSON_PATCH):
        assert (await api.patch(api.host("nobody"), b'{"spec":', type_)).code == 404


async def test_the_accepted_formats_are_named(api: Api) -> None:
    await api.new_host("h1")
    post = await api.post(api.hosts, b"{}", type_="text/plain")
    patch = await api.patch(api.host("h1"), b"{}", "text/plain")
    assert "application/json, application/yaml" in post.body["message"]
    assert (
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        in (patch.body["message"])
    )


# Strategic patches


def a_service(*ports: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "finalizers": ["example.com/a", "example.com/b"]},
        "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": list(ports)},
    }


@pytest.mark.parametrize(
    ("patch", "ports", "finalizers", "selector"),
    [
        ({"spec": {"ports": [{"port": 2, "name": "z"}]}}, "1x 2z 3y", "ab", {"a": "b"}),
        ({"spec": {"ports": [{"port": 4, "name": "n"}]}}, "4n 1x 2w 3y", "ab", {"a": "b"}),
        ({"spec": {"ports": [{"port": 2, "$patch": "delete"}]}}, "1x 3y", "ab", {"a": "b"}),
        ({"spec": {"ports": [{"port": 9, "name": "n"}, {"$patch": "replace"}]}}, "9n", "ab", {"a": "b"}),
        (
            {"spec": {"$setElementOrder/ports": [{"port": 3}, {"port": 1}, {"port": 2}]}},
            "3y 1x 2w",
            "ab",
            {"a": "b"},
        ),
        ({"metadata": {"finalizers": ["example.com/c"]}}, "1x 2w 3y", "cab", {"a": "b"}),
        (
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
            "1x 2w 3y",
            "b",
            {"a": "b"},
        ),
        ({"spec": {"selector": {"c": "d"}}}, "1x 2w 3y", "ab", {"a": "b", "c": "d"}),
        ({"spec": {"selector": {"$patch": "replace", "c": "d"}}}, "1x 2w 3y", "ab", {"c": "d"}),
        ({"spec": {"selector": {"a": None, "c": "d"}}}, "1x 2w 3y", "ab", {"c": "d"}),
        ({"spec": {"selector": {"$retainKeys": ["c"], "c": "d"}}}, "1x 2w 3y", "ab", {"c": "d"}),
    ],
)
async def test_a_strategic_patch_merges_what_the_schema_says(
    api: Api, patch: Any, ports: str, finalizers: str, selector: Any
) -> None:
    path = f"/api/v1/namespaces/{api.namespace}/services"
    service = a_service({"port": 1, "name": "x"}, {"port": 2, "name": "w"}, {"port": 3, "name": "y"})
    assert (await api.post(path, service)).code == 201
    answer = await api.patch(f"{path}/s", patch, STRATEGIC)
    assert answer.code == 200, answer.body
    await api.patch(f"{path}/s", {"metadata": {"finalizers": None}})
    assert " ".join(f"{port['port']}{port['name']}" for port in answer.body["spec"]["ports"]) == ports
    assert "".join(name[-1] for name in answer.body["metadata"]["finalizers"]) == finalizers
    assert answer.body["spec"]["selector"] == selector
