"""The webhook's registration: what stands in it, and that it stays so."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from kube_scripted_api import WIDGET, ScriptedApi, status

from ingot.api.meta import Key
from ingot.kube import Client
from ingot.kube.admission import Registration, Service, Subject, Wish
from ingot.kube.admission.registration import CONDITION, webhooks

Eventually = Callable[[Callable[[], bool]], Awaitable[None]]
CONFIGURATIONS = "validatingwebhookconfigurations"
KEY = Key("", "ingot")
WISH = Wish(subjects=[Subject(WIDGET)], endpoint="https://10.0.0.1:9443/")


class Authority:
    """A certificate authority that can be renewed."""

    def __init__(self) -> None:
        self.pem = b"-----first-----"

    def __call__(self) -> bytes:
        return self.pem


@pytest.fixture
def authority() -> Authority:
    return Authority()


@asynccontextmanager
async def kept(client: Client, authority: Authority, **options: Any) -> AsyncIterator[Registration]:
    registration = Registration(client, "ingot", WISH, ca_bundle=authority, **options)
    task = asyncio.create_task(registration.run())
    try:
        yield registration
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


def registered(api: ScriptedApi) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.objects.get((CONFIGURATIONS, KEY), {}).get("webhooks", [])
    return found


def bundle(api: ScriptedApi) -> bytes:
    [webhook] = registered(api)
    return base64.b64decode(webhook["clientConfig"]["caBundle"])


def test_a_webhook_says_whom_to_ask_about_what():
    [webhook] = webhooks(WISH, b"pem")
    assert webhook == {
        "name": "widget.test.ingot.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://10.0.0.1:9443/validate", "caBundle": "cGVt"},
        "rules": [
            {
                "apiGroups": ["test.ingot.dev"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["widgets"],
                "scope": "*",
            }
        ],
        "matchConditions": [CONDITION],
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }


def test_a_service_a_namespace_and_a_lenient_policy_are_said_as_the_api_wants_them():
    wish = Wish(
        subjects=[Subject(WIDGET, ("DELETE",))],
        endpoint=Service(namespace="metal", name="ingot"),
        namespace="rack",
        failure_policy="Ignore",
    )
    [webhook] = webhooks(wish, b"pem")
    assert webhook["clientConfig"] == {
        "service": {"namespace": "metal", "name": "ingot", "port": 443, "path": "/validate"},
        "caBundle": "cGVt",
    }
    assert webhook["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "rack"}}
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["rules"][0]["operations"] == ["DELETE"]


async def test_it_is_made_once_and_left_alone(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    async with kept(client, authority, look_every=0.01, check_every=0.02) as registration:
        assert registration.trouble
        await eventually(lambda: len(api.requests("GET")) > 5)
        assert registration.trouble == ""
    assert registered(api) == webhooks(WISH, b"-----first-----")
    assert len(api.requests("POST")) == 1
    assert not api.requests("PATCH")


async def test_a_renewed_authority_reaches_the_api_at_once(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    async with kept(client, authority, look_every=0.01):
        await eventually(lambda: bool(registered(api)))
        authority.pem = b"-----second-----"
        await eventually(lambda: bundle(api) == b"-----second-----")


async def test_what_somebody_changed_or_removed_is_mended(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    async with kept(client, authority, look_every=0.01, check_every=0.05):
        await eventually(lambda: bool(registered(api)))
        api._store(CONFIGURATIONS, KEY, {"webhooks": [{"name": "another"}]})
        await eventually(lambda: registered(api) == webhooks(WISH, authority.pem))
        api._remove(CONFIGURATIONS, KEY)
        await eventually(lambda: registered(api) == webhooks(WISH, authority.pem))


async def test_a_configuration_of_an_earlier_run_is_taken_over(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    api._store(CONFIGURATIONS, KEY, {"webhooks": webhooks(WISH, b"-----of another time-----")})
    async with kept(client, authority):
        await eventually(lambda: bundle(api) == authority.pem)


async def test_what_another_made_in_the_same_moment_is_looked_at_too(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    async def not_yet(request: web.Request) -> web.Response:
        api._store(CONFIGURATIONS, KEY, {"webhooks": webhooks(WISH, b"-----of another-----")})
        answer: web.Response = await status(404, "NotFound")(request)
        return answer

    api.faults.append(not_yet)
    async with kept(client, authority):
        await eventually(lambda: registered(api) == webhooks(WISH, authority.pem))


async def test_a_name_that_is_taken_and_not_to_be_found_is_trouble(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    api.faults += [status(404, "NotFound"), status(409, "AlreadyExists", "it is taken")] * 20
    async with kept(client, authority) as registration:
        await eventually(lambda: "it is taken" in registration.trouble)


async def test_trouble_is_told_and_tried_again(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    api.faults.append(status(403, "Forbidden", "you may not"))
    async with kept(client, authority) as registration:
        await eventually(lambda: "you may not" in registration.trouble)
        await eventually(lambda: not registration.trouble)
    assert registered(api)


async def test_two_who_register_together_do_not_quarrel(
    api: ScriptedApi, client: Client, authority: Authority, eventually: Eventually
):
    async with kept(client, authority) as one, kept(client, authority) as two:
        await eventually(lambda: not one.trouble and not two.trouble)
    assert registered(api) == webhooks(WISH, authority.pem)
