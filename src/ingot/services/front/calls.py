"""The calls that an agent may make, and what they must look like.

Pure. A call that is understood becomes an `AgentCall`, built from checked values; anything else is `NotOurs` (404: it does not
exist here) or `Malformed` (400, or 413). JSON is decoded and encoded again, so that Ironic never sees a document that our parser
read in another way, and a document that is nested without end goes no further than here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

LARGEST_HEARTBEAT: Final = 64 * 1024
# The data of a large machine is a few hundred kilobytes; its logs, packed and in base64, can add some megabytes, and a machine
# whose data are refused is never inspected. More than this is no machine, and takes memory: decoded it is many times as large.
LARGEST_INSPECTION: Final = 8 * 1024 * 1024
DEEPEST: Final = 64
_MOST_ADDRESSES: Final = 256

UUID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID: Final = re.compile(UUID, re.IGNORECASE)
# Ethernet, and the longer addresses of InfiniBand.
_MAC: Final = re.compile(r"[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}", re.IGNORECASE)
_VERSION: Final = re.compile(r"\d{1,3}\.\d{1,5}|latest")
_REQUEST_ID: Final = re.compile(r"req-[0-9a-f-]{1,64}", re.IGNORECASE)
_HEARTBEAT_PATH: Final = re.compile(rf"/v1/heartbeat/({UUID})", re.IGNORECASE)


class NotOurs(Exception):
    """There is no such call here."""


class Malformed(Exception):
    """The call is one of ours and cannot be what an agent says. The text may be shown to the caller."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A call as it goes on to Ironic. `who` is the same for the same machine, for counting."""

    method: str
    path: str
    who: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Heartbeat(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    callback_url: str
    agent_version: str | None = None
    agent_token: str | None = None
    agent_verify_ca: str | None = None
    agent_status: str | None = None
    agent_status_message: str | None = None


class Nic(msgspec.Struct):
    mac_address: str


class Inventory(msgspec.Struct):
    interfaces: list[Nic]


class InspectionData(msgspec.Struct):
    """What has to be there; agents with plug-ins of their own send more."""

    inventory: Inventory


def largest_body(method: str, path: str) -> int:
    """How much of a body is read at all."""
    if method == "POST" and path == "/v1/continue_inspection":
        return LARGEST_INSPECTION
    return LARGEST_HEARTBEAT if method == "POST" and _HEARTBEAT_PATH.fullmatch(path) else 0


def understood(
    method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
) -> AgentCall:
    """The call, or one of the exceptions above. Blocks for as long as it takes to read the body."""
    passed_on = _headers(headers)
    if (method, path) == ("GET", "/v1/lookup"):
        return _lookup(query, passed_on)
    if method == "POST" and (found := _HEARTBEAT_PATH.fullmatch(path)):
        return _heartbeat(found[1].lower(), query, passed_on, body)
    if (method, path) == ("POST", "/v1/continue_inspection"):
        return _inspection(query, passed_on, body)
    raise NotOurs


def _lookup(query: Mapping[str, str], headers: Mapping[str, str]) -> AgentCall:
    _only(query, "addresses", "node_uuid")
    addresses = [address for address in query.get("addresses", "").split(",") if address]
    if len(addresses) > _MOST_ADDRESSES:
        raise Malformed(f"addresses: {len(addresses)} are more than a machine has")
    # Ironic passes over an address that it cannot read; so does this, because real machines have odd ones.
    readable = sorted({address.lower() for address in addresses if _MAC.fullmatch(address)})
    node = _node(query)
    if not readable and not node:
        raise Malformed("addresses: none of them is a MAC address")
    given = {"addresses": ",".join(readable)} if readable else {}
    who = node.get("node_uuid") or readable[0]
    return AgentCall("GET", "/v1/lookup", who, given | node, headers=headers)


def _heartbeat(node: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> AgentCall:
    _only(query)
    try:
        heartbeat = msgspec.json.decode(body, type=Heartbeat)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Malformed(f"not a heartbeat: {error}") from error
    if heartbeat.callback_url and not _is_url(heartbeat.callback_url):
        raise Malformed("callback_url is not a URL of http or https")
    return AgentCall(
        "POST", f"/v1/heartbeat/{node}", node, body=msgspec.json.encode(heartbeat), headers=headers
    )


def _inspection(query: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> AgentCall:
    _only(query, "node_uuid")
    try:
        whole: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        data = msgspec.convert(whole, InspectionData)
        _refuse_depth(whole)
        again = msgspec.json.encode(whole)
    except (msgspec.MsgspecError, RecursionError, OverflowError, ValueError) as error:
        raise Malformed(f"not the data of an inspection: {error}") from error
    if not data.inventory.interfaces:
        raise Malformed("inventory.interfaces is empty")
    who = min(nic.mac_address.lower() for nic in data.inventory.interfaces)
    return AgentCall("POST", "/v1/continue_inspection", who[:64], _node(query), again, headers)


def _refuse_depth(document: object) -> None:
    layer, depth = [document], 0
    while layer:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
        layer = [inner for item in layer for inner in _inside(item)]


def _inside(item: object) -> list[object]:
    if isinstance(item, dict):
        return [inner for inner in item.values() if isinstance(inner, dict | list)]
    return [inner for inner in item if isinstance(inner, dict | list)] if isinstance(item, list) else []


def _only(query: Mapping[str, str], *known: str) -> None:
    for name in query:
        if name not in known:
            raise Malformed("a parameter in the URL is not known")


def _node(query: Mapping[str, str]) -> dict[str, str]:
    node = query.get("node_uuid")
    if not node:
        return {}
    if not _UUID.fullmatch(node):
        raise Malformed("node_uuid is not a UUID")
    return {"node_uuid": node.lower()}


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    """The two that mean something to Ironic here. What is no version counts as not said."""
    passed_on = {"Accept": "application/json"}
    version = given.get("X-OpenStack-Ironic-API-Version", "")
    if _VERSION.fullmatch(version):
        passed_on["X-OpenStack-Ironic-API-Version"] = version
    request = given.get("X-OpenStack-Request-ID", "")
    if _REQUEST_ID.fullmatch(request):
        passed_on["X-OpenStack-Request-ID"] = request
    return passed_on


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and text.isprintable()
    except ValueError:
        return False
