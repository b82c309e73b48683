"""Reading requests: where they point, what they ask for, what they carry.

Everything a client can choose is checked here: path, names, parameters, content type, body. What comes out is typed
and safe to use as a key; what is wrong is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from ingot.embedded.server.documents import Document, decode, is_count
from ingot.embedded.server.errors import (
    bad_request,
    method_not_allowed,
    not_found,
    unknown_path,
    unprocessable,
    unsupported_media_type,
)
from ingot.embedded.server.face import protobuf
from ingot.embedded.server.face.auth import Identity
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.names import label_problem
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.kinds.selectors import Selector, parse
from ingot.embedded.server.reads.reading import Query
from ingot.embedded.server.reads.watching import WatchQuery
from ingot.embedded.server.writes.metadata import name_problem
from ingot.embedded.server.writes.patches import json_patched, merged, strategically_merged
from ingot.embedded.server.writes.writing import Deletion, Edit, Manner

BODY_LIMIT: Final = 3 * 1024 * 1024
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_STATUS_METHODS: Final = frozenset({"get", "update", "patch"})


@dataclass(frozen=True, slots=True)
class Target:
    """A place in the API: a collection, an object in it, or a part of an object."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def target(registry: Registry, path: str) -> Target:
    """The place a path names. Raises 404 for a path that is no place."""
    group, version, rest = _split(path)
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        raise unknown_path()
    plural, name, subresource = (*rest, "", "")[:3]
    kind = registry.at(group, version, plural)
    if kind is None or (namespace and not kind.namespaced) or (name and kind.namespaced and not namespace):
        raise unknown_path()
    if subresource and not (subresource == "status" and kind.has_status):
        raise unknown_path()
    if (namespace and label_problem(namespace)) or (name and name_problem(kind, name)):
        raise not_found(kind, name or namespace)
    return Target(kind, namespace, name, subresource)


def _split(path: str) -> tuple[str, str, list[str]]:
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return "", version, rest
        case ["apis", group, version, *rest]:
            return group, version, rest
        case _:
            raise unknown_path()


def verb(method: str, where: Target, parameters: Mapping[str, str]) -> str:
    """What Kubernetes calls this: the word that permissions are about."""
    match method, bool(where.name):
        case "GET", named:
            if flag(parameters, "watch"):
                return "watch"
            return "get" if named else "list"
        case "POST", False:
            return "create"
        case "PUT", True:
            return "update"
        case "PATCH", True:
            return "patch"
        case "DELETE", named:
            return "delete" if named else "deletecollection"
        case _:
            raise method_not_allowed("the server does not allow this method on the requested resource")


def check_served(where: Target, word: str) -> None:
    kind = where.kind
    if word in kind.verbs and (not where.subresource or word in _STATUS_METHODS):
        return
    raise method_not_allowed(f"the server does not allow {word} on {kind.resource}")


# Parameters


def flag(parameters: Mapping[str, str], name: str) -> bool:
    return parameters.get(name, "").lower() in ("1", "t", "true")


def _number(parameters: Mapping[str, str], name: str) -> int:
    text = parameters.get(name, "")
    if text and not is_count(text):
        raise bad_request(f'{name}: Invalid value: "{text[:40]}": must be a number that is not negative')
    return int(text) if text else 0


def selector(where: Target, parameters: Mapping[str, str]) -> Selector:
    return parse(
        parameters.get("labelSelector", ""),
        parameters.get("fieldSelector", ""),
        known_fields=where.kind.field_names,
    )


def list_query(where: Target, parameters: Mapping[str, str]) -> Query:
    match_ = parameters.get("resourceVersionMatch", "")
    if match_ not in ("", "Exact", "NotOlderThan"):
        raise unprocessable(f'resourceVersionMatch: Unsupported value: "{match_[:40]}"')
    return Query(
        namespace=where.namespace,
        selector=selector(where, parameters),
        limit=_number(parameters, "limit"),
        token=parameters.get("continue", ""),
        version=parameters.get("resourceVersion", ""),
        exact=match_ == "Exact",
    )


def watch_query(where: Target, parameters: Mapping[str, str]) -> WatchQuery:
    fields = parameters.get("fieldSelector", "")
    if where.name:
        fields = ",".join(part for part in (fields, f"metadata.name={where.name}") if part)
    initial = parameters.get("sendInitialEvents")
    return WatchQuery(
        namespace=where.namespace,
        selector=selector(where, {**parameters, "fieldSelector": fields}),
        version=parameters.get("resourceVersion", ""),
        bookmarks=flag(parameters, "allowWatchBookmarks"),
        initial_events=None if initial is None else flag(parameters, "sendInitialEvents"),
        not_older_than=parameters.get("resourceVersionMatch") == "NotOlderThan",
        timeout=float(_number(parameters, "timeoutSeconds")),
    )


def manner(parameters: Mapping[str, str], who: Identity) -> Manner:
    validation = parameters.get("fieldValidation", "") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        raise unprocessable(
            f'fieldValidation: Unsupported value: "{validation[:40]}": supported: Ignore, Strict, Warn'
        )
    return Manner(dry_run=_dry_run(parameters.get("dryRun", "")), field_validation=validation, user=who)


def _dry_run(text: str) -> bool:
    if text not in ("", "All"):
        raise bad_request(f'dryRun: Unsupported value: "{text[:40]}": supported values: "All"')
    return text == "All"


# Bodies


async def document(request: web.BaseRequest) -> Document:
    body = await request.read()
    if request.content_type == _PROTOBUF:
        return protobuf.decoded(body)
    # aiohttp says octet-stream where the client said nothing.
    if request.content_type not in ("application/json", "application/octet-stream"):
        raise unsupported_media_type(
            f"the body of the request was in an unknown format ({request.content_type}); "
            f"accepted media types: application/json, {_PROTOBUF}"
        )
    return _decoded(body)


async def edit(request: web.BaseRequest, kind: Kind) -> Edit:
    """The change that a PATCH describes."""
    body = await request.read()
    match request.content_type:
        case "application/merge-patch+json":
            patch = _decoded(body)
            return lambda current: merged(current, patch)
        case "application/json-patch+json":
            operations = _parsed(body)
            return lambda current: json_patched(current, operations)
        case "application/strategic-merge-patch+json" if kind.built_in:
            strategic = _decoded(body)
            return lambda current: strategically_merged(current, strategic)
        case "application/apply-patch+yaml" | "application/apply-patch+cbor":
            raise unsupported_media_type(
                "server-side apply is not served by this API; use `kubectl apply` without --server-side, or a merge patch"
            )
        case other:
            accepted = ["application/json-patch+json", "application/merge-patch+json"]
            if kind.built_in:
                accepted.append("application/strategic-merge-patch+json")
            raise unsupported_media_type(
                f"the body of the request was in an unknown format ({other}); accepted media types include: {', '.join(accepted)}"
            )


async def deletion(request: web.BaseRequest, parameters: Mapping[str, str], who: Identity) -> Deletion:
    options: Document = await document(request) if request.can_read_body else {}
    preconditions = _typed(options, "preconditions", dict) or {}
    policy = _typed(options, "propagationPolicy", str) or parameters.get("propagationPolicy") or ""
    if not policy and options.get("orphanDependents") is True:
        policy = "Orphan"
    if policy not in ("", "Orphan", "Background", "Foreground"):
        raise unprocessable(f'propagationPolicy: Unsupported value: "{policy[:40]}"')
    dry = _typed(options, "dryRun", list) or [parameters.get("dryRun", "")]
    grace = _typed(options, "gracePeriodSeconds", int)
    if grace is None and parameters.get("gracePeriodSeconds"):
        grace = _number(parameters, "gracePeriodSeconds")
    return Deletion(
        uid=_typed(preconditions, "uid", str) or "",
        version=_typed(preconditions, "resourceVersion", str) or "",
        propagation=policy or "Background",
        grace=grace,
        dry_run=any(_dry_run(str(item)) for item in dry),
        user=who,
    )


def _typed(options: Document, name: str, type_: type[Any]) -> Any:
    value = options.get(name)
    if value is not None and not isinstance(value, type_):
        raise bad_request(f"DeleteOptions: {name} is not of the expected type")
    return value


def _decoded(body: bytes) -> Document:
    document: Document = _guarded(decode, body)
    return document


def _parsed(body: bytes) -> object:
    return _guarded(msgspec.json.decode, body)


def _guarded(read: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return read(body)
    except RecursionError:
        raise bad_request("the body of the request is nested too deeply") from None
    except ValueError as error:
        raise bad_request(f"the body of the request is not the JSON that was expected: {error}") from None
