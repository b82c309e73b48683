"""A webhook of somebody else, which denies what it is told to, with the code that it is told to."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from aiohttp import web

from ingot.api.meta import Object, Resource
from ingot.kube import Client
from ingot.trust import Authority

_CONFIGURATIONS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    type=Object,
    namespaced=False,
)
WORDS = "the change board has not agreed"


class Judge:
    def __init__(self) -> None:
        self.denies = True
        self.asked = 0


@asynccontextmanager
async def refusing(
    client: Client, folder: Path, *, resource: str, group: str, namespace: str, code: int | None
) -> AsyncIterator[Judge]:
    """Nobody makes or changes objects of this kind in the namespace while the judge denies it. `code`: None as the API has it."""
    judge = Judge()

    async def answer(request: web.BaseRequest) -> web.Response:
        review = await request.json()
        allowed = review["request"].get("namespace") != namespace or not judge.denies
        judge.asked += not allowed
        verdict = {"uid": review["request"]["uid"], "allowed": allowed}
        if not allowed:
            verdict["status"] = {"message": WORDS, **({"code": code} if code is not None else {})}
        head = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        return web.json_response({**head, "response": verdict})

    certificate = Authority(folder / "strange").issue(folder, "judge", ["127.0.0.1"])
    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=1)
    await runner.setup()
    name = f"judge-{uuid4().hex[:12]}"
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.server_context()).start()
        webhook = {
            "name": "judge.example.com",
            "clientConfig": {
                "caBundle": base64.b64encode(certificate.ca_file.read_bytes()).decode(),
                "url": f"https://127.0.0.1:{runner.addresses[0][1]}/",
            },
            "rules": [
                {
                    "operations": ["CREATE", "UPDATE"],
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "resources": [resource],
                }
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        made = await client.create(_CONFIGURATIONS, {"metadata": {"name": name}, "webhooks": [webhook]})
        try:
            yield judge
        finally:
            await client.delete(_CONFIGURATIONS, made.key)
    finally:
        await runner.cleanup()
