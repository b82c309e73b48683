"""OpenAPI v3: the schemas of the kinds, for `kubectl explain` and for the checks kubectl makes before it sends.

One document for each group and version, made on first use. The paths in it are the ones kubectl looks for: which kind
is where, and that the server itself checks unknown fields (the `fieldValidation` parameter).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.kinds import scale
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry

_METADATA_NAME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_OWNER_NAME: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"
_SCALE_NAME: Final = "io.k8s.api.autoscaling.v1.Scale"
_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)


def _text(description: str, **more: object) -> Document:
    return {"type": "string", "description": description, **more}


_TEXT_MAP: Final[Document] = {"type": "object", "additionalProperties": {"type": "string", "default": ""}}

_SHARED: Final[Document] = {
    _METADATA_NAME: {
        "type": "object",
        "description": "What every object has: its name, labels, owners, and what the API keeps about it.",
        "properties": {
            "name": _text("Name of the object, unique among its kind in a namespace. It cannot be changed."),
            "generateName": _text("A prefix: where no name is given, the API makes one from it."),
            "namespace": _text("The namespace the object lives in. It cannot be changed."),
            "labels": {**_TEXT_MAP, "description": "Short keys and values to find and group objects by."},
            "annotations": {
                **_TEXT_MAP,
                "description": "Keys and values for programs; they cannot be selected by.",
            },
            "finalizers": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
                "description": "Who has to let go before the object can be removed.",
            },
            "ownerReferences": {
                "type": "array",
                "items": {"allOf": [{"$ref": f"#/components/schemas/{_OWNER_NAME}"}]},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-patch-merge-key": "uid",
                "x-kubernetes-patch-strategy": "merge",
                "description": "The objects this one belongs to: it goes when the last of them is gone.",
            },
            "uid": _text("An identity that no other object, now or later, has. Set by the API."),
            "resourceVersion": _text(
                "The version of the object. Sent back, it makes a write fail if somebody was faster."
            ),
            "generation": {
                "type": "integer",
                "format": "int64",
                "description": "Counts changes of what is wanted. Set by the API.",
            },
            "creationTimestamp": _text("When the object was created. Set by the API.", format="date-time"),
            "deletionTimestamp": _text("When deletion was asked for. Set by the API.", format="date-time"),
            "deletionGracePeriodSeconds": {
                "type": "integer",
                "format": "int64",
                "description": "How long the object has to end. Set by the API.",
            },
        },
    },
    _OWNER_NAME: {
        "type": "object",
        "description": "Points at an object that this one belongs to.",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": _text("API version of the owner."),
            "kind": _text("Kind of the owner."),
            "name": _text("Name of the owner."),
            "uid": _text("UID of the owner."),
            "controller": {"type": "boolean", "description": "Whether this owner manages the object."},
            "blockOwnerDeletion": {
                "type": "boolean",
                "description": "Whether the owner waits for this object when it is deleted in the foreground.",
            },
        },
    },
}


_SCALE_GVK: Final[Document] = {
    **dict(zip(("group", "version"), scale.API_VERSION.split("/"), strict=True)),
    "kind": scale.KIND,
}
_COUNT: Final[Document] = {"type": "integer", "format": "int32"}
_SCALE: Final[Document] = {
    "type": "object",
    "description": "How many of something an object stands for.",
    "properties": {
        "apiVersion": _text("The version of the API this object is written in."),
        "kind": _text("What sort of object this is."),
        "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_METADATA_NAME}"}], "default": {}},
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "properties": {"replicas": {**_COUNT, "description": "How many there should be."}},
        },
        "status": {
            "type": "object",
            "description": "What there is.",
            "required": ["replicas"],
            "properties": {
                "replicas": {**_COUNT, "description": "How many there are."},
                "selector": _text("The label selector of what is counted."),
            },
        },
    },
    "x-kubernetes-group-version-kind": [_SCALE_GVK],
}


class OpenApi:
    """The documents of a registry, encoded, with their digests. A document is made anew when a kind in it changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._revision = -1
        self._kinds: dict[str, list[Kind]] = {}
        self._made: dict[str, tuple[list[Kind], bytes, str]] = {}

    def index(self) -> Document:
        paths = {
            place: {"serverRelativeURL": f"/openapi/v3/{place}?hash={self._document(place)[1]}"}
            for place in self._places()
        }
        return {"paths": paths}

    def document(self, place: str) -> tuple[bytes, str] | None:
        """The document of `api/v1` or `apis/GROUP/VERSION`, and its digest."""
        return self._document(place) if place in self._places() else None

    def _places(self) -> Mapping[str, list[Kind]]:
        if self._revision != self._registry.revision:
            self._revision = self._registry.revision
            self._kinds = {}
            for kind in self._registry.kinds:
                self._kinds.setdefault(_place(kind), []).append(kind)
            self._made = {place: made for place, made in self._made.items() if place in self._kinds}
        return self._kinds

    def _document(self, place: str) -> tuple[bytes, str]:
        kinds = self._kinds[place]
        there = self._made.get(place)
        # A kind that changes is another kind, so that the lists are the same only where nothing changed.
        if there is None or there[0] != kinds:
            body = encode(_document(place, kinds))
            there = self._made[place] = (kinds, body, hashlib.sha256(body).hexdigest())
        return there[1], there[2]


def _place(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _document(place: str, kinds: list[Kind]) -> Document:
    schemas: Document = dict(_SHARED)
    paths: Document = {}
    for kind in kinds:
        schemas[_schema_name(kind)] = _schema(kind)
        schemas[f"{_schema_name(kind)}List"] = _list_schema(kind)
        base = f"/{place}/namespaces/{{namespace}}" if kind.namespaced else f"/{place}"
        paths[f"{base}/{kind.plural}"] = _collection_path(kind)
        paths[f"{base}/{kind.plural}/{{name}}"] = _object_path(kind)
        if kind.has_status:
            paths[f"{base}/{kind.plural}/{{name}}/status"] = _object_path(kind, status=True)
        if kind.scale:
            schemas[_SCALE_NAME] = _SCALE
            paths[f"{base}/{kind.plural}/{{name}}/scale"] = _scale_path()
        if kind.namespaced:
            paths[f"/{place}/{kind.plural}"] = {"get": _operation(kind, "list")}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Ingot", "version": "v1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schema_name(kind: Kind) -> str:
    backwards = ".".join(reversed(kind.group.split("."))) if kind.group else "io.k8s.api.core"
    return f"{backwards}.{kind.version}.{kind.kind}"


def _gvk(kind: Kind, name: str = "") -> Document:
    return {"group": kind.group, "version": kind.version, "kind": name or kind.kind}


_TYPE_FIELDS: Final[Document] = {
    "apiVersion": _text("The version of the API this object is written in."),
    "kind": _text("What sort of object this is."),
}


def _schema(kind: Kind) -> Document:
    schema: Mapping[str, Any] = kind.schema
    properties = {
        name: sub for name, sub in schema.get("properties", {}).items() if name not in ("apiVersion", "kind")
    }
    properties["metadata"] = {
        "description": _SHARED[_METADATA_NAME]["description"],
        "allOf": [{"$ref": f"#/components/schemas/{_METADATA_NAME}"}],
        "default": {},
    }
    return {
        **schema,
        "properties": {**_TYPE_FIELDS, **properties},
        "x-kubernetes-group-version-kind": [_gvk(kind)],
    }


def _list_schema(kind: Kind) -> Document:
    return {
        "type": "object",
        "description": f"A list of {kind.plural}.",
        "required": ["items"],
        "properties": {
            **_TYPE_FIELDS,
            "metadata": {"type": "object", "description": "The version of the list, and how to go on."},
            "items": {
                "type": "array",
                "description": f"The {kind.plural}.",
                "items": {"$ref": f"#/components/schemas/{_schema_name(kind)}"},
            },
        },
        "x-kubernetes-group-version-kind": [_gvk(kind, kind.list_kind)],
    }


def _collection_path(kind: Kind) -> Document:
    # Kinds that can only be read announce writing too: kubectl then sends it, and its user reads our sentence.
    return {"get": _operation(kind, "list"), "post": _operation(kind, "post")}


def _object_path(kind: Kind, *, status: bool = False) -> Document:
    actions = ("get", "put", "patch") if status else ("get", "put", "patch", "delete")
    return {action: _operation(kind, action) for action in actions}


def _scale_path() -> Document:
    return {
        action: _described(action, _SCALE_NAME, _SCALE_GVK, _PATCHES) for action in ("get", "put", "patch")
    }


def _operation(kind: Kind, action: str) -> Document:
    name = f"{_schema_name(kind)}List" if action == "list" else _schema_name(kind)
    return _described(action, name, _gvk(kind), _patches(kind))


def _described(action: str, schema: str, gvk: Document, patches: Sequence[str]) -> Document:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    made: Document = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
        "responses": {"200": {"description": "OK", "content": content}},
    }
    if action in ("post", "put", "patch"):
        made["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string"}}
            for name in ("dryRun", "fieldManager", "fieldValidation")
        ]
        anything = {type_: {"schema": {"type": "object"}} for type_ in patches}
        made["requestBody"] = {"content": anything if action == "patch" else content}
    return made


def _patches(kind: Kind) -> Sequence[str]:
    return (*_PATCHES, "application/strategic-merge-patch+json") if kind.built_in else _PATCHES
