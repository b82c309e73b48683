"""Structural schemas: what an object of a kind may look like.

A `Shape` is made once from a CRD's `openAPIV3Schema`. `conform` brings a document into shape: fields the schema does
not know are cut out (and named, for those who asked for strict checking), nulls that may not be null are dropped,
defaults are filled in. `problems` says what is still wrong, field by field, in the words of Kubernetes, and
`broken_rules` which of the schema's rules in CEL (`cel`) a change breaks. Metadata belongs to `metadata`.
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
from ingot.embedded.server.kinds.cel import costs, rules

# Objects of so many values can keep rules busy for more than some milliseconds.
_LONG: Final = 1000
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})
_INTEGER_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


class Shape:
    """The compiled form of one kind's schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = _Part(schema, keeps=_TYPE_META)
        self._rules = rules.place_of(schema, root=True)
        checked = _json_schema(schema)
        # Metadata is the same for all kinds and is checked before; a CRD may only narrow the name, which ours do not.
        checked.setdefault("properties", {})["metadata"] = {"type": "object"}
        self._validator = jsonschema_rs.Draft4Validator(
            checked, validate_formats=True, formats={"date-time": _is_time, "byte": _is_base64}
        )

    def conform(self, document: Document, *, defaults: bool = True) -> list[str]:
        """Bring the document into shape, in place. Answers with the paths of the fields that were cut out."""
        return _shaped(document, self._root, defaults)

    def problems(self, document: Document) -> list[Cause]:
        # Nearly all documents are right, and to find that out is faster than to look for what is wrong.
        if self._validator.is_valid(document):
            return []
        return [_cause(error) for error in self._validator.iter_errors(document)]

    def rules_take_long(self, new: Document) -> bool:
        """Whether there are rules, and so much to put to them that others should not have to wait for it."""
        return self._rules is not None and costs.weight(new) > _LONG

    def broken_rules(self, new: Document, old: Document | None, known: Sequence[Cause]) -> list[Cause]:
        """The rules that making `old` into `new` breaks. `known` is what is wrong with the document already."""
        return [] if self._rules is None else rules.broken(self._rules, new, old, known)


class _Part:
    """What shaping needs to know of one place in a schema, made once: most of a schema is leaves, which need nothing."""

    __slots__ = (
        "deep",
        "defaults",
        "extra",
        "items",
        "keeps",
        "leaf",
        "names",
        "nullable",
        "preserves",
        "properties",
    )

    def __init__(self, schema: Mapping[str, Any], *, keeps: frozenset[str] = frozenset()) -> None:
        extra = schema.get("additionalProperties")
        self.properties = {name: _Part(sub) for name, sub in schema.get("properties", {}).items()}
        self.extra = _Part(extra) if isinstance(extra, Mapping) else None
        self.items = _Part(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
        self.preserves = bool(schema.get(_PRESERVE)) or extra is True
        self.nullable = bool(schema.get("nullable"))
        self.keeps = keeps | _TYPE_META if schema.get(_EMBEDDED) else keeps
        self.defaults = {
            name: sub["default"] for name, sub in schema.get("properties", {}).items() if "default" in sub
        }
        # Where only these fields may be: all of them, and those that have parts of their own.
        self.names = frozenset(self.properties) | self.keeps
        self.deep = [(n, p) for n, p in self.properties.items() if not p.leaf and n not in self.keeps]
        holds_objects = schema.get("type") == "object" or "properties" in schema or self.extra is not None
        self.leaf: bool = not holds_objects and (self.items is None or self.items.leaf)


def _shaped(value: Any, part: _Part, defaults: bool) -> list[str]:
    """Shape the value in place. The paths of what was cut out are relative to it."""
    if isinstance(value, dict):
        return _shaped_object(value, part, defaults)
    if isinstance(value, list) and part.items is not None and not part.items.leaf:
        return [
            _joined(f"[{index}]", deeper)
            for index, item in enumerate(value)
            for deeper in _shaped(item, part.items, defaults)
        ]
    return []


def _shaped_object(value: Document, part: _Part, defaults: bool) -> list[str]:
    cut: list[str] = []
    if value.keys() <= part.names and None not in value.values():
        # Nothing to cut and nothing to drop here, as nearly always: only what has parts is worth a look.
        for name, known in part.deep:
            if (child := value.get(name)) is not None:
                cut += [_joined(name, deeper) for deeper in _shaped(child, known, defaults)]
    else:
        cut = _cut_and_dropped(value, part, defaults)
    for name, default in part.defaults.items() if defaults else ():
        if name not in value:
            value[name] = copy.deepcopy(default)
            _shaped(value[name], part.properties[name], defaults)
    return cut


def _cut_and_dropped(value: Document, part: _Part, defaults: bool) -> list[str]:
    cut: list[str] = []
    dropped: list[str] = []
    for name, child in value.items():
        known = part.properties.get(name)
        if name in part.keeps:
            continue
        if known is None and (known := part.extra) is None:
            if not part.preserves:
                dropped.append(name)
                cut.append(name)
        elif child is None and not known.nullable and name in part.properties:
            dropped.append(name)
        elif not known.leaf:
            cut += [_joined(name, deeper) for deeper in _shaped(child, known, defaults)]
    for name in dropped:
        del value[name]
    return cut


def _joined(first: str, rest: str) -> str:
    return f"{first}{rest}" if rest.startswith("[") else f"{first}.{rest}"


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
        # Like Kubernetes: the type that was found stands for the value.
        wanted, there = ",".join(error.kind.types), f'"{_type_of(error.instance)}"'
        words = f"Invalid value: {there}: {where} in body must be of type {wanted}: {there}"
        return Cause(where, "FieldValueTypeInvalid", words)
    if keyword == "enum":
        options = ", ".join(encode(option).decode() for option in error.kind.options if option is not None)
        return cause("NotSupported", where, f"supported values: {options}", shown=shown)
    words = _WORDS[keyword](error.kind) if keyword in _WORDS else error.message
    return cause("Invalid", where, f"{where} in body {words}", shown=shown)


def _type_of(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


def _shown(value: object) -> str:
    text = encode(value).decode()
    return text if len(text) <= 120 else f"{text[:117]}..."
