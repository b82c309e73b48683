"""The calls of agents: what is understood, and what goes no further."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingot.services.front.calls import (
    LARGEST_INSPECTION,
    AgentCall,
    Malformed,
    NotOurs,
    largest_body,
    understood,
)

NODE = "0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11"
MAC = "52:54:00:00:00:01"
VERSION = {"X-OpenStack-Ironic-API-Version": "1.68"}


def call(method: str, path: str, body: Any = None, **query: str) -> AgentCall:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return understood(method, path, query, VERSION, raw)


def inspection(**more: Any) -> dict[str, Any]:
    return {"inventory": {"interfaces": [{"mac_address": MAC, "name": "eno1"}], "disks": []}, **more}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/nodes"),
        ("GET", "/v1"),
        ("GET", "/v1/lookup/"),
        ("GET", "//v1/lookup"),
        ("POST", "/v1/lookup"),
        ("GET", f"/v1/heartbeat/{NODE}"),
        ("POST", "/v1/heartbeat/rack~h1"),
        ("POST", f"/v1/heartbeat/{NODE}/../../nodes"),
        ("POST", f"/v1/heartbeat/{NODE}\n"),
        ("PUT", f"/v1/nodes/{NODE}/states/power"),
        ("DELETE", f"/v1/nodes/{NODE}"),
        ("POST", "/v1/continue_inspection/x"),
    ],
)
def test_there_is_nothing_but_the_three_calls(method: str, path: str) -> None:
    with pytest.raises(NotOurs):
        call(method, path)
    assert largest_body(method, path) == 0


def test_a_look_up_is_passed_on_with_its_readable_addresses() -> None:
    found = call("GET", "/v1/lookup", addresses=f"{MAC.upper()},odd,,{MAC}")
    assert (found.method, found.path, dict(found.query)) == ("GET", "/v1/lookup", {"addresses": MAC})
    assert found.headers["X-OpenStack-Ironic-API-Version"] == "1.68"
    assert call("GET", "/v1/lookup", node_uuid=NODE.upper()).query == {"node_uuid": NODE}


@pytest.mark.parametrize(
    "query",
    [{}, {"addresses": "odd"}, {"node_uuid": "x"}, {"addresses": MAC, "fields": "driver_info"}],
)
def test_a_look_up_that_says_too_little_or_too_much_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Malformed):
        call("GET", "/v1/lookup", **query)


def test_a_heartbeat_is_made_anew_from_what_it_says() -> None:
    said = b'{"callback_url": "https://10.0.0.9:9999", "agent_token": "t", "agent_token": "u"}'
    found = call("POST", f"/v1/heartbeat/{NODE.upper()}", said)
    assert (found.path, found.who) == (f"/v1/heartbeat/{NODE}", NODE)
    assert found.body == b'{"callback_url":"https://10.0.0.9:9999","agent_token":"u"}'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b'{"callback_url": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        {"callback_url": "https://10.0.0.9:9999", "driver_info": {}},
        {"callback_url": {"a": 1}},
        {"callback_url": "file:///etc/passwd"},
        {"callback_url": "https://10.0.0.9\n.example"},
        {"callback_url": "https://[::1"},
        {"agent_token": "t"},
        b'{"callback_url": "\xff"}',
    ],
)
def test_what_is_no_heartbeat_goes_no_further(body: Any) -> None:
    with pytest.raises(Malformed):
        call("POST", f"/v1/heartbeat/{NODE}", body)


def test_inspection_data_may_hold_what_only_a_plug_in_knows() -> None:
    said = inspection(my_collector={"deep": [1, 2, {"x": None}]}, error="")
    found = call("POST", "/v1/continue_inspection", said)
    assert found.body is not None
    assert json.loads(found.body) == said
    assert found.who == MAC
    assert largest_body("POST", "/v1/continue_inspection") == LARGEST_INSPECTION


def nested(depth: int) -> bytes:
    return b'{"a": ' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        {},
        {"inventory": {}},
        {"inventory": {"interfaces": []}},
        {"inventory": {"interfaces": [{"name": "eno1"}]}},
        {"inventory": {"interfaces": "eno1"}},
        json.dumps(inspection(x=0)).encode().replace(b'"x": 0', b'"x": ' + b"9" * 5_000),
        json.dumps(inspection(x=0)).encode().replace(b'"x": 0', b'"x": NaN'),
        json.dumps(inspection(x=0)).encode().replace(b'"x": 0', b'"x": ' + nested(65)),
        json.dumps(inspection(x=0)).encode().replace(b'"x": 0', b'"x": ' + nested(50_000)),
    ],
)
def test_what_is_no_inspection_data_goes_no_further(body: Any) -> None:
    with pytest.raises(Malformed):
        call("POST", "/v1/continue_inspection", body)


def test_headers_that_are_not_what_they_should_be_are_not_passed_on() -> None:
    odd = {
        "X-OpenStack-Ironic-API-Version": "1.1\r\nX: y",
        "Authorization": "Basic x",
        "X-Forwarded-For": "::1",
    }
    found = understood("GET", "/v1/lookup", {"addresses": MAC}, odd, b"")
    assert found.headers == {"Accept": "application/json"}
