"""Metadata that the server owns: what a client may say about it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_api import JSON_PATCH, MERGE, STRATEGIC, Answer, Api, a_host

OTHER = "00000000-0000-0000-0000-000000000000"


def refusal(answer: Answer) -> tuple[int, str, set[tuple[str, str]]]:
    causes = answer.body.get("details", {}).get("causes", [])
    return answer.code, answer.body["reason"], {(cause["reason"], cause["field"]) for cause in causes}


@pytest.mark.parametrize(
    ("field", "value"),
    [("uid", OTHER), ("deletionTimestamp", "2026-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 3)],
)
async def test_a_patch_cannot_change_who_an_object_is_or_when_it_ends(
    api: Api, field: str, value: Any
) -> None:
    host = await api.new_host("h1")
    secret = await api.post(api.secrets, {"metadata": {"name": "s"}})
    patch = {"metadata": {field: value}}
    refused = (422, "Invalid", {("FieldValueInvalid", f"metadata.{field}")})
    assert refusal(await api.patch(api.host("h1"), patch)) == refused
    assert refusal(await api.patch(f"{api.secrets}/s", patch, MERGE)) == refused
    assert refusal(await api.patch(f"{api.secrets}/s", patch, STRATEGIC)) == refused
    # The status is written apart; what is said there about the rest is not heard.
    assert (await api.patch(f"{api.host('h1')}/status", patch)).code == 200
    for path, made in ((api.host("h1"), host), (f"{api.secrets}/s", secret)):
        now = (await api.get(path)).body["metadata"]
        assert now["uid"] == made.body["metadata"]["uid"]
        assert not {"deletionTimestamp", "deletionGracePeriodSeconds"} & set(now)


@pytest.mark.parametrize(
    ("field", "value"), [("deletionTimestamp", "2026-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 3)]
)
async def test_a_put_cannot_either(api: Api, field: str, value: Any) -> None:
    host = (await api.new_host("h1")).body
    secret = (await api.post(api.secrets, {"metadata": {"name": "s"}})).body
    for path, body in ((api.host("h1"), host), (f"{api.secrets}/s", secret)):
        body["metadata"][field] = value
        assert refusal(await api.put(path, body)) == (
            422,
            "Invalid",
            {("FieldValueInvalid", f"metadata.{field}")},
        )


@pytest.mark.parametrize("field", ["uid", "creationTimestamp", "generation", "managedFields", "selfLink"])
async def test_what_a_client_leaves_out_or_forgets_stays(api: Api, field: str) -> None:
    made = (await api.new_host("h1")).body["metadata"]
    answer = await api.patch(api.host("h1"), {"metadata": {field: None, "labels": {"a": "b"}}})
    assert answer.code == 200
    for name in ("uid", "creationTimestamp", "generation"):
        assert answer.body["metadata"][name] == made[name]


async def test_an_object_that_ends_says_itself_when(api: Api) -> None:
    await api.post(api.hosts, a_host("h1", finalizers=["example.com/held"]))
    await api.delete(api.host("h1"))
    ends = (await api.get(api.host("h1"))).body["metadata"]["deletionTimestamp"]
    for when in (None, "2020-01-01T00:00:00Z"):
        answer = await api.patch(api.host("h1"), {"metadata": {"deletionTimestamp": when}})
        assert (answer.code, answer.body["metadata"]["deletionTimestamp"]) == (200, ends)
    answer = await api.patch(api.host("h1"), {"metadata": {"deletionGracePeriodSeconds": 7}})
    assert answer.code == 422
    await api.patch(api.host("h1"), {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2020-01-01", "2020-01-01T00:00:00", "2020-13-01T00:00:00Z", "2020-01-01 00:00:00Z", ""],
)
@pytest.mark.parametrize("field", ["creationTimestamp", "deletionTimestamp"])
async def test_a_time_that_is_none_cannot_be_read(api: Api, field: str, text: str) -> None:
    said = {"metadata": {"name": "x", field: text}}
    for path, body in ((api.hosts, {**a_host("x"), **said}), (api.secrets, said)):
        answer = await api.post(path, body)
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    await api.new_host("h1")
    answer = await api.patch(api.host("h1"), {"metadata": {field: text}})
    assert refusal(answer) == (422, "Invalid", {("FieldValueInvalid", "patch")})


async def test_other_times_are_the_servers_own_business(api: Api) -> None:
    for name, text in (("a", "2020-01-01T00:00:00+02:00"), ("b", "2020-01-01T00:00:00.5Z")):
        made = await api.post(api.secrets, {"metadata": {"name": name, "creationTimestamp": text}})
        assert made.code == 201
        assert not made.body["metadata"]["creationTimestamp"].startswith("2020")


@pytest.mark.parametrize("version", ["0", "", None])
async def test_a_custom_kind_insists_on_the_version_that_is_changed(api: Api, version: str | None) -> None:
    made = (await api.new_host("h1")).body
    refused = (422, "Invalid", {("FieldValueInvalid", "metadata.resourceVersion")})
    patch = {"metadata": {"resourceVersion": version}}
    assert refusal(await api.patch(api.host("h1"), patch)) == refused
    assert refusal(await api.patch(f"{api.host('h1')}/status", patch)) == refused
    made["metadata"]["resourceVersion"] = version
    assert refusal(await api.put(api.host("h1"), made)) == refused
    removal = [{"op": "remove", "path": "/metadata/resourceVersion"}]
    assert refusal(await api.patch(api.host("h1"), removal, JSON_PATCH)) == refused


@pytest.mark.parametrize("version", ["0", "", None])
async def test_a_built_in_kind_does_not(api: Api, version: str | None) -> None:
    body = {"metadata": {"name": "s", "resourceVersion": version}}
    await api.post(api.secrets, {"metadata": {"name": "s"}})
    assert (await api.patch(f"{api.secrets}/s", body)).code == 200
    assert (await api.put(f"{api.secrets}/s", body)).code == 200
