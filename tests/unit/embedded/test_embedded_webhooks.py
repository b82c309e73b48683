"""Webhooks of others, as far as only the embedded API does it so: Services without a network, and answers nobody should give."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from running_server import Caller, served

from ingot.trust import Authority

Json = dict[str, Any]
CORE = "/api/v1/namespaces/default"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


class Hook:
    """A webhook that answers as it is told, and where it listens."""

    def __init__(self, port: int, ca_bundle: str) -> None:
        self.port = port
        self.ca_bundle = ca_bundle
        self.asked: list[str] = []
        self.answer: Callable[[Json], web.Response] | None = None

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
