"""The client: what it asks for, what it makes of the answer, and what it repeats."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web
from kube_scripted_api import COLLECTION, WIDGET, Fault, ScriptedApi, Widget, WidgetSpec, hang_up, status

from ingot.api.meta import Key, ObjectMeta, PartialObjectMetadata
from ingot.kube import (
    Access,
    AlreadyExists,
    ApiError,
    BadRequest,
    Client,
    Conflict,
    Contested,
    Forbidden,
    Gone,
    Invalid,
    KnownIdentity,
    NotFound,
    TooManyRequests,
    Trust,
    Unauthorized,
    Unavailable,
    Unreadable,
    Untrusted,
    metadata_of,
)
from ingot.kube.content import FileContent
from ingot.kube.transport import retry_delay
from ingot.trust import Authority, Secret

KEY = Key("default", "one")


async def test_get_decodes_into_the_struct_of_the_kind(api: ScriptedApi, client: Client):
    api.put("one", 7)
    found = await client.get(WIDGET, KEY)
    assert found.spec.size == 7
    assert (found.api_version, found.kind, found.key) == ("test.ingot.dev/v1", "Widget", KEY)


async def test_a_missing_object_is_not_found_in_the_words_of_the_server(client: Client):
    with pytest.raises(NotFound) as caught:
        await client.get(WIDGET, KEY)
    assert caught.value.message == 'widgets "one" not found'
    assert str(caught.value) == 'get Widget default/one: widgets "one" not found (HTTP 404 NotFound)'


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "../secrets/x", "a?x=1", "a%2fb", "a b", "ä", "x" * 254, "a\n"]
)
async def test_a_name_that_could_be_another_path_never_becomes_one(
    api: ScriptedApi, client: Client, name: str
):
    with pytest.raises(NotFound):
        await client.get(WIDGET, Key("default", name))
    with pytest.raises(NotFound):
        await client.patch(WIDGET, Key(name, "one"), {})
    with pytest.raises(NotFound):
        await client.delete(WIDGET, Key("default", name))
    assert api.seen == []


async def test_list_gathers_all_pages_at_one_version(api: ScriptedApi, client: Client):
    for number in range(1203):
        api.put(f"w{number:04}", number)
    listing = await client.list(WIDGET)
    assert [item.spec.size for item in listing.items] == list(range(1203))
    assert listing.resource_version == str(api.version)
    assert [seen.query["limit"] for seen in api.requests("GET")] == ["500"] * 3


async def test_an_empty_list_may_come_as_null(client: Client):
    assert (await client.list(WIDGET)).items == []


async def test_list_whose_pages_expire_is_taken_in_one_piece(api: ScriptedApi, client: Client):
    for number in range(600):
        api.put(f"w{number:04}")
    api.after_page = api.forget
    assert len((await client.list(WIDGET)).items) == 600
    assert "limit" not in api.seen[-1].query


async def test_list_hands_selectors_on(api: ScriptedApi, client: Client):
    await client.list(WIDGET, namespace="rack-3", labels="a=b,c!=d", fields="metadata.name=x&y")
    assert api.seen[0].path == "/apis/test.ingot.dev/v1/namespaces/rack-3/widgets"
    assert api.seen[0].query["labelSelector"] == "a=b,c!=d"
    assert api.seen[0].query["fieldSelector"] == "metadata.name=x&y"


async def test_one_object_of_a_wrong_shape_does_not_hide_the_others(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    api.put("bad", spec={"size": "large"})
    api.put("good", 1)
    listing = await client.list(WIDGET)
    assert [item.metadata.name for item in listing.items] == ["good"]
    assert "Widget default/bad does not have the shape of test.ingot.dev/v1" in caplog.text
    assert "$.spec.size" in caplog.text


async def test_an_object_whose_very_metadata_is_wrong_does_not_hide_the_others(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    api.put("good", 1)
    api.put("strange", 2, metadata={"labels": {"size": 3}})
    assert [item.key.name for item in (await client.list(WIDGET)).items] == ["good"]
    assert "an object without readable metadata" in caplog.text


async def test_a_list_that_breaks_off_after_an_unreadable_object_is_unreadable(
    api: ScriptedApi, client: Client
):
    async def half(request: web.Request) -> web.Response:
        return web.Response(
            body=b'{"metadata":{},"items":[{"spec":{"size":"large"}}, {', content_type="application/json"
        )

    api.faults.append(half)
    with pytest.raises(Unreadable, match="list Widgets: the answer of the API is not a list"):
        await client.list(WIDGET)


@pytest.mark.parametrize("odd", [b'"\xff"', b"[" * 5000 + b"]" * 5000], ids=["no text", "too deep"])
async def test_what_cannot_be_decoded_is_an_error_of_ours(api: ScriptedApi, client: Client, odd: bytes):
    def body(code: int, content: bytes) -> Fault:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=code, body=content, content_type="application/json")

        return answer

    api.faults += [body(200, b'{"metadata": {"name": %s}}' % odd), body(409, b'{"message": %s}' % odd)]
    with pytest.raises(Unreadable, match="default/one"):
        await client.get(WIDGET, KEY)
    with pytest.raises(Conflict):
        await client.get(WIDGET, KEY)
    api.faults.append(body(200, b'{"metadata": {"continue": %s}, "items": []}' % odd))
    with pytest.raises(Unreadable, match="list Widgets"):
        await client.list(WIDGET)


async def test_an_object_whose_text_is_none_does_not_hide_the_others(api: ScriptedApi, client: Client):
    async def answer(request: web.Request) -> web.Response:
        items = b'[{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": "\xff"}]'
        return web.Response(body=b'{"metadata": {}, "items": %s}' % items, content_type="application/json")

    api.faults.append(answer)
    assert [item.metadata.name for item in (await client.list(WIDGET)).items] == ["a"]


async def test_get_of_a_wrong_shape_says_which_field(api: ScriptedApi, client: Client):
    api.put("one", spec={"size": "large"})
    with pytest.raises(Unreadable, match=r"default/one .*\$\.spec\.size"):
        await client.get(WIDGET, KEY)


async def test_create_takes_structs_and_mappings(api: ScriptedApi, client: Client):
    made = await client.create(
        WIDGET, Widget(metadata=ObjectMeta(name="one", namespace="default"), spec=WidgetSpec(size=3))
    )
    assert made.metadata.uid
    other = await client.create(
        WIDGET, {"metadata": {"name": "two"}, "spec": {"size": 4}}, namespace="default"
    )
    assert other.spec.size == 4
    assert api.sizes() == {"one": 3, "two": 4}
    assert api.seen[0].path == "/apis/test.ingot.dev/v1/namespaces/default/widgets"
    assert api.seen[0].body["apiVersion"] == "test.ingot.dev/v1"
    assert api.seen[0].query["fieldManager"] == "ingot"


async def test_create_of_a_taken_name_is_told_apart_from_a_conflict(api: ScriptedApi, client: Client):
    api.put("one")
    with pytest.raises(AlreadyExists):
        await client.create(WIDGET, {"metadata": {"name": "one"}}, namespace="default")


async def test_a_patch_carries_the_version_it_was_decided_on(api: ScriptedApi, client: Client):
    old = api.put("one", 1)["metadata"]["resourceVersion"]
    patch = {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 2}}
    done = await client.patch(WIDGET, KEY, patch, resource_version=old)
    assert done.spec.size == 2
    assert "resourceVersion" not in patch["metadata"]
    with pytest.raises(Conflict):
        await client.patch(WIDGET, KEY, {"spec": {"size": 3}}, resource_version=old)
    assert api.sizes() == {"one": 2}
    assert api.requests("PATCH")[0].headers["Content-Type"] == "application/merge-patch+json"


async def test_a_patch_of_a_subresource_goes_to_its_path(api: ScriptedApi, client: Client):
    api.put("one")
    await client.patch(WIDGET, KEY, {"status": {}}, subresource="status")
    assert api.seen[-1].path.endswith("/widgets/one/status")


async def test_delete_spares_a_namesake(api: ScriptedApi, client: Client):
    uid = api.put("one")["metadata"]["uid"]
    api.remove("one")
    api.put("one")
    with pytest.raises(Conflict):
        await client.delete(WIDGET, KEY, uid=uid)
    assert "one" in api.sizes()
    await client.delete(WIDGET, KEY)
    with pytest.raises(NotFound):
        await client.delete(WIDGET, KEY)


async def test_metadata_only_asks_for_no_more_than_that(api: ScriptedApi, client: Client):
    api.put("one", 7)
    listing = await client.list(metadata_of(WIDGET))
    assert type(listing.items[0]) is PartialObjectMetadata
    assert listing.items[0].kind == "Widget"
    assert (
        api.seen[-1].headers["Accept"] == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    )
    await client.get(metadata_of(WIDGET), KEY)
    assert api.seen[-1].headers["Accept"] == "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", Unavailable),
        (307, "Moved", ApiError),
    ],
)
async def test_each_refusal_has_its_own_exception(
    api: ScriptedApi, client: Client, code: int, reason: str, error: type[ApiError]
):
    api.faults.append(status(code, reason, "because", Location="https://elsewhere.test/"))
    with pytest.raises(ApiError) as caught:
        await client.create(WIDGET, {"metadata": {"name": "one"}}, namespace="default")
    assert type(caught.value) is error
    assert (caught.value.code, caught.value.reason, caught.value.message) == (code, reason, "because")
    assert len(api.seen) == 1


async def test_a_page_of_a_proxy_becomes_a_line(api: ScriptedApi, client: Client):
    from aiohttp import web

    async def page(request: web.Request) -> web.Response:
        return web.Response(status=403, text="<html>\n<h1>Blocked</h1>\n" + "x" * 5000)

    api.faults.append(page)
    with pytest.raises(Forbidden) as caught:
        await client.get(WIDGET, KEY)
    assert caught.value.message.startswith("<html> <h1>Blocked</h1>")
    assert len(caught.value.message) == 300


async def test_a_read_is_repeated_when_the_server_fails_or_hangs_up(api: ScriptedApi, client: Client):
    api.put("one", 7)
    api.faults += [status(503, "ServiceUnavailable"), status(500, "InternalError"), hang_up]
    assert (await client.get(WIDGET, KEY)).spec.size == 7


async def test_a_write_that_may_have_been_carried_out_is_not_repeated(api: ScriptedApi, client: Client):
    api.put("one", 7)
    for fault in (hang_up, status(500, "InternalError"), status(503, "ServiceUnavailable", Retry_After="0")):
        api.faults.append(fault)
        before = len(api.seen)
        with pytest.raises(Unavailable):
            await client.patch(WIDGET, KEY, {"spec": {"size": 8}})
        assert len(api.seen) == before + 1
    assert api.sizes() == {"one": 7}


async def test_whatever_the_server_put_off_is_sent_again_when_it_said(api: ScriptedApi, client: Client):
    api.put("one", 7)
    api.faults += [status(429, "TooManyRequests", Retry_After="0")] * 2
    assert (await client.patch(WIDGET, KEY, {"spec": {"size": 8}})).spec.size == 8
    assert len(api.requests("PATCH")) == 3


async def test_a_write_waits_for_a_server_that_is_just_starting(api: ScriptedApi, client: Client):
    api.put("one", 7)
    await api.stop()

    async def come_back() -> None:
        await asyncio.sleep(0.3)
        await api.start()

    back = asyncio.create_task(come_back())
    assert (await client.patch(WIDGET, KEY, {"spec": {"size": 8}})).spec.size == 8
    assert len(api.requests("PATCH")) == 1
    await back


async def test_no_server_at_all_is_a_sentence(api: ScriptedApi, client: Client):
    await api.stop()
    with pytest.raises(Unavailable) as caught:
        await client.get(WIDGET, KEY)
    assert caught.value.code == 0
    assert f"no connection to {api.url}" in str(caught.value)
    assert "Is the API running?" in str(caught.value)


async def test_a_server_with_a_foreign_certificate_is_not_talked_to(api: ScriptedApi, tmp_path):
    other = Authority(tmp_path / "other-ca")
    access = Access(
        server=api.url,
        trust=Trust(FileContent(other.ca_file, "certificate authority")),
        identity=KnownIdentity(token=Secret("never-sent")),
    )
    async with Client(access) as stranger:
        with pytest.raises(Untrusted, match="is not to be trusted") as caught:
            await stranger.get(WIDGET, KEY)
    assert "never-sent" not in str(caught.value)
    assert api.seen == []


async def test_warnings_of_the_server_reach_the_log_once_each(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    for field in ("sise", "sise", "colour"):
        api.faults.append(status(200, "", Warning=f'299 - "unknown field \\"spec.{field}\\""'))
        await client.create(WIDGET, {"metadata": {"name": "one"}}, namespace="default")
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert [("sise" in line, "colour" in line) for line in told] == [(True, False), (False, True)]


async def test_the_token_is_nowhere_in_logs_or_errors(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    api.faults += [status(500, "InternalError")] * 9
    with pytest.raises(Unavailable) as caught:
        await client.get(WIDGET, KEY)
    assert api.token not in caplog.text + str(caught.value) + repr(caught.value)


def test_the_collection_of_the_scripted_api_is_the_kinds():
    assert WIDGET.path() == COLLECTION


async def test_apply_says_what_we_own_and_who_we_are(api: ScriptedApi, client: Client):
    api.put("one", 1)
    wanted = Widget(metadata=ObjectMeta(name="one", namespace="default"), spec=WidgetSpec(size=3))
    assert (await client.apply(WIDGET, wanted)).spec.size == 3
    await client.apply(
        WIDGET,
        {"metadata": {"name": "one"}, "status": {}},
        namespace="default",
        field_manager="ingot-status",
        force=True,
        subresource="status",
    )
    first, second = api.requests("PATCH")
    assert first.headers["Content-Type"] == "application/apply-patch+yaml"
    assert first.query == {"fieldManager": "ingot"}
    assert first.body == {
        "apiVersion": "test.ingot.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"size": 3},
    }
    assert second.path.endswith("/namespaces/default/widgets/one/status")
    assert second.query == {"fieldManager": "ingot-status", "force": "true"}


async def test_a_field_that_another_manager_owns_is_no_ordinary_conflict(api: ScriptedApi, client: Client):
    async def contested(request: web.Request) -> web.Response:
        causes = [
            {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": ".spec.size"}
        ]
        body = {
            "reason": "Conflict",
            "message": "Apply failed with 1 conflict",
            "details": {"causes": causes},
        }
        return web.json_response(body, status=409)

    api.faults.append(contested)
    with pytest.raises(Contested, match="apply Widget default/one: Apply failed with 1 conflict"):
        await client.apply(WIDGET, {"metadata": {"name": "one"}}, namespace="default")


async def test_a_log_is_text_whatever_its_bytes(api: ScriptedApi, client: Client):
    async def log_of(request: web.Request) -> web.Response:
        return web.Response(body=b"one\n\xfftwo\n", content_type="text/plain")

    api.faults.append(log_of)
    text = await client.logs(WIDGET, KEY, container="main", last_lines=2, previous=True)
    assert text == "one\n\N{REPLACEMENT CHARACTER}two\n"
    assert api.seen[0].path.endswith("/widgets/one/log")
    assert api.seen[0].query == {"container": "main", "tailLines": "2", "previous": "true"}


async def test_a_deletion_says_what_becomes_of_what_belongs_to_the_object(api: ScriptedApi, client: Client):
    api.put("one")
    await client.delete(WIDGET, KEY, propagation="Foreground")
    assert api.seen[-1].body["propagationPolicy"] == "Foreground"


async def test_the_version_of_a_list_costs_no_list(api: ScriptedApi, client: Client):
    for number in range(3):
        api.put(f"w{number}", number)
    assert await client.latest_version(WIDGET) == str(api.version)
    (seen,) = api.seen
    assert seen.query["limit"] == "1"
    assert "as=PartialObjectMetadataList" in seen.headers["Accept"]


@pytest.mark.parametrize(
    ("error", "method", "least", "most"),
    [
        (TooManyRequests(429, "", "", retry_after=3.0), "PATCH", 3.0, 3.6),
        (TooManyRequests(429, "", ""), "PATCH", None, None),
        (TooManyRequests(429, "", "", retry_after=3600.0), "GET", 30.0, 36.0),
        (Unavailable(503, "", "", retry_after=2.0), "GET", 2.0, 2.4),
        (Unavailable(503, "", "", retry_after=2.0), "POST", None, None),
        (Unavailable(0, "", "", sent=False), "POST", 0.05, 0.1),
        (Unavailable(0, "", "", sent=True), "DELETE", None, None),
        (Untrusted(0, "", "", sent=False), "GET", None, None),
        (Conflict(409, "", ""), "PATCH", None, None),
    ],
)
def test_what_is_repeated_and_when(error: ApiError, method: str, least: float | None, most: float | None):
    delay = retry_delay(error, method=method, attempt=1)
    if least is None or most is None:
        assert delay is None
    else:
        assert delay is not None
        assert least <= delay <= most
    assert retry_delay(error, method=method, attempt=5) is None


async def test_a_list_in_one_piece_is_handed_out_in_parts(
    api: ScriptedApi, client: Client, caplog: pytest.LogCaptureFixture
):
    for number in range(1100):
        api.put(f"w{number:04}", number)
    api.put("w0700", spec={"size": "large"})
    pages = [page async for page in client.pages(WIDGET, page_size=0)]
    assert [len(page.items) for page in pages] == [500, 499, 100]
    assert {page.version for page in pages} == {str(api.version)}
    assert len(api.seen) == 1
    assert "Widget default/w0700 does not have the shape" in caplog.text
