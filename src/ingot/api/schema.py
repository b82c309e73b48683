"""Describing fields: the words and limits that a field carries beside its type, and the schema made from them.

`doc` stands in a field's annotation and says what the type cannot: the sentence that `kubectl explain` shows, and limits in
the words of JSON schema (`minimum`, `pattern`, `nullable`, …). Those limits are the API server's to enforce. Decoding does not
repeat them: what comes from an API was checked there, and an object with one odd value must still be readable.

`structural` turns a struct into a structural OpenAPI schema, the form that a CustomResourceDefinition takes: everything
inline, no references.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta

Schema = dict[str, Any]
"""A JSON schema, or a part of one, as plain data."""

JsonObject = dict[str, Any]
"""An object that is kept as it is and whose inside the schema does not describe: something else reads it."""

IntOrString = int | str
"""A number, or a number or name in quotes."""

ATOMIC_MAP: Final[Schema] = {"x-kubernetes-map-type": "atomic"}
"""The whole object belongs to one writer: server-side apply does not merge its fields."""

ATOMIC_LIST: Final[Schema] = {"x-kubernetes-list-type": "atomic"}
"""The whole list belongs to one writer."""

_KEPT_WHOLE: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INT_OR_STRING: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}

_SCALARS: Final[dict[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}


def doc(description: str, *, required: bool = False, schema_of: type | None = None, **limits: Any) -> Meta:
    """What a field means, and its limits in JSON schema's words.

    `required` is for a field that the API demands although the struct has a default for it. `schema_of` names the type to
    describe where the struct keeps the value undecoded.
    """
    return Meta(
        description=description,
        extra_json_schema=limits or None,
        extra={"required": required, "schema_of": schema_of},
    )


def part_named(description: str, *, name: str) -> Meta:
    """A part of another API that is kept as it is, told from its neighbours by its `name`. Stands with a `JsonObject`."""
    described = {"name": {"type": "string", "description": name}}
    return Meta(description=description, extra_json_schema={"properties": described, "required": ["name"]})


def map_list(*keys: str) -> Schema:
    """A list whose items are told apart by these fields, and merged one by one."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def structural(type_: Any) -> Schema:
    """The structural schema of a type: a struct, a list or dict of described types, a scalar, or one of these annotated."""
    if get_origin(type_) is Annotated:
        return _annotated(type_)
    if type_ in _SCALARS:
        return dict(_SCALARS[type_])
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _struct(type_)
    if isinstance(type_, type) and issubclass(type_, enum.StrEnum):
        return _choice(member.value for member in type_)
    origin, args = get_origin(type_), get_args(type_)
    if origin in (types.UnionType, Union):
        return dict(_INT_OR_STRING) if _is_int_or_string(args) else structural(_only_described(type_))
    if origin is Literal:
        return _choice(args)
    if origin in (list, tuple):
        return {"type": "array", "items": structural(args[0])}
    if type_ == JsonObject:
        return dict(_KEPT_WHOLE)
    if origin is dict:
        return {"type": "object", "additionalProperties": structural(args[1])}
    raise TypeError(
        f"{type_!r} has no structural schema; describe it in ingot.api.schema or give the field another type"
    )


def _annotated(type_: Any) -> Schema:
    inner, *notes = get_args(type_)
    meta = next(note for note in notes if isinstance(note, Meta))
    schema = structural((meta.extra or {}).get("schema_of") or inner)
    if meta.description:
        schema["description"] = meta.description
    return schema | (meta.extra_json_schema or {})


def _struct(type_: type[msgspec.Struct]) -> Schema:
    fields = sorted(msgspec.structs.fields(type_), key=lambda field: field.encode_name)
    schema: Schema = {"type": "object"}
    if fields:
        schema["properties"] = {field.encode_name: structural(field.type) for field in fields}
    if required := [field.encode_name for field in fields if is_required(field)]:
        schema["required"] = required
    return schema


def is_required(field: msgspec.structs.FieldInfo) -> bool:
    """Whether the API demands this field."""
    return field.required or any(
        bool((note.extra or {}).get("required"))
        for note in get_args(field.type)[1:]
        if isinstance(note, Meta)
    )


def _choice(values: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(values)}


def _is_int_or_string(members: tuple[Any, ...]) -> bool:
    return set(members) - {type(None), msgspec.UnsetType} == {int, str}


def _only_described(union: Any) -> Any:
    """The one member of a union that the schema knows; None and UNSET mean that the field may be absent."""
    described = [arg for arg in get_args(union) if arg not in (type(None), msgspec.UnsetType)]
    if len(described) != 1:
        raise TypeError(f"{union!r} offers a choice of types, which a structural schema cannot express")
    return described[0]
