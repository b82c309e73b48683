"""Options: what lists, watches, writes and deletes can be asked to do, and what they refuse to understand.

Who asks for something that cannot be is told which option is wrong, in the words of Kubernetes, before anything happens.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubernetes_api import HOSTS, MERGE, STRATEGIC, Answer, Api, a_host

FORBIDDEN, UNSUPPORTED, INVALID = "FieldValueForbidden", "FieldValueNotSupported", "FieldValueInvalid"


def causes(answer: Answer) -> set[tuple[str, str]]:
    assert (answer.code, answer.body["reason"]) == (422, "Invalid"), answer.body
    return {(cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]}


# Lists and watches


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"resourceVersionMatch": "NotOlderThan"}, ("resourceVersionMatch", FORBIDDEN)),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, ("resourceVersionMatch", FORBIDDEN)),
        ({"resourceVersionMatch": "Near", "resourceVersion": "1"}, ("resourceVersionMatch", UNSUPPORTED)),
        ({"sendInitialEvents": "true"}, ("sendInitialEvents", FORBIDDEN)),
        ({"watch": "true", "sendInitialEvents": "true"}, ("resourceVersionMatch", FORBIDDEN)),
        ({"watch": "true", "resourceVersionMatch": "NotOlderThan"}, ("resourceVersionMatch", FORBIDDEN)),
        (
            {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            ("resourceVersionMatch", UNSUPPORTED),
        ),
    ],
)
async def test_options_that_contradict_each_other_are_invalid(
    api: Api, options: dict[str, str], cause: tuple[str, str]
) -> None:
    answer = await api.get(api.hosts, **options)
    assert cause in causes(answer)
    assert answer.body["message"].startswith('ListOptions.meta.k8s.io "" is invalid: ')


@pytest.mark.parametrize(
    "options",
    [
        {"resourceVersion": "abc"},
        {"limit": "many"},
        {"timeoutSeconds": "soon"},
        {"continue": "bm9uc2Vuc2U"},
        {"labelSelector": "a=b,,c"},
        {"labelSelector": ","},
        {"labelSelector": "a>x"},
        {"labelSelector": "-a=b"},
        {"labelSelector": "a=" + "b" * 64},
        {"labelSelector": "a in (b"},
        {"fieldSelector": "metadata.name"},
        {"fieldSelector": "metadata.name=a=b"},
        {"fieldSelector": "metadata.uid=1"},
    ],
)
async def test_options_that_cannot_be_read_are_bad_requests(api: Api, options: dict[str, str]) -> None:
    answer = await api.get(api.hosts, **options)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("!rack", ["h3"]),
        ("! rack", ["h3"]),
        ("rack = a", ["h1"]),
        ("rack in (a,)", ["h1"]),
        ("rack in ()", []),
        ("rack notin (a,b)", ["h3"]),
        ("rack=", []),
        ("rack!=", ["h1", "h2", "h3"]),
        (" rack , rack!=b ", ["h1"]),
        ("", ["h1", "h2", "h3"]),
    ],
)
async def test_label_selectors_in_unusual_spellings(api: Api, selector: str, found: list[str]) -> None:
    await api.new_host("h1", labels={"rack": "a"})
    await api.new_host("h2", labels={"rack": "b"})
    await api.new_host("h3")
    answer = await api.get(api.hosts, labelSelector=selector)
    assert [item["metadata"]["name"] for item in answer.body["items"]] == found


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("metadata.name==h1", ["h1"]),
        ("metadata.name!=h1", ["h2"]),
        ("metadata.name=h1,metadata.namespace={}", ["h1"]),
        ("metadata.name=h1,metadata.namespace=elsewhere", []),
        ("metadata.name=", []),
        ("", ["h1", "h2"]),
    ],
)
async def test_field_selectors_name_objects_and_places(api: Api, selector: str, found: list[str]) -> None:
    await api.new_host("h1")
    await api.new_host("h2")
    answer = await api.get(api.hosts, fieldSelector=selector.format(api.namespace))
    assert [item["metadata"]["name"] for item in answer.body["items"]] == found


async def test_secrets_are_found_by_type(api: Api) -> None:
    await api.post(api.secrets, {"metadata": {"name": "s1"}})
    await api.post(api.secrets, {"metadata": {"name": "s2"}, "type": "example.com/own"})
    answer = await api.get(api.secrets, fieldSelector="type=example.com/own")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["s2"]


@pytest.mark.parametrize("limit", ["0", "-1"])
async def test_a_limit_that_is_none_means_everything(api: Api, limit: str) -> None:
    await api.new_host("h1")
    await api.new_host("h2")
    assert len((await api.get(api.hosts, limit=limit)).body["items"]) == 2


async def test_a_list_can_be_had_as_it_was_at_a_version_or_not_older(api: Api) -> None:
    await api.new_host("h1")
    then = (await api.get(api.hosts)).version
    await api.new_host("h2")
    exact = (await api.get(api.hosts, resourceVersion=then, resourceVersionMatch="Exact")).body
    assert [item["metadata"]["name"] for item in exact["items"]] == ["h1"]
    assert exact["metadata"]["resourceVersion"] == then
    newer = (await api.get(api.hosts, resourceVersion=then, resourceVersionMatch="NotOlderThan")).body
    assert len(newer["items"]) == 2


async def test_a_version_that_is_yet_to_come_is_waited_for_in_vain(api: Api) -> None:
    await api.new_host("h1")
    for path in (api.hosts, api.host("h1"), f"{api.host('h1')}/status"):
        answer = await api.get(path, resourceVersion=str(10**15))
        assert (answer.code, answer.body["reason"]) == (504, "Timeout")
        assert answer.body["message"].startswith("Timeout: Too large resource version: ")
        assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert answer.body["details"]["retryAfterSeconds"] == 1


async def test_an_object_can_be_asked_for_as_new_as_one_has_seen_it(api: Api) -> None:
    made = await api.new_host("h1")
    for version in ("0", made.version):
        assert (await api.get(api.host("h1"), resourceVersion=version)).version == made.version


@pytest.mark.parametrize("word", ["true", "1", "True", "yes"])
async def test_a_watch_is_asked_for_in_many_ways(api: Api, word: str) -> None:
    await api.new_host("h1")
    stream = await api.watch(api.hosts, watch=word)
    assert await stream.names(1) == [("ADDED", "h1")]


@pytest.mark.parametrize("word", ["false", "0"])
async def test_no_watch_is_asked_for_in_two_ways(api: Api, word: str) -> None:
    assert (await api.get(api.hosts, watch=word)).body["kind"] == "BareMetalHostList"


async def test_a_watch_from_version_zero_begins_with_what_is_there(api: Api) -> None:
    await api.new_host("h1")
    stream = await api.watch(api.hosts, resourceVersion="0")
    assert await stream.names(1) == [("ADDED", "h1")]


async def test_a_watch_over_all_namespaces_sees_ours(api: Api) -> None:
    everywhere = api.hosts.replace(f"/namespaces/{api.namespace}", "")
    start = (await api.get(everywhere)).version
    stream = await api.watch(
        everywhere, resourceVersion=start, fieldSelector="metadata.name=h-" + api.namespace
    )
    await api.new_host(f"h-{api.namespace}")
    event = await stream.next()
    assert (event["type"], event["object"]["metadata"]["namespace"]) == ("ADDED", api.namespace)


async def test_the_last_event_of_an_object_has_a_version_of_its_own(api: Api) -> None:
    made = await api.new_host("h1")
    stream = await api.watch(api.hosts, resourceVersion=made.version)
    await api.delete(api.host("h1"))
    event = await stream.next()
    assert event["type"] == "DELETED"
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(made.version)


async def test_a_watch_without_initial_events_tells_only_what_is_new(api: Api) -> None:
    await api.new_host("h1")
    start = (await api.get(api.hosts)).version
    stream = await api.watch(
        api.hosts, resourceVersion=start, sendInitialEvents="false", resourceVersionMatch="NotOlderThan"
    )
    await api.new_host("h2")
    assert await stream.names(1) == [("ADDED", "h2")]


async def test_initial_events_of_metadata_and_tables_end_with_a_bookmark_too(api: Api) -> None:
    await api.new_host("h1")
    for accept, kind in (
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "PartialObjectMetadata"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", "Table"),
    ):
        stream = await api.watch(
            api.hosts,
            accept=accept,
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
        )
        async with asyncio.timeout(60):
            first, mark = await stream.next(), await stream.next()
        assert (first["type"], first["object"]["kind"]) == ("ADDED", kind)
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == kind


# Writes


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"dryRun": "Some"}, ("dryRun", UNSUPPORTED)),
        ({"dryRun": ""}, ("dryRun", UNSUPPORTED)),
        ({"fieldValidation": "Maybe"}, ("fieldValidation", UNSUPPORTED)),
        ({"fieldManager": "x" * 129}, ("fieldManager", "FieldValueTooLong")),
        ({"fieldManager": "a\nb"}, ("fieldManager", INVALID)),
    ],
)
async def test_options_of_writes_are_checked_before_anything_is_written(
    api: Api, options: dict[str, str], cause: tuple[str, str]
) -> None:
    assert cause in causes(await api.post(api.hosts, a_host("h1"), **options))
    assert cause in causes(await api.post(api.secrets, {"metadata": {"name": "s"}}, **options))
    made = await api.new_host("h2")
    assert cause in causes(await api.patch(api.host("h2"), {"spec": {"online": True}}, **options))
    assert cause in causes(await api.put(api.host("h2"), made.body, **options))
    assert (await api.get(api.host("h1"))).code == 404
    assert (await api.get(api.host("h2"))).version == made.version


async def test_a_dry_run_of_every_write_stores_nothing(api: Api) -> None:
    made = await api.new_host("h1", labels={"a": "1"})
    label = {"metadata": {"labels": {"a": "2"}}}
    put = {**made.body, "metadata": {**made.body["metadata"], **label["metadata"]}}
    apply = "application/apply-patch+yaml"
    for answer in (
        await api.patch(api.host("h1"), label, dryRun="All"),
        await api.put(api.host("h1"), put, dryRun="All"),
        await api.patch(
            api.host("h1"),
            a_host("h1", labels={"a": "2"}),
            apply,
            dryRun="All",
            fieldManager="me",
            force="true",
        ),
    ):
        assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"a": "2"})
    generated = await api.post(api.hosts, {**a_host("x"), "metadata": {"generateName": "g-"}}, dryRun="All")
    assert generated.body["metadata"]["name"].startswith("g-")
    assert (await api.post(api.hosts, a_host("h1"), dryRun="All")).code == 409
    for body in (None, {"dryRun": ["All"]}):
        query = {} if body else {"dryRun": "All"}
        assert (await api.delete(api.host("h1"), body, **query)).code == 200
    assert (await api.delete(api.hosts, dryRun="All")).code == 200
    listed = (await api.get(api.hosts)).body["items"]
    assert [item["metadata"] for item in listed] == [made.body["metadata"]]


async def test_a_generated_name_is_made_of_its_prefix_however_long_that_is(api: Api) -> None:
    named = {**a_host("x"), "metadata": {"name": "own", "generateName": "prefix-"}}
    made = await api.post(api.hosts, named)
    assert (made.body["metadata"]["name"], made.body["metadata"]["generateName"]) == ("own", "prefix-")
    long = {**a_host("x"), "metadata": {"generateName": "x" * 100}}
    made = await api.post(api.hosts, long)
    assert made.code == 201
    assert len(made.body["metadata"]["name"]) == 63
    bad = await api.post(api.hosts, {**a_host("x"), "metadata": {"generateName": "Bad_"}})
    assert ("metadata.generateName", INVALID) in causes(bad)
    none = await api.post(api.hosts, {**a_host("x"), "metadata": {}})
    assert causes(none) == {("metadata.name", "FieldValueRequired")}


# Deletes


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"propagationPolicy": "Whatever"}, ("propagationPolicy", UNSUPPORTED)),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, ("propagationPolicy", INVALID)),
        ({"dryRun": ["Some"]}, ("dryRun", UNSUPPORTED)),
    ],
)
async def test_options_of_deletes_are_checked_before_anything_is_deleted(
    api: Api, options: dict[str, Any], cause: tuple[str, str]
) -> None:
    made = await api.new_host("h1")
    answer = await api.delete(api.host("h1"), options)
    assert cause in causes(answer)
    assert answer.body["message"].startswith('DeleteOptions.meta.k8s.io "" is invalid: ')
    assert cause in causes(await api.delete(api.hosts, options))
    assert (await api.get(api.host("h1"))).version == made.version


@pytest.mark.parametrize("version", ["v1", "meta.k8s.io/v1", "metal3.io/v1alpha1"])
async def test_options_of_deletes_come_in_the_version_of_any_group(api: Api, version: str) -> None:
    made = await api.new_host("h1")
    options = {
        "apiVersion": version,
        "kind": "DeleteOptions",
        "preconditions": {"uid": made.body["metadata"]["uid"]},
    }
    answer = await api.delete(api.host("h1"), options)
    assert (answer.code, answer.body["status"]) == (200, "Success")
    assert answer.body["details"] == {
        "name": "h1",
        "group": "metal3.io",
        "kind": "baremetalhosts",
        "uid": made.body["metadata"]["uid"],
    }


async def test_a_delete_that_insists_on_an_old_version_says_what_is_there(api: Api) -> None:
    made = await api.new_host("h1")
    moved = await api.patch(api.host("h1"), {"spec": {"online": True}})
    answer = await api.delete(api.host("h1"), {"preconditions": {"resourceVersion": made.version}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    for version in (made.version, moved.version):
        assert version in answer.body["message"]


async def test_a_collection_is_deleted_by_field_and_says_what_went(api: Api) -> None:
    for name in ("h1", "h2"):
        await api.new_host(name)
    answer = await api.delete(api.hosts, fieldSelector="metadata.name=h1")
    assert answer.body["kind"] == "BareMetalHostList"
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["h1"]
    assert (await api.delete(api.hosts, labelSelector="a in")).code == 400
    assert (await api.get(api.host("h2"))).code == 200


# Methods


async def test_methods_that_a_place_does_not_have_are_not_allowed(api: Api) -> None:
    await api.new_host("h1")
    status = f"{api.host('h1')}/status"
    for answer in (
        await api.post(status, a_host("h1")),
        await api.delete(status),
        await api.call("OPTIONS", api.hosts),
        await api.post("/version", {}),
    ):
        assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_a_change_of_a_collection_names_no_object(api: Api) -> None:
    for answer in (
        await api.put(api.hosts, a_host("h1")),
        await api.call("PATCH", api.hosts, {}, type_=MERGE),
    ):
        assert (answer.code, answer.body["message"]) == (400, "name must be provided")
    for answer in (await api.put(api.secrets, {}), await api.call("PATCH", api.secrets, {}, type_=MERGE)):
        assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_over_all_namespaces_one_can_only_look(api: Api) -> None:
    for path, code in (("/api/v1/secrets", 405), (f"{HOSTS}/baremetalhosts", 404)):
        assert (await api.get(path, limit="1")).code == 200
        assert (await api.post(path, a_host("h1"))).code == code
        assert (await api.put(path, a_host("h1"))).code == code
        assert (await api.call("PATCH", path, {}, type_=MERGE)).code == code
        assert (await api.delete(path, labelSelector="nobody=here", dryRun="All")).code == code


async def test_what_is_posted_to_the_place_of_an_object_is_for_custom_kinds_only(api: Api) -> None:
    made = await api.post(api.host("h1"), a_host("h2"))
    assert (made.code, made.body["metadata"]["name"]) == (201, "h2")
    assert (await api.post(api.host("h1"), a_host("h2"))).body["reason"] == "AlreadyExists"
    assert (await api.post(f"{api.secrets}/s", {"metadata": {"name": "s"}})).code == 405


async def test_a_delete_whose_body_is_something_else_deletes_nothing(api: Api) -> None:
    made = await api.new_host("h1")
    answer = await api.call("DELETE", api.host("h1"), {"kind": "Other"})
    # Kubernetes calls it its own fault.
    assert answer.code in (400, 500)
    assert (await api.get(api.host("h1"))).version == made.version


async def test_a_new_object_may_say_that_it_has_no_version_yet(api: Api) -> None:
    assert (await api.post(api.hosts, a_host("h1", resourceVersion="0"))).code == 201
    assert (await api.post(api.secrets, {"metadata": {"name": "s", "resourceVersion": "0"}})).code == 201


async def test_a_strategic_patch_that_is_nothing_changes_nothing(api: Api) -> None:
    made = await api.post(api.secrets, {"metadata": {"name": "s"}})
    answer = await api.patch(f"{api.secrets}/s", b"null", STRATEGIC)
    assert (answer.code, answer.version) == (200, made.version)
    assert (await api.patch(f"{api.secrets}/s", b"null", MERGE)).code == 400
