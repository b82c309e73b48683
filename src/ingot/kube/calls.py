"""What a request for a kind looks like: paths, parameters and bodies. Pure.

A kind whose struct is `PartialObjectMetadata` is asked for by its metadata alone: what a Secret holds then never reaches this
process. Names are checked before they become part of a URL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

import msgspec

from ingot.api.meta import Key, Object, PartialObjectMetadata, Resource
from ingot.kube.errors import NotFound

T = TypeVar("T", bound=Object)
Propagation = Literal["Background", "Foreground", "Orphan"]
"""What becomes of the objects that belong to one that is deleted: they follow, go before it, or stay."""

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
_JSON: Final = "application/json"
_PARTIAL: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
_MERGE_PATCH: Final = "application/merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_EVERYTHING_FIRST: Final = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, and the words for it in errors and metrics."""

    method: str
    path: str
    doing: str
    kind: str
    params: Mapping[str, str] = field(default_factory=dict)
    accept: str = _JSON
    body: bytes | None = None
    content_type: str = _JSON


def get(kind: Resource[Any], key: Key) -> Call:
    doing = f"get {kind.kind} {key}"
    return Call(
        method="GET",
        path=_path(kind, key, doing=doing),
        doing=doing,
        kind=kind.kind,
        accept=_accept(kind),
    )


def listing(kind: Resource[Any], *, namespace: str, labels: str, fields: str, limit: int) -> Call:
    """The first page of a list; without a limit, all of it."""
    doing = f"list {kind.kind}s" + (f" in {namespace}" if namespace else "")
    return Call(
        method="GET",
        path=_collection(kind, namespace, doing=doing),
        doing=doing,
        kind=kind.kind,
        params=_given(labelSelector=labels, fieldSelector=fields, limit=str(limit or "")),
        accept=_accept(kind, "List"),
    )


def watch(
    kind: Resource[Any], *, version: str | None, seconds: int, namespace: str, labels: str, fields: str
) -> Call:
    """What happens after a version; without one, first all that is there."""
    doing = f"watch {kind.kind}s" + (f" in {namespace}" if namespace else "")
    return Call(
        method="GET",
        path=_collection(kind, namespace, doing=doing),
        doing=doing,
        kind=kind.kind,
        params=_given(labelSelector=labels, fieldSelector=fields)
        | {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        | (_EVERYTHING_FIRST if version is None else {"resourceVersion": version}),
        accept=_accept(kind),
    )


def create(kind: Resource[Any], content: Mapping[str, object], key: Key, *, manager: str) -> Call:
    doing = f"create {kind.kind} {key}"
    return Call(
        method="POST",
        path=_collection(kind, key.namespace, doing=doing),
        doing=doing,
        kind=kind.kind,
        params={"fieldManager": manager},
        accept=_accept(kind),
        body=msgspec.json.encode(content),
    )


def apply(
    kind: Resource[Any],
    content: Mapping[str, object],
    key: Key,
    *,
    manager: str,
    force: bool,
    subresource: str,
) -> Call:
    doing = f"apply {kind.kind} {key}" + (f" ({subresource})" if subresource else "")
    return Call(
        method="PATCH",
        path=_path(kind, key, subresource, doing=doing),
        doing=doing,
        kind=kind.kind,
        params={"fieldManager": manager} | ({"force": "true"} if force else {}),
        accept=_accept(kind),
        # JSON is YAML.
        body=msgspec.json.encode(content),
        content_type=_APPLY_PATCH,
    )


def patch(
    kind: Resource[Any],
    key: Key,
    change: Mapping[str, object],
    *,
    manager: str,
    subresource: str,
    version: str,
) -> Call:
    """A merge patch; with a version, one that is refused if the object has another."""
    doing = f"patch {kind.kind} {key}" + (f" ({subresource})" if subresource else "")
    return Call(
        method="PATCH",
        path=_path(kind, key, subresource, doing=doing),
        doing=doing,
        kind=kind.kind,
        params={"fieldManager": manager},
        accept=_accept(kind),
        body=msgspec.json.encode(_based_on(change, version)),
        content_type=_MERGE_PATCH,
    )


def delete(kind: Resource[Any], key: Key, *, uid: str, version: str, propagation: Propagation) -> Call:
    doing = f"delete {kind.kind} {key}"
    options: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
    }
    if preconditions := _given(uid=uid, resourceVersion=version):
        options["preconditions"] = preconditions
    return Call(
        method="DELETE",
        path=_path(kind, key, doing=doing),
        doing=doing,
        kind=kind.kind,
        body=msgspec.json.encode(options),
    )


def logs(kind: Resource[Any], key: Key, *, container: str, last_lines: int, previous: bool) -> Call:
    doing = f"read the log of {kind.kind} {key}"
    return Call(
        method="GET",
        path=_path(kind, key, "log", doing=doing),
        doing=doing,
        kind=kind.kind,
        params=_given(
            container=container,
            tailLines=str(last_lines or ""),
            previous="true" if previous else "",
        ),
        accept="text/plain, */*",
    )


def whole(kind: Resource[T], body: T | Mapping[str, object], namespace: str) -> tuple[dict[str, Any], Key]:
    """The body with its kind's name in it, and where it belongs: the namespace given, else the one in the body."""
    content: dict[str, Any] = dict(msgspec.to_builtins(body, str_keys=True))
    content |= {"apiVersion": kind.api_version, "kind": kind.kind}
    metadata = content.get("metadata", {})
    name = metadata.get("name") or f"{metadata.get('generateName', '')}…"
    return content, Key(namespace or metadata.get("namespace", ""), name)


def _given(**params: str) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}


def _accept(kind: Resource[Any], suffix: str = "") -> str:
    return _PARTIAL.format(suffix) if kind.type is PartialObjectMetadata else _JSON


def _based_on(change: Mapping[str, object], version: str) -> Mapping[str, object]:
    if not version:
        return change
    metadata = change.get("metadata", {})
    assert isinstance(metadata, Mapping)
    return {**change, "metadata": {**metadata, "resourceVersion": version}}


def _collection(kind: Resource[Any], namespace: str, *, doing: str) -> str:
    if namespace:
        _check_name(namespace, doing)
    return kind.path(namespace)


def _path(kind: Resource[Any], key: Key, subresource: str = "", *, doing: str) -> str:
    if kind.namespaced:
        _check_name(key.namespace, doing)
    _check_name(key.name, doing)
    return kind.path(key.namespace, key.name, subresource)


def _check_name(name: str, doing: str) -> None:
    """Names come from users: one with a slash in it would be the path of another object."""
    if not _NAME.fullmatch(name):
        raise NotFound(404, "NotFound", f"{name!r} is not a name that an object can have", doing=doing)
