"""From a struct to what is sent: plain JSON data, without what is absent, with what the API demands.

A struct gives every field a default, so that any object can be read. Leaving defaults out when writing is right for most
fields and wrong for those that the schema requires (`status.errorMessage` is "" on a healthy host, and has to be there).
"""

from __future__ import annotations

import enum
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
                field.encode_name: wire(found)
                for field in _fields(type(value))
                if _is_sent(field, found := getattr(value, field.name))
            }
        case list() | tuple():
            return [wire(item) for item in value]
        case dict():
            return {key: wire(item) for key, item in value.items()}
        case enum.Enum():
            return value.value
        case datetime():
            return msgspec.to_builtins(value)
        case msgspec.Raw():
            return msgspec.json.decode(value)
    return value


@cache
def _fields(type_: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(type_)


def _is_sent(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    if value is msgspec.UNSET or value is None:
        return False
    if is_required(field):
        return True
    if field.default_factory is not msgspec.NODEFAULT:
        return bool(value != field.default_factory())
    return bool(value != field.default)
