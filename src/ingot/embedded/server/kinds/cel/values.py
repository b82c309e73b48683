"""From an object to what an expression sees of it.

A schema decides: a field that is no identifier in CEL has an escaped name, a `number` is a double even if it is written without a
fraction, bytes are bytes. What a schema does not name cannot be seen. Of metadata only the name is shown.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

Schema = Mapping[str, Any]

EMBEDDED: Final = "x-kubernetes-embedded-resource"
EITHER: Final = "x-kubernetes-int-or-string"
TIMES: Final = ("date-time", "datetime", "date")

_TEXT: Final[Schema] = {"type": "string"}
_METADATA: Final[Schema] = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_ALWAYS: Final[Mapping[str, Schema]] = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}

_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")
_KEYWORDS: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return"),
    )
)


@lru_cache(maxsize=4096)
def escaped(name: str) -> str:
    """The identifier under which an expression finds a field; empty for one that it cannot name."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not _FIELD.fullmatch(name):
        return ""
    return _ESCAPED.sub(lambda found: _ESCAPES[found.group()], name)


def fields(schema: Schema, *, root: bool = False) -> Mapping[str, Schema]:
    """What an object has, by the names that documents use."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    return {**properties, **_ALWAYS} if root or schema.get(EMBEDDED) else properties


def is_map(schema: Schema) -> bool:
    return isinstance(schema.get("additionalProperties"), Mapping)


def seen(value: Any, schema: Schema, *, root: bool = False) -> Any:
    """The value as expressions see it."""
    match value:
        case dict():
            return _object(value, schema, root=root)
        case list():
            items = schema.get("items")
            return [seen(item, items) for item in value] if isinstance(items, Mapping) else value
        case int() if schema.get("type") == "number" and not isinstance(value, bool):
            return float(value)
        case float() if schema.get("type") == "integer":
            return int(value)
        case str() if schema.get("format") == "byte":
            return _bytes(value)
        case str() if schema.get("format") == "date":
            return f"{value}T00:00:00Z"
        case _:
            return value


def _object(value: dict[str, Any], schema: Schema, *, root: bool) -> dict[str, Any]:
    if is_map(schema):
        inside: Schema = schema["additionalProperties"]
        return {name: seen(child, inside) for name, child in value.items()}
    known = fields(schema, root=root)
    if not known:
        return value
    return {
        identifier: seen(value[name], child)
        for name, child in known.items()
        if name in value and (identifier := escaped(name))
    }


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode()
