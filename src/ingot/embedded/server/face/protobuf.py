"""Request bodies in Kubernetes' protobuf framing, for the few kinds that kubectl sends no other way.

A body is `k8s\\0` and a `runtime.Unknown` message that names the kind and holds its bytes. Only reading is done here:
answers are JSON, which every client takes. The tables give, for each message, the number, name and type of the fields
that matter; others are skipped.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import bad_request, unsupported_media_type

MAGIC: Final = b"k8s\x00"

# What a field holds: the name of a scalar type, "map" or "map of bytes", or the fields of a message; a list of one is repeated.
Fields: TypeAlias = Mapping[int, tuple[str, Any]]

_TIME: Final = "time"
_OWNER: Final[Fields] = {
    1: ("kind", "text"),
    3: ("name", "text"),
    4: ("uid", "text"),
    5: ("apiVersion", "text"),
    6: ("controller", "bool"),
    7: ("blockOwnerDeletion", "bool"),
}
_METADATA: Final[Fields] = {
    1: ("name", "text"),
    2: ("generateName", "text"),
    3: ("namespace", "text"),
    5: ("uid", "text"),
    6: ("resourceVersion", "text"),
    11: ("labels", "map"),
    12: ("annotations", "map"),
    13: ("ownerReferences", [_OWNER]),
    14: ("finalizers", ["text"]),
}
_RESOURCE_ATTRIBUTES: Final[Fields] = {
    1: ("namespace", "text"),
    2: ("verb", "text"),
    3: ("group", "text"),
    4: ("version", "text"),
    5: ("resource", "text"),
    6: ("subresource", "text"),
    7: ("name", "text"),
}
_ACCESS: Final[Fields] = {
    1: ("resourceAttributes", _RESOURCE_ATTRIBUTES),
    2: ("nonResourceAttributes", {1: ("path", "text"), 2: ("verb", "text")}),
}
_LEASE: Final[Fields] = {
    1: ("holderIdentity", "text"),
    2: ("leaseDurationSeconds", "integer"),
    3: ("acquireTime", _TIME),
    4: ("renewTime", _TIME),
    5: ("leaseTransitions", "integer"),
}
_KINDS: Final[Mapping[tuple[str, str], Fields]] = {
    ("v1", "Namespace"): {1: ("metadata", _METADATA), 2: ("spec", {1: ("finalizers", ["text"])})},
    ("v1", "Secret"): {
        1: ("metadata", _METADATA),
        2: ("data", "map of bytes"),
        3: ("type", "text"),
        4: ("stringData", "map"),
        5: ("immutable", "bool"),
    },
    ("coordination.k8s.io/v1", "Lease"): {1: ("metadata", _METADATA), 2: ("spec", _LEASE)},
    ("authentication.k8s.io/v1", "SelfSubjectReview"): {1: ("metadata", _METADATA)},
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): {
        1: ("metadata", _METADATA),
        2: ("spec", _ACCESS),
    },
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): {
        1: ("metadata", _METADATA),
        2: ("spec", {1: ("namespace", "text")}),
    },
}
_DELETE_OPTIONS: Final[Fields] = {
    1: ("gracePeriodSeconds", "integer"),
    2: ("preconditions", {1: ("uid", "text"), 2: ("resourceVersion", "text")}),
    3: ("orphanDependents", "bool"),
    4: ("propagationPolicy", "text"),
    5: ("dryRun", ["text"]),
}
_UNKNOWN: Final[Fields] = {1: ("type", {1: ("apiVersion", "text"), 2: ("kind", "text")}), 2: ("raw", "bytes")}


def decoded(body: bytes) -> Document:
    """The document in a protobuf body, as its JSON form would be."""
    if not body.startswith(MAGIC):
        raise bad_request(
            "the body is announced as Kubernetes protobuf but does not begin with its magic bytes"
        )
    try:
        envelope = _message(body[len(MAGIC) :], _UNKNOWN)
        type_ = envelope.get("type", {})
        api_version, kind = type_.get("apiVersion", ""), type_.get("kind", "")
        fields = _DELETE_OPTIONS if kind == "DeleteOptions" else _KINDS.get((api_version, kind))
        if fields is None:
            raise unsupported_media_type(
                f"{kind} of {api_version} is not read in protobuf here; send it as application/json"
            )
        return {"apiVersion": api_version, "kind": kind, **_message(envelope.get("raw", b""), fields)}
    except (IndexError, ValueError, OverflowError):
        raise bad_request("the protobuf body is cut off or malformed") from None


def _message(data: bytes, fields: Fields) -> Document:
    made: Document = {}
    for number, value in _wire(data):
        if number not in fields:
            continue
        name, type_ = fields[number]
        if isinstance(type_, list):
            made.setdefault(name, []).append(_value(value, type_[0]))
        elif type_ in ("map", "map of bytes"):
            entry = _message(
                _bytes(value), {1: ("key", "text"), 2: ("value", "bytes" if "of" in type_ else "text")}
            )
            content = entry.get("value", b"" if "of" in type_ else "")
            shown = base64.b64encode(content).decode() if isinstance(content, bytes) else content
            made.setdefault(name, {})[entry.get("key", "")] = shown
        else:
            made[name] = _value(value, type_)
    # Go writes empty strings and zeroes of plain fields too; in JSON they are left out.
    return {name: value for name, value in made.items() if value not in ("", None)}


def _value(value: int | bytes, type_: Any) -> Any:
    match type_:
        case "text":
            return _bytes(value).decode()
        case "bytes":
            return _bytes(value)
        case "bool":
            return bool(value)
        case "integer":
            return value
        case "time":
            return _time(_bytes(value))
        case _:
            return _message(_bytes(value), type_)


def _time(data: bytes) -> str | None:
    parts = _message(data, {1: ("seconds", "integer"), 2: ("nanos", "integer")})
    if not parts.get("seconds"):
        return None
    when = datetime.fromtimestamp(parts["seconds"] + parts.get("nanos", 0) / 1e9, UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("expected a length-delimited field")
    return value


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                number, position = _varint(data, position)
                yield tag >> 3, number
            case 1:
                position += 8
            case 5:
                position += 4
            case 2:
                length, position = _varint(data, position)
                if position + length > len(data):
                    raise ValueError("a field is longer than the message")
                yield tag >> 3, data[position : position + length]
                position += length
            case _:
                raise ValueError("unknown wire type")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if not byte & 0x80:
            # Negative numbers travel as 64-bit two's complement.
            return (value - (1 << 64) if value >> 63 else value), position
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
