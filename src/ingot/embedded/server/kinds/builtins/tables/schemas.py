"""Schemas from messages: what a `Shape` checks, what apply and patches merge by, what `kubectl explain` shows.

A message that is used in many places is made once; the places share what is in it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from ingot.embedded.server.kinds.builtins.tables.grammar import (
    Field,
    ListOf,
    MapOf,
    Message,
    Scalar,
    Type,
)

_SCALARS: Final[dict[str, dict[str, Any]]] = {
    "text": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "quantity": {"x-kubernetes-int-or-string": True},
    "number-or-text": {"x-kubernetes-int-or-string": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}

_OF_ALL: Final = frozenset({"apiVersion", "kind", "metadata"})


@cache
def schema_of(message: Message) -> dict[str, Any]:
    """The schema of objects of a kind. What all objects have is left out."""
    schema = dict(_object(message))
    schema["properties"] = {name: sub for name, sub in schema["properties"].items() if name not in _OF_ALL}
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in _OF_ALL]
    return schema


@cache
def _object(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "object",
        "description": message.words,
        "properties": {name: _property(field) for name, field in message.by_name.items()},
    }
    if required := [name for name, field in message.by_name.items() if field.required]:
        made["required"] = required
    if message.atomic:
        made["x-kubernetes-map-type"] = "atomic"
    return made


def _property(field: Field) -> dict[str, Any]:
    made = dict(_of(field.type))
    if field.words:
        made["description"] = field.words
    if field.default is not None:
        made["default"] = field.default
    if field.keys:
        made["x-kubernetes-list-type"] = "map"
        made["x-kubernetes-list-map-keys"] = list(field.keys)
    elif field.unique:
        made["x-kubernetes-list-type"] = "set"
    elif isinstance(field.type, ListOf):
        made["x-kubernetes-list-type"] = "atomic"
    if field.map_type:
        made["x-kubernetes-map-type"] = field.map_type
    strategy = [
        *(["merge"] if field.patch_key is not None else []),
        *(["retainKeys"] if field.retain_keys else []),
    ]
    if strategy:
        made["x-kubernetes-patch-strategy"] = ",".join(strategy)
    if field.patch_key:
        made["x-kubernetes-patch-merge-key"] = field.patch_key
    return made


def _of(type_: Type) -> dict[str, Any]:
    match type_:
        case Scalar(name, options):
            return {**_SCALARS[name], "enum": list(options)} if options else _SCALARS[name]
        case ListOf(of):
            return {"type": "array", "items": _of(of)}
        case MapOf(of):
            return {"type": "object", "additionalProperties": _of(of)}
        case Message():
            return _object(type_)
