"""The bodies of requests: JSON, YAML, protobuf, and the languages of patches.

A body becomes a document here, or a refusal that says what is wrong with it. What a strict reader objects to without
being unable to read it, such as a field that is there twice, is noted in the manner of the write. Large bodies are read
beside the event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import bad_request, unsupported_media_type
from ingot.embedded.server.face import protobuf, yamls
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.writes.managing import Configuration, structure
from ingot.embedded.server.writes.patches import json_patched, merged
from ingot.embedded.server.writes.strategic import strategically_merged
from ingot.embedded.server.writes.writing import Edit, Manner

BODY_LIMIT: Final = 3 * 1024 * 1024
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
# What takes longer than a few milliseconds to read is read in a thread.
_LARGE: Final = 64 * 1024

T = TypeVar("T")


async def document(request: web.BaseRequest, what: str, manner: Manner | None = None) -> Document:
    """The document in a body. `what` names the kind that is expected, for messages."""
    body = await request.read()
    doubts = manner.doubts if manner is not None and manner.field_validation != "Ignore" else None
    # aiohttp says octet-stream where the client said nothing.
    match request.content_type:
        case "application/json" | "application/octet-stream":
            value = await _read(body, lambda: _json(body, what, doubts))
        case "application/yaml":
            value = await _read(body, lambda: _yaml(body, what, doubts))
        case "application/vnd.kubernetes.protobuf":
            return protobuf.decoded(body)
        case _:
            raise unsupported_media_type(_unknown_format((_JSON, _YAML, _PROTOBUF)))
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unrecognized(what, f"json parse error: expected an object, found {_named(value)}")
    return value


async def object_of(kind: Kind, request: web.BaseRequest, manner: Manner) -> Document:
    """The object in a body. What Kubernetes knows by heart may leave out what it is; a kind that somebody defined may not."""
    found = await document(request, kind.kind, manner)
    for name in ("kind", "apiVersion"):
        if not isinstance(found.get(name), str | None):
            why = f"couldn't get version/kind; json parse error: {name}: expected a string"
            raise _unrecognized(kind.kind, f"{why}, found {_named(found[name])}")
    if not found.get("kind") and not kind.built_in:
        raise _unrecognized(kind.kind, "Object 'Kind' is missing in the body")
    return found


async def edit(request: web.BaseRequest, kind: Kind, manner: Manner) -> Edit:
    """The change that a PATCH describes. It is read when it is applied: whether there is something to patch comes first."""
    body = await request.read()
    doubts = manner.doubts if manner.field_validation != "Ignore" else None
    match request.content_type:
        case "application/merge-patch+json":
            return lambda current: merged(current, _patch(body, doubts))
        case "application/json-patch+json":
            return lambda current: json_patched(current, _parsed(body, "error decoding patch: "))
        case "application/strategic-merge-patch+json" if kind.built_in:
            return lambda current: strategically_merged(
                current,
                _without_type(_patch(body, doubts, before="", none_is_nothing=True)),
                structure(kind),
            )
        case _:
            raise unsupported_media_type(_unknown_format(patch_types(kind)))


def is_apply(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == APPLY_PATCH


async def configuration(request: web.BaseRequest, manner: Manner, *, force: bool) -> Configuration:
    """What is applied. It is YAML, whatever it looks like; what kubectl sends looks like JSON, which YAML includes."""
    body = await request.read()
    read = await _read(body, lambda: _applied(body))
    if not isinstance(read.value, dict | None):
        raise bad_request(
            f"error decoding YAML: error unmarshaling JSON: expected an object, found {_named(read.value)}"
        )
    if read.repeated and manner.field_validation == "Strict":
        listed = "\n  ".join(["yaml: unmarshal errors:", *read.repeated])
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {listed}")
    if manner.field_validation != "Ignore":
        manner.warnings += read.repeated
    return Configuration(read.value or {}, force=force)


def patch_types(kind: Kind) -> tuple[str, ...]:
    if kind.built_in:
        return (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
    return (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


async def options(request: web.BaseRequest) -> Document:
    """The options in the body of a delete; none where there is no body."""
    return await document(request, "DeleteOptions") if request.can_read_body else {}


# Reading


async def _read(body: bytes, read: Callable[[], T]) -> T:
    return await asyncio.to_thread(read) if len(body) > _LARGE else read()


def _json(body: bytes, what: str, doubts: list[str] | None) -> Any:
    try:
        value = msgspec.json.decode(body)
    except RecursionError:
        raise _unrecognized(what, "json parse error: exceeded max depth") from None
    except ValueError as error:
        raise _unrecognized(what, f"couldn't get version/kind; json parse error: {error}") from None
    if doubts is not None:
        doubts += repeated_fields(body, value)
    return value


def _yaml(body: bytes, what: str, doubts: list[str] | None) -> Any:
    try:
        read = yamls.read(body)
    except yamls.NotYaml as error:
        raise _unrecognized(what, str(error)) from None
    if doubts is not None:
        doubts += read.repeated
    return read.value


def _applied(body: bytes) -> yamls.Read:
    if body.lstrip()[:1] == b"{":
        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError):
            pass
        else:
            if not _may_repeat(body, value):
                return yamls.Read(value, [])
    try:
        return yamls.read(body)
    except yamls.NotYaml as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None


def _patch(
    body: bytes,
    doubts: list[str] | None,
    before: str = "error decoding patch: ",
    *,
    none_is_nothing: bool = False,
) -> Document:
    value = _parsed(body, before)
    if value is None and none_is_nothing:
        return {}
    if not isinstance(value, dict):
        raise bad_request(f"{before}expected a JSON object, found {_named(value)}")
    if doubts is not None:
        # A patch may be read more than once.
        doubts[:] = repeated_fields(body, value)
    return value


def _without_type(patch: Document) -> Document:
    """What a strategic patch says about the kind is not heard: it is laid over an object whose kind is known."""
    return {
        name: value
        for name, value in patch.items()
        if name not in ("kind", "apiVersion") or not isinstance(value, str | None)
    }


def _parsed(body: bytes, before: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise bad_request(f"{before}exceeded max depth") from None
    except ValueError as error:
        raise bad_request(f"{before}{error}") from None


# What is there twice


def repeated_fields(body: bytes, value: Any) -> list[str]:
    """The fields that a JSON body has twice: `duplicate field "spec.online"`. `value` is what was read from it."""
    if not _may_repeat(body, value):
        return []
    try:
        pairs = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    _find_repeated(pairs, "", found)
    return found


def _may_repeat(body: bytes, value: Any) -> bool:
    """A quick look. Written out again, a document that lost a repeated field has fewer names in it."""
    return body.count(b'":') != encode(value).count(b'":')


class _Pairs(list[tuple[str, Any]]):
    """An object with all that was written in it."""


def _find_repeated(value: Any, where: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            here = f"{where}.{name}" if where else name
            if name in seen:
                found.append(f'duplicate field "{here}"')
            seen.add(name)
            _find_repeated(inner, here, found)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _find_repeated(inner, f"{where}[{index}]", found)


def _unrecognized(what: str, why: str) -> Exception:
    return bad_request(f"the object provided is unrecognized (must be of type {what}): {why}")


def _unknown_format(accepted: tuple[str, ...]) -> str:
    return (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )


def _named(value: object) -> str:
    names: Mapping[type, str] = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        type(None): "null",
    }
    return names.get(type(value), "a number")
