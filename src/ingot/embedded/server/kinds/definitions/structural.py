"""Structural schemas: those that say of every field what type it has, apart from what its values may be.

Only objects with such a schema can be pruned and given defaults, so that a definition must have one for each version.
`problems` says what keeps a schema from being structural, as Kubernetes says it; single words are left to `words`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.definitions.phrases import must_be, shown
from ingot.embedded.server.kinds.definitions.words import (
    EITHER,
    EMBEDDED,
    JUNCTORS,
    KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    Schema,
    children,
)

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]


def problems(schema: Schema, where: str) -> list[Cause]:
    found = _invariants(schema, "root", where)
    found += _completeness(schema, schema, where, where)
    return sorted(found, key=lambda found: (found.field, found.message))


def _invariants(schema: Schema, level: str, where: str) -> list[Cause]:
    found: list[Cause] = []
    type_, embedded = schema.get("type", ""), schema.get(EMBEDDED)
    if type_ == "array" and "items" not in schema:
        found.append(cause("Required", f"{where}.items", "must be specified"))
    if isinstance(items := schema.get("items"), Mapping):
        found += _invariants(items, "item", f"{where}.items")
    for name, child in schema.get("properties", {}).items():
        found += _invariants(child, "field", f"{where}.properties[{name}]")
    if (extra := schema.get("additionalProperties")) is not None:
        if level == "root":
            found.append(cause("Forbidden", f"{where}.additionalProperties", "must not be used at the root"))
        if embedded:
            words = f"must not be used if {EMBEDDED} is set"
            found.append(cause("Forbidden", f"{where}.additionalProperties", words))
        if isinstance(extra, Mapping):
            found += _invariants(extra, "field", f"{where}.additionalProperties")
    if schema.get(EITHER):
        found += [
            cause("Invalid", f"{where}.{word}", f"must be false if {EITHER} is true", shown="true")
            for word in (PRESERVE, EMBEDDED)
            if schema.get(word)
        ]
    return (
        found
        + _type_invariants(schema, level, where)
        + _junctors(schema, where)
        + _meta(schema, level, where)
    )


_WITHOUT_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def _type_invariants(schema: Schema, level: str, where: str) -> list[Cause]:
    type_ = schema.get("type", "")
    if schema.get(EMBEDDED) and type_ != "object":
        return [must_be(f"{where}.type", type_, f"must be object if {EMBEDDED} is true")]
    if not type_ and not schema.get(EITHER) and not schema.get(PRESERVE):
        return [cause("Required", f"{where}.type", _WITHOUT_TYPE[level])]
    if level == "root" and type_ and type_ != "object":
        return [must_be(f"{where}.type", type_, "must be object at the root")]
    return []


def _meta(schema: Schema, level: str, where: str) -> list[Cause]:
    """Type and metadata are given: a schema may only narrow the name."""
    found: list[Cause] = []
    properties = schema.get("properties", {})
    embedded = bool(schema.get(EMBEDDED))
    if embedded and not schema.get(PRESERVE) and not properties:
        words = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        found.append(cause("Required", f"{where}.properties", words))
    if level != "root" and not embedded:
        return found
    for name, type_ in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type", "") != type_:
            at, given = f"{where}.properties[{name}].type", properties[name].get("type", "")
            found.append(cause("Invalid", at, f"must be {type_}", shown=shown(given)))
    if level == "root" and "metadata" in properties:
        metadata = properties["metadata"]
        known = set(metadata.get("properties", {})) <= {"name", "generateName"}
        if not known or set(metadata) - {"type", "properties", "description", "default"}:
            words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            found.append(cause("Forbidden", f"{where}.properties[metadata]", words))
    return found


def _junctors(schema: Schema, where: str, *, nested_in_one: bool = False) -> list[Cause]:
    found: list[Cause] = []
    for word in JUNCTORS:
        nested = schema.get(word, [])
        if word == "anyOf" and nested == _INT_OR_STRING and not nested_in_one:
            continue
        for index, child in enumerate(nested):
            first = word == "allOf" and index == 0 and not nested_in_one
            either = first and child.get("anyOf") == _INT_OR_STRING
            found += _nested(child, f"{where}.{word}[{index}]", either=either)
    if isinstance(schema.get("not"), Mapping):
        found += _nested(schema["not"], f"{where}.not")
    if pattern := schema.get("pattern"):
        try:
            re.compile(pattern)
        except re.error as error:
            words = f"must be a valid regular expression, but isn't: {error}"
            found.append(cause("Invalid", f"{where}.pattern", words, shown=shown(pattern)))
    return found


_NOT_NESTED: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    PRESERVE: "must be false to be structural",
    EMBEDDED: "must be false to be structural",
    EITHER: "must be false to be structural",
    KEYS: "must be empty to be structural",
    LIST_TYPE: "must be undefined to be structural",
    MAP_TYPE: "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def _nested(schema: Schema, where: str, *, either: bool = False) -> list[Cause]:
    """Under a junctor a schema may only narrow values, never say what there is."""
    found = _junctors({**schema, "anyOf": []} if either else schema, where, nested_in_one=True)
    if isinstance(items := schema.get("items"), Mapping):
        found += _nested(items, f"{where}.items")
    for name, child in schema.get("properties", {}).items():
        found += _nested(child, f"{where}.properties[{name}]")
        if name == "metadata":
            words = "must not be specified in a nested context"
            found.append(cause("Forbidden", f"{where}.properties[metadata]", words))
    found += [
        cause("Forbidden", f"{where}.{word}", words)
        for word, words in _NOT_NESTED.items()
        if schema.get(word) not in ((None,) if word == "default" else (None, "", False, []))
    ]
    return found


def _completeness(narrowing: Schema, schema: Schema, where: str, at: str) -> list[Cause]:
    """What a junctor narrows must be there: every field it names is also named outside."""
    found: list[Cause] = []
    for path, child in children({word: narrowing[word] for word in (*JUNCTORS, "not") if word in narrowing}):
        found += _complete(child, schema, where, f"{at}.{path}")
    return found


def _complete(narrowing: Schema, schema: Schema | None, where: str, at: str) -> list[Cause]:
    if schema is None:
        return [cause("Required", where, f"because it is defined in {at}")]
    found = _completeness(narrowing, schema, where, at)
    if isinstance(items := narrowing.get("items"), Mapping):
        inside = schema.get("items")
        inside = inside if isinstance(inside, Mapping) else None
        found += _complete(items, inside, f"{where}.items", f"{at}.items")
    properties = schema.get("properties", {})
    for name, child in narrowing.get("properties", {}).items():
        step = f"properties[{name}]"
        found += _complete(child, properties.get(name), f"{where}.{step}", f"{at}.{step}")
    return found
