"""Somebody else's admission webhooks: a real HTTPS server that remembers what it was asked, and can misbehave.

Each hook is a path of the server with an answer of its own. A hook is registered for the namespace of one test only, and
`registered` returns when the API has begun to ask it: a cluster takes a moment for that.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from kubernetes_api import Api, eventually

from ingot.trust import Authority

Json = dict[str, Any]
Answer = Callable[[Json], "Json | web.Response | Awaitable[Json | web.Response]"]
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
CONFIG_MAPS = {
    "operations": ["*"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
}
# No test looks at these: what is asked for until the hook is asked, and what a cluster puts into each namespace.
PROBE = "probe-of-the-webhook"
NOT_OURS = {PROBE, "kube-root-ca.crt"}


def allow(request: Json) -> Json:
    return {"allowed": True}


def deny(**status: Any) -> Answer:
    return lambda request: {"allowed": False, "status": status}


def patch(*operations: Json, **more: Any) -> Answer:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": text, **more}


@dataclass
class Hook:
    """One path of the server, and what came in there."""

    url: str
    answer: Answer
    reviews: list[Json] = field(default_factory=list)

    @property
    def requests(self) -> list[Json]:
        """What it heard of. A server that decided on what was no longer so asks again; that counts once."""
        heard: dict[str, Json] = {}
        for review in self.reviews:
            request = review["request"]
            if request.get("name") not in NOT_OURS:
                heard[_what_is_asked(request)] = request
        return list(heard.values())


def _what_is_asked(request: Json) -> str:
    wanted = {key: value for key, value in (request["object"] or {}).items() if key != "metadata"}
    names = [request.get(key) for key in ("operation", "resource", "subResource", "namespace", "name")]
    return json.dumps([names, wanted, "deletionTimestamp" in str(request["object"])], sort_keys=True)


class WebhookServer:
    def __init__(self, ca_bundle: str) -> None:
        self.ca_bundle = ca_bundle
        self.url = ""
        self.hooks: dict[str, Hook] = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, folder: Path) -> AsyncIterator[WebhookServer]:
        authority = Authority(folder / "ca")
        certificate = authority.issue(folder, "webhook", ["127.0.0.1", "localhost", "hook.test.svc"])
        server = cls(base64.b64encode(certificate.ca_file.read_bytes()).decode())
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/{path:.*}", server._asked)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.server_context())
            await site.start()
            server.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
            yield server
        finally:
            await runner.cleanup()

    def hook(self, answer: Answer = allow, *, path: str = "/hook") -> Hook:
        self.hooks[path] = Hook(self.url + path, answer)
        return self.hooks[path]

    async def _asked(self, request: web.Request) -> web.Response:
        review = await request.json()
        hook = self.hooks[request.path]
        hook.reviews.append({**review, "query": dict(request.query), "headers": dict(request.headers)})
        answer = hook.answer(review["request"])
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, web.Response):
            return answer
        head = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        return web.json_response({**head, "response": {"uid": review["request"]["uid"], **answer}})


def webhook(api: Api, name: str, server: WebhookServer | None, url: str = "", **more: Any) -> Json:
    """A webhook of one name for the ConfigMaps of this test's namespace."""
    client: Json = {"url": url} if url else {}
    if server is not None:
        client["caBundle"] = server.ca_bundle
    return {
        "name": name,
        "clientConfig": client,
        "rules": [CONFIG_MAPS],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}},
        **more,
    }


@contextlib.asynccontextmanager
async def registered(
    api: Api, *webhooks: Json, kind: str = VALIDATING, name: str = "a"
) -> AsyncIterator[str]:
    """Make the webhooks known, and wait until the API acts on them."""
    path = f"{REGISTRATION}/{kind.lower()}s"
    full = f"{api.namespace}-{name}"
    body = {"metadata": {"name": full}, "webhooks": list(webhooks)}
    made = await api.post(path, body)
    assert made.code == 201, made.body
    try:
        yield f"{path}/{full}"
    finally:
        await api.delete(f"{path}/{full}")


async def until_asked(api: Api, *hooks: Hook, labels: Json | None = None) -> None:
    """Try until all the hooks are asked, then forget that they were."""
    probe = {"metadata": {"name": PROBE, "namespace": api.namespace, "labels": labels or {}}}
    path = f"/api/v1/namespaces/{api.namespace}/configmaps"

    async def asked() -> bool:
        await api.post(path, probe, dryRun="All")
        return all(hook.reviews for hook in hooks)

    await eventually(asked)
    for hook in hooks:
        hook.reviews.clear()
