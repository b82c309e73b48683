"""From a struct to what is sent: plain JSON data, without what is absent, with what the API demands.

A struct gives every field a default, so that any object can be read. Leaving defaults out when writing is right for most
fields and wrong for those that the schema requires (`status.errorMessage` is "" on a healthy host, and has to be there).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from ingot.api.schema import is_required


def wire(value: Any) -> Any:
    """`value` as plain JSON data: of a struct, every field that is not its default or that the schema requires."""
    match value:
        case msgspec.Struct():
            return {
                field.sent_as: wire(found)
                for field in _fields(type(value))
                if _is_sent(field, found := getattr(value, field.name))
            }
        case enum.Enum():
            return value.value
        case None | str() | bool() | int() | float():
            return value
        case list() | tuple():
            return [wire(item) for item in value]
        case dict():
            return {key: wire(item) for key, item in value.items()}
        case datetime():
            return msgspec.to_builtins(value)
        case msgspec.Raw():
            return msgspec.json.decode(value)
    raise TypeError(f"{type(value).__name__} is not a part of an API object and cannot be sent")


@dataclass(frozen=True, slots=True)
class _Field:
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
