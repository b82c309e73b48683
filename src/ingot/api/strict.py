"""Reading what a person wrote where no schema was checked, in an annotation or a provider spec: unknown fields are errors.

Elsewhere unknown fields are skipped, because a newer API may send them. Here they are misspellings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import Meta


def problem_with(text: str, type_: type[msgspec.Struct]) -> str | None:
    """Why `text` is not a `type_`, as the end of a sentence; None if it is one."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return f"is not JSON: {error}"
    except RecursionError:
        return "is nested too deeply"
    return problem_with_value(found, type_)


def problem_with_value(found: Any, type_: type[msgspec.Struct]) -> str | None:
    if not isinstance(found, dict):
        return "is not a JSON object"
    undecoded = {name: part for name, part in _undecoded_parts(type_).items() if name in found}
    try:
        msgspec.convert({key: value for key, value in found.items() if key not in undecoded}, type_)
    except msgspec.ValidationError as error:
        return f"has a value of the wrong sort: {error}"
    if unknown := next(_unknown_fields(found, type_, ""), None):
        return f"has the field {unknown}, which does not exist"
    for name, part in undecoded.items():
        if found[name] is not None and (problem := problem_with_value(found[name], part)):
            return f"has a field {name} that {problem}"
    return None


# What a struct is made of is worked out from its source each time that it is asked: once is enough.


@cache
def _fields(type_: type[msgspec.Struct]) -> Mapping[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(type_)}


@cache
def _undecoded_parts(type_: type[msgspec.Struct]) -> Mapping[str, type[msgspec.Struct]]:
    """Fields that the struct keeps as bytes, and what is in them."""
    parts = {}
    for name, found in _fields(type_).items():
        for note in get_args(found)[1:]:
            if isinstance(note, Meta) and (schema_of := (note.extra or {}).get("schema_of")):
                parts[name] = schema_of
    return parts


def _unknown_fields(value: Any, type_: Any, path: str) -> Iterator[str]:
    """Paths of fields that the type does not have. The value is known to fit the type otherwise."""
    if get_origin(type_) is Annotated:
        type_ = get_args(type_)[0]
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        known = _fields(type_)
        for name, inner in value.items() if isinstance(value, dict) else ():
            where = f"{path}.{name}" if path else name
            if name not in known:
                yield where
            else:
                yield from _unknown_fields(inner, known[name], where)
    elif get_origin(type_) is list:
        for index, item in enumerate(value or ()):
            yield from _unknown_fields(item, get_args(type_)[0], f"{path}[{index}]")
    elif value is not None:
        for choice in get_args(type_):
            if choice is not type(None):
                yield from _unknown_fields(value, choice, path)
