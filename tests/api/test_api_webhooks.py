"""Admission webhooks of others: who is asked about a write, and what follows from the answer."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes_api import Answer, Api, Kubectl, a_status, eventually
from webhook_server import (
    CONFIG_MAPS,
    MUTATING,
    REGISTRATION,
    Hook,
    Json,
    WebhookServer,
    allow,
    deny,
    patch,
    registered,
    until_asked,
    webhook,
)

LABEL = {"op": "add", "path": "/metadata/labels", "value": {"touched": "yes"}}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[WebhookServer]:
    async with WebhookServer.running(tmp_path) as running:
        yield running


def maps(api: Api, name: str = "") -> str:
    return f"/api/v1/namespaces/{api.namespace}/configmaps" + (f"/{name}" if name else "")


async def new_map(api: Api, name: str, *, labels: Json | None = None, **query: Any) -> Answer:
    body = {"metadata": {"name": name, **({"labels": labels} if labels else {})}, "data": {"a": "b"}}
    return await api.post(maps(api), body, **query)


def told(hook: Hook, name: str) -> list[str]:
    return [request["operation"] for request in hook.requests if request.get("name") == name]


async def test_a_webhook_is_told_what_happens_to_what_and_by_whom(api: Api, server: WebhookServer) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        await new_map(api, "m")
        await api.patch(maps(api, "m"), {"data": {"a": "c"}})
        await api.delete(maps(api, "m"))
        created, changed, deleted = (request for request in hook.requests if request["name"] == "m")
    assert [found["operation"] for found in (created, changed, deleted)] == ["CREATE", "UPDATE", "DELETE"]
    for request in (created, changed, deleted):
        assert (
            request["kind"] == request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
        )
        assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
        assert request["namespace"] == api.namespace
        assert request["userInfo"]["username"]
        assert "system:authenticated" in request["userInfo"]["groups"]
        assert request["dryRun"] is False
    assert (created["object"]["data"], created["oldObject"]) == ({"a": "b"}, None)
    assert (changed["object"]["data"], changed["oldObject"]["data"]) == ({"a": "c"}, {"a": "b"})
    assert (deleted["object"], deleted["oldObject"]["data"]) == (None, {"a": "c"})
    assert created["object"]["metadata"]["uid"] == deleted["oldObject"]["metadata"]["uid"]
    versions = [changed[name]["metadata"]["resourceVersion"] for name in ("object", "oldObject")]
    assert versions[0] == versions[1]
    assert [found["options"]["kind"] for found in (created, changed, deleted)] == [
        "CreateOptions",
        "UpdateOptions",
        "DeleteOptions",
    ]
    assert hook.reviews[0]["apiVersion"] == "admission.k8s.io/v1"
    assert hook.reviews[0]["query"] == {"timeout": "10s"}


async def test_a_namespace_is_told_as_what_is_in_itself(api: Api, server: WebhookServer) -> None:
    name = f"told-{uuid.uuid4().hex[:8]}"
    hook = server.hook()
    rule = {**CONFIG_MAPS, "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["namespaces"]}
    about = webhook(
        api,
        "x.example.com",
        server,
        hook.url,
        rules=[CONFIG_MAPS, {**rule, "scope": "Cluster"}],
        namespaceSelector={
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]
        },
        objectSelector={"matchLabels": {"of": api.namespace}},
    )
    async with registered(api, about):
        await until_asked(api, hook, labels={"of": api.namespace})
        body = {"metadata": {"name": name, "labels": {"of": api.namespace}}}
        assert (await api.post("/api/v1/namespaces", body)).code == 201
        path = f"/api/v1/namespaces/{name}"
        assert (await api.patch(path, {"metadata": {"annotations": {"a": "b"}}})).code == 200
        assert (await api.delete(path)).code == 200
        seen = [
            (found["operation"], found["namespace"]) for found in hook.requests if found.get("name") == name
        ]
    assert seen == [("CREATE", name), ("UPDATE", name), ("DELETE", name)]


@pytest.mark.parametrize(
    ("status", "code", "reason", "ending"),
    [
        ({}, 400, None, " without explanation"),
        ({"message": "not on a Friday"}, 400, None, ": not on a Friday"),
        ({"reason": "Friday"}, 400, "Friday", ": Friday"),
        ({"message": "no", "code": 422, "reason": "Invalid"}, 422, "Invalid", ": no"),
        ({"message": "no", "code": 200, "status": "Success"}, 400, None, ": no"),
    ],
)
async def test_what_a_webhook_denies_is_refused_in_its_words(
    api: Api, server: WebhookServer, status: Json, code: int, reason: str | None, ending: str
) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        hook.answer = deny(**status)
        answer = await new_map(api, "m")
        assert (answer.code, answer.body.get("reason")) == (code, reason)
        assert answer.body["message"] == f'admission webhook "x.example.com" denied the request{ending}'
        assert (await api.get(maps(api, "m"))).code == 404


async def test_a_change_and_a_deletion_can_be_denied_too(
    api: Api, kubectl: Kubectl, server: WebhookServer
) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        await new_map(api, "m")
        hook.answer = lambda request: {
            "allowed": request["operation"] == "CREATE",
            "status": {"message": f"no {request['operation']}"},
        }
        assert "no UPDATE" in (await api.patch(maps(api, "m"), {"data": {"a": "c"}})).body["message"]
        assert "no DELETE" in (await api.delete(maps(api, "m"))).body["message"]
        assert "no DELETE" in (await api.delete(maps(api), labelSelector="")).body["message"]
        done = await asyncio.to_thread(kubectl.run, "delete", "configmap", "m")
        assert 'admission webhook "x.example.com" denied the request: no DELETE' in done.stderr
        assert (await api.get(maps(api, "m"))).body["data"] == {"a": "b"}


async def test_what_a_mutating_webhook_changes_is_stored_and_shown_to_validating_ones(
    api: Api, server: WebhookServer
) -> None:
    changing = server.hook(path="/change")
    looking = server.hook(path="/look")
    async with (
        registered(api, webhook(api, "m.example.com", server, changing.url), kind=MUTATING),
        registered(api, webhook(api, "v.example.com", server, looking.url)),
    ):
        await until_asked(api, changing, looking)
        added = {"op": "add", "path": "/data/added", "value": "by a webhook"}
        changing.answer = patch(LABEL, added, {"op": "add", "path": "/bogus", "value": 1})
        answer = await new_map(api, "m", fieldValidation="Strict")
        assert answer.code == 201
        assert answer.body["data"] == {"a": "b", "added": "by a webhook"}
        assert answer.body["metadata"]["labels"] == {"touched": "yes"}
        assert "bogus" not in answer.body
        (seen,) = (request["object"] for request in looking.requests if request["name"] == "m")
        assert seen["data"] == {"a": "b", "added": "by a webhook"}
        assert (await api.get(maps(api, "m"))).body["data"]["added"] == "by a webhook"


async def test_a_mutating_webhook_cannot_change_what_the_server_owns_or_where_the_object_is(
    api: Api, server: WebhookServer
) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "m.example.com", server, hook.url), kind=MUTATING):
        await until_asked(api, hook)
        await new_map(api, "m")
        hook.answer = patch({"op": "replace", "path": "/metadata/uid", "value": "mine"})
        answer = await api.patch(maps(api, "m"), {"data": {"a": "c"}})
        assert (answer.code, answer.body["details"]["causes"][0]["field"]) == (422, "metadata.uid")
        hook.answer = patch({"op": "replace", "path": "/metadata/namespace", "value": "elsewhere"})
        answer = await new_map(api, "n")
        assert answer.code == 400
        assert "does not match the namespace" in answer.body["message"]


async def test_mutating_webhooks_are_asked_by_name_and_again_if_they_want_to_know_what_others_did(
    api: Api, server: WebhookServer
) -> None:
    def adding(letter: str) -> Any:
        def answer(request: Json) -> Json:
            trace = (request["object"].get("data") or {}).get("trace", "")
            return patch({"op": "add", "path": "/data", "value": {"trace": trace + letter}})(request)

        return answer

    once, again, last = (server.hook(path=f"/{name}") for name in ("once", "again", "last"))
    first = webhook(api, "once.example.com", server, once.url)
    second = webhook(api, "again.example.com", server, again.url, reinvocationPolicy="IfNeeded")
    third = webhook(api, "last.example.com", server, last.url, reinvocationPolicy="IfNeeded")
    async with (
        registered(api, third, kind=MUTATING, name="b"),
        registered(api, first, second, kind=MUTATING, name="a"),
    ):
        await until_asked(api, once, again, last)
        once.answer, again.answer, last.answer = adding("1"), adding("2"), adding("3")
        answer = await api.post(maps(api), {"metadata": {"name": "m"}})
        # The third has seen everything but what the second said when it was asked again, and nobody is asked a third time.
        assert answer.body["data"]["trace"] in ("1232", "12323")
        assert told(once, "m") == ["CREATE"]
        assert told(again, "m") == ["CREATE", "CREATE"]


async def test_warnings_of_webhooks_reach_the_client_whatever_becomes_of_the_write(
    api: Api, server: WebhookServer
) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        hook.answer = lambda request: {"allowed": True, "warnings": ['mind the "gap"', "and the step"]}
        answer = await new_map(api, "m")
        assert answer.headers.getall("Warning") == ['299 - "mind the \\"gap\\""', '299 - "and the step"']
        answer = await api.delete(maps(api, "m"))
        assert (answer.code, len(answer.headers.getall("Warning"))) == (200, 2)
        hook.answer = lambda request: {"allowed": False, "warnings": ["too late"]}
        answer = await new_map(api, "n")
        assert (answer.code, answer.headers.getall("Warning")) == (400, ['299 - "too late"'])


FAILED = 'Internal error occurred: failed calling webhook "x.example.com": '


async def test_warnings_are_told_once_and_shortened_where_they_are_too_many(
    api: Api, server: WebhookServer
) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        long = "x" * 1000
        hook.answer = lambda request: {"allowed": True, "warnings": [long, "again", "again"]}
        answer = await new_map(api, "few")
        assert answer.headers.getall("Warning") == [f'299 - "{long}"', '299 - "again"']
        many = [f"{number:04} {'y' * 400}" for number in range(1000)]
        hook.answer = lambda request: {"allowed": True, "warnings": many}
        answer = await new_map(api, "many")
        assert answer.headers.getall("Warning") == [f'299 - "{sentence[:256]}"' for sentence in many[:16]]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda request: web.Response(status=500, text="oops"), 'an error on the server ("oops")'),
        (lambda request: web.Response(status=404), "could not find the requested resource"),
        (lambda request: web.Response(text="hello"), ""),
        (lambda request: web.json_response({}), "webhook response was absent"),
        (lambda request: {"uid": "another", "allowed": True}, 'got "another"'),
        (lambda request: {"allowed": "yes"}, ""),
        (patch(LABEL), "validating webhook may not return response.patch"),
    ],
    ids=["error", "not found", "no JSON", "nothing", "another uid", "wrong type", "a patch"],
)
async def test_a_webhook_that_misbehaves_stops_the_write(
    api: Api, server: WebhookServer, answer: Any, words: str
) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        hook.answer = answer
        refused = await new_map(api, "m")
        assert (refused.code, refused.body["reason"]) == (500, "InternalError")
        assert refused.body["message"].startswith(FAILED)
        assert words in refused.body["message"]
        hook.answer = allow
        assert (await new_map(api, "m")).code == 201


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda request: {"allowed": True, "patchType": "JSONPatch"}, "patchType but not response.patch"),
        (lambda request: {"allowed": True, "patch": "W10="}, "patch but not response.patchType"),
        (
            lambda request: {
                "allowed": True,
                "patchType": "JSONPatch",
                "patch": base64.b64encode(b"{").decode(),
            },
            "undecodable patch",
        ),
        (patch({"op": "remove", "path": "/nothing"}), ""),
        (patch({"op": "test", "path": "/data/a", "value": "other"}), ""),
    ],
    ids=["no patch", "no type", "no JSON", "does not apply", "fails its test"],
)
async def test_a_patch_that_makes_no_sense_stops_the_write(
    api: Api, server: WebhookServer, answer: Any, words: str
) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "m.example.com", server, hook.url), kind=MUTATING):
        await until_asked(api, hook)
        hook.answer = answer
        refused = await new_map(api, "m")
        assert (refused.code, refused.body["reason"]) == (500, "InternalError")
        assert words in refused.body["message"]


async def test_a_webhook_that_cannot_be_reached_stops_the_write_unless_it_may_be_left_out(
    api: Api, server: WebhookServer
) -> None:
    looking = server.hook(path="/look")
    gone = webhook(api, "gone.example.com", server, "https://127.0.0.1:1/gone")
    stranger = webhook(api, "stranger.example.com", None, looking.url)
    nowhere = webhook(api, "nowhere.example.com", server)
    nowhere["clientConfig"]["service"] = {"namespace": api.namespace, "name": "hook", "path": "/p"}
    known = webhook(api, "known.example.com", server, looking.url)
    for broken, words in (
        (
            gone,
            'Post "https://127.0.0.1:1/gone?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused',
        ),
        (stranger, "failed to verify certificate"),
        (nowhere, f'Post "https://hook.{api.namespace}.svc:443/p?timeout=10s": service "hook" not found'),
    ):
        for policy in ("Fail", "Ignore"):
            async with registered(api, known, broken | {"failurePolicy": policy}):
                await until_asked(api, looking)
                answer = await new_map(api, "m", dryRun="All")
                if policy == "Ignore":
                    assert answer.code == 201, answer.body
                else:
                    assert answer.code == 500
                    assert "failed to call webhook: " in answer.body["message"]
                    assert words in answer.body["message"]
            looking.reviews.clear()


async def test_a_slow_webhook_is_waited_for_only_so_long(api: Api, server: WebhookServer) -> None:
    hook = server.hook()
    release = asyncio.Event()

    async def slow(request: Json) -> Json:
        await release.wait()
        return {"allowed": True}

    async with registered(api, webhook(api, "x.example.com", server, hook.url, timeoutSeconds=1)):
        await until_asked(api, hook)
        hook.answer = slow
        refused = await new_map(api, "m")
        release.set()
    assert refused.code == 500
    assert "context deadline exceeded" in refused.body["message"]


async def test_only_those_who_want_to_hear_of_it_are_asked(api: Api, server: WebhookServer) -> None:
    def among(name: str, **more: Any) -> Json:
        hooks[name] = server.hook(path=f"/{name}")
        return webhook(api, f"{name}.example.com", server, hooks[name].url, **more)

    hooks: dict[str, Hook] = {}
    wanted = {"matchExpressions": [{"key": "role", "operator": "In", "values": ["x", "y"]}]}
    webhooks = [
        among("all"),
        among(
            "everything", rules=[CONFIG_MAPS | {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]
        ),
        among("creations", rules=[CONFIG_MAPS | {"operations": ["CREATE"]}]),
        among("secrets", rules=[CONFIG_MAPS | {"resources": ["secrets"]}]),
        among("cluster", rules=[CONFIG_MAPS | {"scope": "Cluster"}]),
        among("parts", rules=[CONFIG_MAPS | {"resources": ["configmaps/status"]}]),
        among("other-version", rules=[CONFIG_MAPS | {"apiVersions": ["v2"]}]),
        among("labelled", objectSelector=wanted),
        among("elsewhere", namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}),
        among(
            "conditional",
            matchConditions=[
                {"name": "not-deleted", "expression": "request.operation != 'DELETE'"},
                {"name": "data", "expression": "has(object.data) && object.data.a == 'b'"},
            ],
        ),
    ]
    async with registered(api, *webhooks):
        await until_asked(api, hooks["all"])
        await new_map(api, "plain")
        await new_map(api, "special", labels={"role": "x"})
        await api.patch(maps(api, "special"), {"metadata": {"labels": {"role": "z"}}, "data": {"a": "c"}})
        await api.patch(maps(api, "special"), {"data": {"a": "d"}})
        await api.delete(maps(api, "plain"))
    heard = {name: told(hook, "plain") + told(hook, "special") for name, hook in hooks.items()}
    everything = ["CREATE", "DELETE", "CREATE", "UPDATE", "UPDATE"]
    assert heard == {
        "all": everything,
        "everything": everything,
        "creations": ["CREATE", "CREATE"],
        "secrets": [],
        "cluster": [],
        "parts": [],
        "other-version": [],
        # What it was counts as much as what it becomes.
        "labelled": ["CREATE", "UPDATE"],
        "elsewhere": [],
        "conditional": ["CREATE", "CREATE"],
    }


async def test_a_condition_that_has_no_value_stops_the_write_unless_the_webhook_may_be_left_out(
    api: Api, server: WebhookServer
) -> None:
    known, hook = server.hook(path="/known"), server.hook()
    expression = "object.metadata.name == 'm' && object.data.nothing == 'x'"
    conditions = [{"name": "c", "expression": expression}]
    for policy, code in (("Fail", 403), ("Ignore", 201)):
        picky = webhook(
            api, "x.example.com", server, hook.url, matchConditions=conditions, failurePolicy=policy
        )
        async with registered(api, webhook(api, "known.example.com", server, known.url), picky):
            await until_asked(api, known)
            answer = await new_map(api, "m", dryRun="All")
            assert answer.code == code
            if code == 403:
                assert f"expression '{expression}' resulted in error" in answer.body["message"]
                assert "no such key: nothing" in answer.body["message"]
        known.reviews.clear()
    assert told(hook, "m") == []


async def test_a_part_of_an_object_is_heard_of_by_those_who_name_it(api: Api, server: WebhookServer) -> None:
    status, whole = server.hook(path="/status"), server.hook(path="/whole")
    hosts = {"apiGroups": ["metal3.io"], "apiVersions": ["v1alpha1"], "operations": ["UPDATE"]}
    async with registered(
        api,
        webhook(
            api,
            "s.example.com",
            server,
            status.url,
            rules=[CONFIG_MAPS, hosts | {"resources": ["baremetalhosts/status"]}],
        ),
        webhook(
            api,
            "w.example.com",
            server,
            whole.url,
            rules=[CONFIG_MAPS, hosts | {"resources": ["baremetalhosts"]}],
        ),
    ):
        await until_asked(api, status, whole)
        await api.new_host("h1")
        changed = await api.patch(f"{api.host('h1')}/status", {"status": a_status()})
        assert changed.code == 200, changed.body
        assert (await api.patch(api.host("h1"), {"spec": {"description": "x"}})).code == 200
    assert status.requests
    for request in once_a_version(status):
        assert (request["subResource"], request["requestSubResource"]) == ("status", "status")
        assert request["object"]["status"]["operationalStatus"] == "OK"
        assert "status" not in request["oldObject"]
    assert whole.requests
    for request in once_a_version(whole):
        assert "subResource" not in request
        assert request["object"]["spec"]["description"] == "x"


def once_a_version(hook: Hook) -> list[dict[str, Any]]:
    """What a webhook was asked. A server may begin a change with a copy that is older than the object, see that when it writes,
    and begin again: it asks once for each version that it began with."""
    versions = [request["oldObject"]["metadata"]["resourceVersion"] for request in hook.requests]
    assert len(set(versions)) == len(versions)
    return hook.requests


async def test_a_webhook_that_knows_one_version_hears_of_the_others_in_that_version(
    api: Api, server: WebhookServer
) -> None:
    group = f"w{uuid.uuid4().hex[:8]}.example.com"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }
    assert (await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)).code == 201
    path = f"/apis/{group}/v2/namespaces/{api.namespace}/things"
    thing = {"apiVersion": f"{group}/v2", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}}

    async def taken() -> bool:
        return (await api.post(path, thing, dryRun="All")).code == 201

    await eventually(taken)
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": ["things"]}
    kind, exact = server.hook(path="/kind"), server.hook(path="/exact")
    changed = patch({"op": "replace", "path": "/spec/a", "value": 2})
    async with (
        registered(
            api,
            webhook(api, "k.example.com", server, kind.url, rules=[CONFIG_MAPS, rule]),
            webhook(api, "e.example.com", server, exact.url, rules=[CONFIG_MAPS, rule], matchPolicy="Exact"),
            kind=MUTATING,
        ),
    ):
        await until_asked(api, kind, exact)
        kind.answer = lambda request: (
            changed(request) if request["kind"]["kind"] == "Thing" else allow(request)
        )
        answer = await api.post(path, thing)
        assert (answer.body["apiVersion"], answer.body["spec"]) == (f"{group}/v2", {"a": 2})
    (request,) = kind.requests
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
    assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v1", "v2")
    assert request["object"]["apiVersion"] == f"{group}/v1"
    assert exact.requests == []
    await api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{group}")


async def test_a_rehearsal_is_told_as_one(api: Api, server: WebhookServer) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        await new_map(api, "m", dryRun="All")
        (request,) = hook.requests
    assert request["dryRun"] is True
    assert request["options"]["dryRun"] == ["All"]


async def test_webhooks_are_never_asked_about_webhooks(api: Api, server: WebhookServer) -> None:
    hook = server.hook()
    jealous = webhook(
        api,
        "x.example.com",
        server,
        hook.url,
        rules=[
            CONFIG_MAPS,
            CONFIG_MAPS | {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]},
        ],
    )
    async with registered(api, jealous) as path:
        await until_asked(api, hook)
        hook.answer = deny(message="never")
        assert (await new_map(api, "m")).code == 400
        assert (await api.patch(path, {"metadata": {"labels": {"a": "b"}}})).code == 200
        async with registered(api, webhook(api, "y.example.com", server, hook.url), name="other"):
            pass
        assert (await api.delete(path)).code == 200


async def test_a_change_made_while_webhooks_are_asked_is_not_lost(api: Api, server: WebhookServer) -> None:
    hook = server.hook()
    async with registered(api, webhook(api, "x.example.com", server, hook.url)):
        await until_asked(api, hook)
        await new_map(api, "m")
        arrived, release = asyncio.Event(), asyncio.Event()

        async def slow(request: Json) -> Json:
            if request["object"]["data"].get("slow") and not release.is_set():
                arrived.set()
                await release.wait()
            return {"allowed": True}

        hook.answer = slow
        waiting = asyncio.create_task(api.patch(maps(api, "m"), {"data": {"slow": "1"}}))
        await arrived.wait()
        assert (await api.patch(maps(api, "m"), {"data": {"fast": "1"}})).code == 200
        release.set()
        assert (await waiting).body["data"] == {"a": "b", "fast": "1", "slow": "1"}


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"name": "no-dots"}, "webhooks[0].name"),
        ({"clientConfig": {}}, "webhooks[0].clientConfig"),
        ({"clientConfig": {"url": "http://127.0.0.1/"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {"url": "https:///x"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {"url": "https://me:secret@127.0.0.1/"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {"url": "https://127.0.0.1/?a=b"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {"url": "https://127.0.0.1/#a"}}, "webhooks[0].clientConfig.url"),
        ({"sideEffects": "Some"}, "webhooks[0].sideEffects"),
        ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
        ({"admissionReviewVersions": ["v9"]}, "webhooks[0].admissionReviewVersions"),
        (
            {"matchConditions": [{"name": "c", "expression": "object."}]},
            "webhooks[0].matchConditions[0].expression",
        ),
        (
            {"matchConditions": [{"name": "c", "expression": "nosuch(object)"}]},
            "webhooks[0].matchConditions[0].expression",
        ),
        (
            {"matchConditions": [{"name": "c", "expression": "1"}]},
            "webhooks[0].matchConditions[0].expression",
        ),
    ],
)
async def test_a_configuration_that_cannot_work_is_refused(
    api: Api, server: WebhookServer, part: Json, field: str
) -> None:
    body = {
        "metadata": {"name": f"{api.namespace}-bad"},
        "webhooks": [webhook(api, "x.example.com", server, server.url) | part],
    }
    answer = await api.post(f"{REGISTRATION}/validatingwebhookconfigurations", body, dryRun="All")
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert [found["field"] for found in answer.body["details"]["causes"]] == [field]
