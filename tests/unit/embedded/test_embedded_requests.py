"""Requests that no honest client sends: each gets an answer of its own, none an unexpected error, none a secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from running_server import SECRETS, Caller, calling

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.crd import crd
from ingot.embedded.server import Running, serve
from ingot.trust import client_context

HOSTS = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts"


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with serve(tmp_path, crds=[crd(BARE_METAL_HOSTS)]) as running:
        yield running


@pytest.fixture
async def api(running: Running) -> AsyncIterator[Caller]:
    async with calling(running) as caller:
        yield caller


async def status_of(running: Running, headers: bytes) -> int:
    """The status of a GET of all namespaces with headers that no HTTP library would send."""
    place = urlsplit(running.url)
    context = client_context(running.ca_file)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, ssl=context)
    writer.write(
        b"GET /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + b"\r\n\r\n"
    )
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])


@pytest.mark.parametrize("token", [b"\xff\xfe", b"", b" ", b"\xc3\xa9"])
async def test_a_token_of_any_bytes_is_no_more_than_unauthorized(running: Running, token: bytes) -> None:
    assert await status_of(running, b"Authorization: Bearer " + token) == 401


@pytest.mark.parametrize("number", ["9" * 30, "9" * 400, "9" * 5000, "٣", "-٣", "1.5"])
@pytest.mark.parametrize("name", ["limit", "resourceVersion"])
async def test_a_number_that_is_none_is_a_bad_request(api: Caller, name: str, number: str) -> None:
    code, body = await api.call("GET", SECRETS, **{name: number})
    assert (code, body["reason"]) == (400, "BadRequest")
    assert body["message"].startswith(f"{name}: Invalid value: ")


async def test_a_watch_that_wants_to_last_for_ever_is_a_bad_request(api: Caller) -> None:
    code, _ = await api.call("GET", SECRETS, watch="true", timeoutSeconds="9" * 400)
    assert code == 400


@pytest.mark.parametrize("name", ["data", "stringData"])
@pytest.mark.parametrize("value", [[1], ["a"], "text", 5, True])
async def test_values_of_a_secret_that_are_no_map_are_a_bad_request(
    api: Caller, name: str, value: Any
) -> None:
    code, body = await api.call("POST", SECRETS, {"metadata": {"name": "s"}, name: value})
    assert code == 400
    assert name in body["message"]


@pytest.mark.parametrize(
    "annotation",
    ["baremetalhost.metal3.io/status", "reboot.metal3.io", "inspect.metal3.io/hardwaredetails"],
)
async def test_an_annotation_nested_beyond_reason_is_invalid(api: Caller, annotation: str) -> None:
    host = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": "h", "annotations": {annotation: '{"a":' + "[" * 100_000}},
        "spec": {"online": True, "inspectionMode": "disabled"},
    }
    code, body = await api.call("POST", HOSTS, host)
    assert (code, body["reason"]) == (422, "Invalid")
    assert annotation in body["message"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/x/y"},
        {"op": "add", "path": "/data/x/y", "value": 1},
        {"op": "replace", "path": "/data/x", "value": 1},
        {"op": "copy", "from": "/data/q", "path": "/data/z"},
        {"op": "move", "from": "/data/q", "path": "/data/z"},
        {"op": "add", "path": "/data/p/x", "value": 1},
        {"op": "test", "path": "/data/p/x", "value": 1},
        {"op": "copy", "from": 5, "path": "/data/z"},
    ],
)
async def test_a_json_patch_that_does_not_fit_says_where_and_shows_no_values(
    api: Caller, operation: Any
) -> None:
    await api.call("POST", SECRETS, {"metadata": {"name": "s"}, "data": {"p": "aHVudGVyMg=="}})
    headers = {"Content-Type": "application/json-patch+json"}
    async with api.session.patch(
        f"{api.url}{SECRETS}/s", data=json.dumps([operation]), headers=headers
    ) as answer:
        body = await answer.json()
    assert (answer.status, body["reason"]) == (422, "Invalid")
    assert "aHVudGVyMg==" not in body["message"]


async def test_a_strategic_patch_that_deletes_what_is_no_list_is_a_bad_request(api: Caller) -> None:
    await api.call("POST", SECRETS, {"metadata": {"name": "s", "finalizers": ["example.com/a"]}})
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}
    async with api.session.patch(f"{api.url}{SECRETS}/s", data=json.dumps(patch), headers=headers) as answer:
        assert answer.status == 400
