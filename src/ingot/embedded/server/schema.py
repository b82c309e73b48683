"""Structural schemas: what an object of a kind may look like.

A `Shape` is made once from a CRD's `openAPIV3Schema`. `conform` brings a document into shape: fields the schema does
not know are cut out (and named, for those who asked for strict checking), nulls that may not be null are dropped,
defaults are filled in. `problems` says what is still wrong, field by field, in the words of Kubernetes. Metadata
belongs to `metadata`; CEL rules are not evaluated.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import jsonschema_rs

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import Cause, cause

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_TYPE_META: Final = ("apiVersion", "kind", "metadata")
_INTEGER_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


class Shape:
    """The compiled form of one kind's schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        checked = _json_schema(schema)
        # Metadata is the same for all kinds and is checked before; a CRD may only narrow the name, which ours do not.
        checked.setdefault("properties", {})["metadata"] = {"type": "object"}
        self._validator = jsonschema_rs.Draft4Validator(
            checked, validate_formats=True, formats={"date-time": _is_time, "byte": _is_base64}
        )

    def conform(self, document: Document) -> list[str]:
        """Bring the document into shape, in place. Answers with the paths of the fields that were cut out."""
        unknown: list[str] = []
        _conform(document, self.schema, "", unknown, keep=frozenset(_TYPE_META))
        return unknown

    def problems(self, document: Document) -> list[Cause]:
        return [_cause(error) for error in self._validator.iter_errors(document)]


def _conform(
    value: Any,
    schema: Mapping[str, Any],
    path: str,
    unknown: list[str],
    *,
    keep: frozenset[str] = frozenset(),
) -> None:
    if isinstance(value, dict):
        _conform_object(value, schema, path, unknown, keep)
    elif isinstance(value, list) and (items := schema.get("items")):
        for index, item in enumerate(value):
            _conform(item, items, f"{path}[{index}]", unknown)


def _conform_object(
    value: Document, schema: Mapping[str, Any], path: str, unknown: list[str], keep: frozenset[str]
) -> None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    extra = schema.get("additionalProperties")
    preserves = bool(schema.get(_PRESERVE)) or extra is True
    if schema.get(_EMBEDDED):
        keep = keep | frozenset(_TYPE_META)
    for name in list(value):
        where = f"{path}.{name}" if path else name
        if name in keep:
            continue
        if (known := properties.get(name)) is not None:
            if value[name] is None and not known.get("nullable"):
                del value[name]
            else:
                _conform(value[name], known, where, unknown)
        elif isinstance(extra, Mapping):
            _conform(value[name], extra, where, unknown)
        elif not preserves:
            del value[name]
            unknown.append(where)
    for name, known in properties.items():
        if name not in value and "default" in known:
            value[name] = copy.deepcopy(known["default"])
            _conform(value[name], known, f"{path}.{name}", unknown)


_COPIED: Final = (
    "required",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
)


def _json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same demands in JSON Schema draft 4, which shares OpenAPI 3.0's boolean `exclusiveMinimum`."""
    made: dict[str, Any] = {name: schema[name] for name in _COPIED if name in schema}
    if schema.get(_INT_OR_STRING):
        made["type"] = ["integer", "string"]
    elif "type" in schema:
        made["type"] = schema["type"]
    if "enum" in schema:
        made["enum"] = list(schema["enum"])
    if schema.get("nullable"):
        _allow_null(made)
    _add_format(made, schema.get("format", ""))
    if "properties" in schema:
        made["properties"] = {name: _json_schema(sub) for name, sub in schema["properties"].items()}
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), Mapping):
            made[name] = _json_schema(schema[name])
    for name in ("allOf", "anyOf", "oneOf"):
        if name in schema:
            made[name] = [_json_schema(sub) for sub in schema[name]]
    return made


def _allow_null(made: dict[str, Any]) -> None:
    if "type" in made:
        kinds = made["type"] if isinstance(made["type"], list) else [made["type"]]
        made["type"] = [*kinds, "null"]
    if "enum" in made and None not in made["enum"]:
        made["enum"].append(None)


def _add_format(made: dict[str, Any], name: str) -> None:
    if name in ("date-time", "byte"):
        made["format"] = name
    elif name in _INTEGER_RANGES:
        low, high = _INTEGER_RANGES[name]
        made.setdefault("minimum", low)
        made.setdefault("maximum", high)


def _is_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_base64(value: str) -> bool:
    return len(value) % 4 == 0 and bool(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", value))


def field_path(path: Sequence[str | int]) -> str:
    """`["spec", "disks", 0, "name"]` as `spec.disks[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


_WORDS: Final[dict[str, Callable[[Any], str]]] = {
    "pattern": lambda kind: f"should match '{kind.pattern}'",
    "minimum": lambda kind: f"should be greater than or equal to {kind.limit}",
    "maximum": lambda kind: f"should be less than or equal to {kind.limit}",
    "minLength": lambda kind: f"should be at least {kind.limit} chars long",
    "maxLength": lambda kind: f"should be at most {kind.limit} chars long",
    "minItems": lambda kind: f"should have at least {kind.limit} items",
    "maxItems": lambda kind: f"should have at most {kind.limit} items",
    "format": lambda kind: f"must be of type {kind.format}",
}


def _cause(error: Any) -> Cause:
    keyword = error.kind.name
    where = field_path(error.instance_path)
    if keyword == "required":
        return cause("Required", f"{where}.{error.kind.property}" if where else error.kind.property, "")
    shown = _shown(error.instance)
    if keyword == "type":
        wanted = " or ".join(error.kind.types)
        found = Cause(where, "FieldValueTypeInvalid", "")
        return Cause(
            found.field, found.reason, f"Invalid value: {shown}: {where} in body must be of type {wanted}"
        )
    if keyword == "enum":
        options = ", ".join(encode(option).decode() for option in error.kind.options if option is not None)
        return cause("NotSupported", where, f"supported values: {options}", shown=shown)
    words = _WORDS[keyword](error.kind) if keyword in _WORDS else error.message
    return cause("Invalid", where, f"{where} in body {words}", shown=shown)


def _shown(value: object) -> str:
    text = encode(value).decode()
    return text if len(text) <= 120 else f"{text[:117]}..."
