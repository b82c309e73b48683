"""From a struct to what is sent: plain JSON data, without what is absent, with what the API demands.

A struct gives every field a default, so that any object can be read. Leaving defaults out when writing is right for most
fields and wrong for those that the schema requires (`status.errorMessage` is "" on a healthy host, and has to be there).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Container
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from ingot.api.schema import is_required


def wire(value: Any) -> Any:
    """`value` as plain JSON data: of a struct, every field that is not its default or that the schema requires."""
    # By the exact type, found out once: every object that is sent goes through here, part by part.
    return (_KNOWN.get(type(value)) or _learnt(type(value)))(value)


def wire_fields(value: msgspec.Struct, names: Container[str]) -> dict[str, Any]:
    """The same, of these fields of a struct alone."""
    return {
        field.sent_as: wire(found)
        for field in _fields(type(value))
        if field.name in names and _is_sent(field, found := getattr(value, field.name))
    }


def differing_fields(one: msgspec.Struct, other: msgspec.Struct) -> set[str]:
    """The names of the fields in which two structs of one type differ. Undecoded parts are compared as bytes."""
    return {
        field.name
        for field in _fields(type(one))
        if not _same(getattr(one, field.name), getattr(other, field.name))
    }


def changed_fields(before: msgspec.Struct, after: msgspec.Struct) -> dict[str, Any]:
    """What a merge patch has to say to make one struct the other of its type: what is empty now is taken out."""
    names = differing_fields(before, after)
    return {
        field.sent_as: wire(found) if _is_sent(field, found := getattr(after, field.name)) else None
        for field in _fields(type(after))
        if field.name in names
    }


def status_patch(before: msgspec.Struct, after: msgspec.Struct) -> dict[str, Any] | None:
    """The merge patch from one status to the other; None where they are the same."""
    change = changed_fields(before, after)
    return {"status": change} if change else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, msgspec.Raw) and isinstance(other, msgspec.Raw):
        return bytes(one) == bytes(other)
    return bool(one == other)


def _struct(value: msgspec.Struct) -> dict[str, Any]:
    sent = {}
    for field in _fields(type(value)):
        found = getattr(value, field.name)
        if _is_sent(field, found):
            sent[field.sent_as] = wire(found)
    return sent


def _itself(value: Any) -> Any:
    return value


def _refused(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not a part of an API object and cannot be sent")


_PLAIN: Final = (str, int, float, bool, type(None))
_CONVERTERS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]] = (
    (msgspec.Struct, _struct),
    (enum.Enum, lambda value: value.value),
    (_PLAIN, _itself),
    ((list, tuple), lambda value: [item if type(item) in _PLAIN else wire(item) for item in value]),
    (dict, lambda value: {key: wire(item) for key, item in value.items()}),
    (datetime, msgspec.to_builtins),
    (msgspec.Raw, msgspec.json.decode),
)


_KNOWN: Final[dict[type, Callable[[Any], Any]]] = {}


def _learnt(type_: type) -> Callable[[Any], Any]:
    found = next((convert for types, convert in _CONVERTERS if issubclass(type_, types)), _refused)
    _KNOWN[type_] = found
    return found


class _Field(NamedTuple):
    name: str
    sent_as: str
    required: bool
    default: Any


@cache
def _fields(type_: type[msgspec.Struct]) -> tuple[_Field, ...]:
    return tuple(
        _Field(
            name=field.name,
            sent_as=field.encode_name,
            required=is_required(field),
            default=field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
        )
        for field in msgspec.structs.fields(type_)
    )


def _is_sent(field: _Field, value: Any) -> bool:
    if value is msgspec.UNSET or value is None:
        return False
    return field.required or bool(value != field.default)
