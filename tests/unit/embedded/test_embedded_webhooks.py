"""Webhooks of others, as far as only the embedded API does it so: Services without a network, and answers nobody should give."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from running_server import WIDGETS, Caller, served, widget_crd

from ingot.trust import Authority

Json = dict[str, Any]
CORE = "/api/v1/namespaces/default"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
CONFIGURATIONS = f"{REGISTRATION}/validatingwebhookconfigurations"
MUTATING = f"{REGISTRATION}/mutatingwebhookconfigurations"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


class Hook:
    """A webhook that answers as it is told, and where it listens."""

    def __init__(self, port: int, ca_bundle: str) -> None:
        self.port = port
        self.ca_bundle = ca_bundle
        self.asked: list[str] = []
        self.answer: Callable[[Json], web.Response] | None = None
        # What happens before it answers.
        self.meanwhile: Callable[[Json], Awaitable[object]] | None = None

    def configuration(self, **client: Any) -> Json:
        webhook = {
            "name": "x.example.com",
            "clientConfig": {"caBundle": self.ca_bundle, **client},
            "rules": [RULE],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        return {"metadata": {"name": "x"}, "webhooks": [webhook]}


@contextlib.asynccontextmanager
async def hook(folder: Path) -> AsyncIterator[Hook]:
    certificate = Authority(folder / "strange").issue(folder, "hook", ["127.0.0.1", "hook.default.svc"])
    found: list[Hook] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        (asked,) = found
        asked.asked.append(request.path)
        review = await request.json()
        if asked.meanwhile is not None:
            await asked.meanwhile(review["request"])
        if asked.answer is not None:
            return asked.answer(review)
        head = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        return web.json_response({**head, "response": {"uid": review["request"]["uid"], "allowed": True}})

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.server_context()).start()
        bundle = base64.b64encode(certificate.ca_file.read_bytes()).decode()
        found.append(Hook(runner.addresses[0][1], bundle))
        yield found[0]
    finally:
        await runner.cleanup()


async def created(api: Caller, name: str) -> tuple[int, Any]:
    return await api.call("POST", f"{CORE}/configmaps", {"metadata": {"name": name}})


async def test_a_service_leads_to_a_ready_pod_that_it_selects(tmp_path: Path) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        service = {"namespace": "default", "name": "hook", "path": "/judge", "port": 8443}
        code, _ = await api.call("POST", CONFIGURATIONS, there.configuration(service=service))
        assert code == 201
        code, answer = await created(api, "a")
        assert (code, answer["message"].rpartition(": ")[2]) == (500, 'service "hook" not found')

        ports = [{"port": 8443, "targetPort": "judge"}]
        body = {"metadata": {"name": "hook"}, "spec": {"selector": {"app": "hook"}, "ports": ports}}
        assert (await api.call("POST", f"{CORE}/services", body))[0] == 201
        code, answer = await created(api, "a")
        assert answer["message"].endswith('no endpoints available for service "hook"')

        container = {"name": "c", "image": "x", "ports": [{"name": "judge", "containerPort": there.port}]}
        pod = {"metadata": {"name": "p", "labels": {"app": "hook"}}, "spec": {"containers": [container]}}
        assert (await api.call("POST", f"{CORE}/pods", pod))[0] == 201
        assert (await created(api, "a"))[0] == 500
        ready = {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
        assert (await api.call("PATCH", f"{CORE}/pods/p/status", {"status": ready}))[0] == 200
        assert (await created(api, "a"))[0] == 201
        assert there.asked == ["/judge"]


async def test_a_service_with_another_port_than_the_webhook_names_is_told(tmp_path: Path) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        service = {"namespace": "default", "name": "hook"}
        await api.call("POST", CONFIGURATIONS, there.configuration(service=service))
        body = {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 80}]}}
        assert (await api.call("POST", f"{CORE}/services", body))[0] == 201
        _, answer = await created(api, "a")
        assert answer["message"].endswith('service "hook" has no port 443')


async def test_an_external_name_is_where_a_service_says_it_is_and_has_to_prove_it(tmp_path: Path) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        service = {"namespace": "default", "name": "hook", "port": there.port}
        await api.call("POST", CONFIGURATIONS, there.configuration(service=service))
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": there.port}]}
        assert (await api.call("POST", f"{CORE}/services", {"metadata": {"name": "hook"}, "spec": spec}))[
            0
        ] == 201
        assert (await created(api, "a"))[0] == 201
        # Another Service leads to the same place, where nobody has a certificate for its name.
        await api.call("POST", f"{CORE}/services", {"metadata": {"name": "other"}, "spec": spec})
        other = there.configuration(service={**service, "name": "other"})
        assert (await api.call("PATCH", f"{CONFIGURATIONS}/x", {"webhooks": other["webhooks"]}))[0] == 200
        code, answer = await created(api, "b")
        assert code == 500
        assert "failed to verify certificate" in answer["message"]


async def test_a_webhook_cannot_send_the_question_elsewhere(tmp_path: Path) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        url = f"https://127.0.0.1:{there.port}/a"
        await api.call("POST", CONFIGURATIONS, there.configuration(url=url))
        there.answer = lambda review: web.Response(status=307, headers={"Location": url.replace("/a", "/b")})
        code, answer = await created(api, "a")
        assert code == 500
        assert "an error on the server" in answer["message"]
        assert there.asked == ["/a"]


async def test_an_answer_without_end_is_given_up(tmp_path: Path) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        await api.call("POST", CONFIGURATIONS, there.configuration(url=f"https://127.0.0.1:{there.port}/a"))
        there.answer = lambda review: web.Response(body=b" " * (9 * 1024 * 1024))
        code, answer = await created(api, "a")
        assert code == 500
        assert "larger than" in answer["message"]


@pytest.mark.parametrize(
    "part",
    [
        {"rules": None},
        {"rules": [{}]},
        {"clientConfig": None},
        {"clientConfig": {"service": {}}},
        {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
        {"objectSelector": {"matchExpressions": [{"operator": "In"}]}},
        {"matchConditions": [{"name": "c"}]},
        {"name": None},
    ],
    ids=str,
)
async def test_a_configuration_that_cannot_be_read_never_stops_every_write(
    tmp_path: Path, part: Json
) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        url = f"https://127.0.0.1:{there.port}/a"
        body = there.configuration(url=url)
        body["webhooks"][0] |= part
        code, _ = await api.call("POST", CONFIGURATIONS, body)
        assert code in (201, 400, 422)
        assert (await created(api, "a"))[0] == 201
        if code == 201:
            assert (await api.call("DELETE", f"{CONFIGURATIONS}/x"))[0] == 200


async def test_webhooks_are_known_after_a_restart(tmp_path: Path) -> None:
    async with hook(tmp_path) as there:
        async with served(tmp_path) as api:
            url = f"https://127.0.0.1:{there.port}/a"
            assert (await api.call("POST", CONFIGURATIONS, there.configuration(url=url)))[0] == 201
        async with served(tmp_path) as api:
            there.answer = lambda review: web.Response(status=500)
            assert (await created(api, "a"))[0] == 500
            assert there.asked == ["/a"]
            assert (await api.call("DELETE", f"{CONFIGURATIONS}/x"))[0] == 200
            assert (await created(api, "a"))[0] == 201


def patching(*operations: Json) -> Callable[[Json], web.Response]:
    text = base64.b64encode(json.dumps(operations).encode()).decode()

    def answer(review: Json) -> web.Response:
        response = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": text,
        }
        return web.json_response({**review, "request": None, "response": response})

    return answer


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/metadata"},
        {"op": "replace", "path": "/metadata", "value": "m"},
        {"op": "replace", "path": "/metadata/labels", "value": ["a"]},
        {"op": "replace", "path": "/metadata/labels", "value": {"a": 1}},
        {"op": "replace", "path": "", "value": {}},
        {"op": "replace", "path": "/data", "value": 1},
        {"op": "replace", "path": "/kind", "value": 1},
    ],
    ids=str,
)
async def test_whatever_a_webhook_makes_of_an_object_the_next_one_is_asked_or_the_write_refused(
    tmp_path: Path, operation: Json
) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        assert (await created(api, "there"))[0] == 201
        for name in ("a", "b"):
            body = there.configuration(url=f"https://127.0.0.1:{there.port}/{name}")
            body["metadata"]["name"] = name
            body["webhooks"][0] |= {
                "rules": [{**RULE, "operations": ["*"]}],
                "objectSelector": {"matchExpressions": [{"key": "left-out", "operator": "DoesNotExist"}]},
            }
            assert (await api.call("POST", MUTATING, body))[0] == 201
        there.answer = patching(operation)
        body = {"metadata": {"name": "new", "labels": {"a": "b"}}}
        for answer in (
            await api.call("POST", f"{CORE}/configmaps", body),
            await api.call("PATCH", f"{CORE}/configmaps/there", {"data": {"a": "b"}}),
        ):
            code, said = answer
            assert code in (200, 201) or "did not expect" not in said["message"], answer
            assert code in (200, 201, 400, 422, 500)


async def test_a_webhook_cannot_bring_a_new_object_into_the_world_with_a_status(tmp_path: Path) -> None:
    async with served(tmp_path, crds=[widget_crd()]) as api, hook(tmp_path) as there:
        body = there.configuration(url=f"https://127.0.0.1:{there.port}/a")
        body["webhooks"][0]["rules"] = [{**RULE, "apiGroups": ["example.com"], "resources": ["widgets"]}]
        assert (await api.call("POST", MUTATING, body))[0] == 201
        there.answer = patching({"op": "add", "path": "/status", "value": {"phase": "Ready"}})
        head = {"apiVersion": "example.com/v1", "kind": "Widget"}
        code, made = await api.call("POST", WIDGETS, {**head, "metadata": {"name": "w"}, "spec": {}})
        assert (code, "status" in made) == (201, False)
        assert there.asked == ["/a"]


async def test_a_webhook_may_write_objects_that_it_is_asked_about_itself(tmp_path: Path) -> None:
    """However many writes wait for it: theirs need no turn that the others hold."""
    writes = 40
    async with served(tmp_path) as api, hook(tmp_path) as there:
        body = there.configuration(url=f"https://127.0.0.1:{there.port}/a")
        body["webhooks"][0]["timeoutSeconds"] = 30
        assert (await api.call("POST", CONFIGURATIONS, body))[0] == 201
        waiting, all_wait = 0, asyncio.Event()

        async def write_too(request: Json) -> None:
            nonlocal waiting
            if request["name"].startswith("outer"):
                waiting += 1
                if waiting == writes:
                    all_wait.set()
                await all_wait.wait()
                assert (await created(api, request["name"].replace("outer", "inner")))[0] == 201

        there.meanwhile = write_too
        answers = await asyncio.gather(*(created(api, f"outer-{number}") for number in range(writes)))
        assert {code for code, _ in answers} == {201}


async def test_two_who_apply_a_new_object_at_once_both_have_it(tmp_path: Path) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        assert (
            await api.call(
                "POST", CONFIGURATIONS, there.configuration(url=f"https://127.0.0.1:{there.port}/a")
            )
        )[0] == 201
        both = asyncio.Event()

        async def wait_for_the_other(request: Json) -> None:
            if len(there.asked) == 2:
                both.set()
            await both.wait()

        there.meanwhile = wait_for_the_other
        answers = await asyncio.gather(applied(api, "one"), applied(api, "other"))
        assert sorted(answers) == [200, 201]
        _, made = await api.call("GET", f"{CORE}/configmaps/m")
        assert made["data"] == {"one": "1", "other": "1"}


async def applied(api: Caller, who: str) -> int:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {who: "1"}}
    async with api.session.patch(
        f"{api.url}{CORE}/configmaps/m?fieldManager={who}",
        data=json.dumps(document),
        headers={"Content-Type": "application/apply-patch+yaml"},
    ) as response:
        return response.status


async def test_warnings_about_a_deletion_that_is_decided_again_are_told_once(tmp_path: Path) -> None:
    async with served(tmp_path) as api, hook(tmp_path) as there:
        assert (await created(api, "m"))[0] == 201
        body = there.configuration(url=f"https://127.0.0.1:{there.port}/a")
        body["webhooks"][0]["rules"] = [{**RULE, "operations": ["DELETE"]}]
        assert (await api.call("POST", CONFIGURATIONS, body))[0] == 201

        async def change_it(request: Json) -> None:
            if len(there.asked) == 1:
                await api.call("PATCH", f"{CORE}/configmaps/m", {"data": {"a": "b"}})

        def answer(review: Json) -> web.Response:
            response = {"uid": review["request"]["uid"], "allowed": True, "warnings": ["beware"]}
            return web.json_response({**review, "request": None, "response": response})

        there.meanwhile, there.answer = change_it, answer
        async with api.session.delete(f"{api.url}{CORE}/configmaps/m") as response:
            assert response.status == 200
            assert response.headers.getall("Warning") == ['299 - "beware"']
        assert there.asked == ["/a", "/a"]


async def test_a_webhook_that_hangs_up_on_a_connection_it_kept_is_asked_on_a_new_one(tmp_path: Path) -> None:
    """It may restart, or tire of a connection, in the moment in which it is asked again."""
    certificate = Authority(tmp_path / "strange").issue(tmp_path, "hook", ["127.0.0.1"])
    connections = 0

    async def one_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in head.lower().splitlines() if line.startswith(b"content-length:"))
        review = json.loads(await reader.readexactly(int(size.partition(b":")[2])))
        review["response"] = {"uid": review.pop("request")["uid"], "allowed": True}
        said = json.dumps(review).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(said), said))
        # The next question comes, and is not answered.
        await reader.read(1)
        writer.transport.abort()

    server = await asyncio.start_server(one_answer, "127.0.0.1", 0, ssl=certificate.server_context())
    async with server, served(tmp_path) as api:
        bundle = base64.b64encode(certificate.ca_file.read_bytes()).decode()
        there = Hook(server.sockets[0].getsockname()[1], bundle)
        url = f"https://127.0.0.1:{there.port}/a"
        assert (await api.call("POST", CONFIGURATIONS, there.configuration(url=url)))[0] == 201
        codes = [(await created(api, name))[0] for name in ("a", "b", "c")]
        assert (codes, connections) == ([201, 201, 201], 3)


async def test_a_webhook_that_is_not_there_cannot_keep_the_server_from_starting(tmp_path: Path) -> None:
    """A newer release may need a namespace that an older one did not; and who could answer may wait for the server."""
    async with served(tmp_path) as api, hook(tmp_path) as there:
        body = there.configuration(url=f"https://127.0.0.1:{there.port}/a")
        body["webhooks"][0]["rules"] = [{**RULE, "resources": ["*"]}]
        assert (await api.call("POST", CONFIGURATIONS, body))[0] == 201
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database, database:
        found = database.execute("DELETE FROM object WHERE resource = 'namespaces' AND name = 'kube-system'")
        assert found.rowcount == 1
    async with served(tmp_path) as api:
        assert (await api.call("GET", "/api/v1/namespaces/kube-system"))[0] == 200
        code, answer = await created(api, "a")
        assert (code, "failed calling webhook" in answer["message"]) == (500, True)
