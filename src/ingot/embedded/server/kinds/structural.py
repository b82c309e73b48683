"""Structural schemas: what a schema inside a definition may look like.

A schema is structural when it says of every field what type it has, apart from what its values may be; only then can
objects be pruned and given defaults. `cut_unknown` drops what is no word of a schema, `misshapen` finds words with
values of the wrong type, `problems` says what is wrong with the rest, in the words of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import Cause, cause

Schema = Mapping[str, Any]

_JUNCTORS: Final = ("anyOf", "allOf", "oneOf")
_META: Final = frozenset({"metadata", "kind", "apiVersion"})
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_EITHER: Final = "x-kubernetes-int-or-string"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_KEYS: Final = "x-kubernetes-list-map-keys"

# Every word of a schema, and what its value must be.
_TEXT, _NUMBER, _WHOLE, _FLAG, _TEXTS, _ONE, _MANY, _NAMED, _ANY = (
    "a string",
    "a number",
    "an integer",
    "a boolean",
    "a list of strings",
    "a schema",
    "a list of schemas",
    "a map of schemas",
    "anything",
)
_WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), _TEXT),
    **dict.fromkeys((_LIST_TYPE, _MAP_TYPE), _TEXT),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _WHOLE
    ),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _FLAG),
    **dict.fromkeys((_PRESERVE, _EMBEDDED, _EITHER), _FLAG),
    **dict.fromkeys(("required", _KEYS), _TEXTS),
    **dict.fromkeys(("not", "items", "additionalProperties", "additionalItems"), _ONE),
    **dict.fromkeys(_JUNCTORS, _MANY),
    **dict.fromkeys(("properties", "patternProperties", "definitions", "dependencies"), _NAMED),
    **dict.fromkeys(("default", "enum", "externalDocs", "example", "x-kubernetes-validations"), _ANY),
}


def _children(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Every schema directly inside this one, with the path to it."""
    for word, value in schema.items():
        match _WORDS.get(word), value:
            case "a schema", Mapping():
                yield word, value
            case (("a list of schemas" | "a schema"), list()):
                yield from ((f"{word}[{index}]", item) for index, item in enumerate(value))
            case "a map of schemas", Mapping():
                yield from ((f"{word}[{name}]", item) for name, item in value.items())


def cut_unknown(schema: Document) -> list[str]:
    """Drop what is no word of a schema, in place, and answer with the paths of it. A null counts as absent."""
    unknown = [word for word in schema if word not in _WORDS]
    for word in [word for word, value in schema.items() if word not in _WORDS or value is None]:
        del schema[word]
    for path, child in _children(schema):
        if isinstance(child, dict):
            # Strict checking names the fields as they are in the document.
            plain = re.sub(r"\[([^\]\d][^\]]*)\]", r".\1", path)
            unknown += [f"{plain}.{deeper}" for deeper in cut_unknown(child)]
    return unknown


def misshapen(schema: object) -> str:
    """Where a word has a value of the wrong type, and which is expected; empty if nowhere."""
    if not isinstance(schema, Mapping):
        return "must be a schema"
    for word, value in schema.items():
        wanted = _WORDS.get(word, _ANY)
        if value is not None and not _FITS[wanted](value):
            return f"{word} must be {wanted}"
    for path, child in _children(schema):
        if child is not None and not isinstance(child, bool) and (found := misshapen(child)):
            return f"{path}.{found}"
    return ""


_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    _TEXT: lambda value: isinstance(value, str),
    _NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    _WHOLE: lambda value: isinstance(value, int) and not isinstance(value, bool),
    _FLAG: lambda value: isinstance(value, bool),
    _TEXTS: lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    _ONE: lambda value: isinstance(value, Mapping | bool | list),
    _MANY: lambda value: isinstance(value, list) and all(isinstance(item, Mapping) for item in value),
    _NAMED: lambda value: isinstance(value, Mapping),
    _ANY: lambda value: True,
}


def every(schema: Schema) -> Iterator[Schema]:
    """This schema and all inside it."""
    yield schema
    for _, child in _children(schema):
        if isinstance(child, Mapping):
            yield from every(child)


def problems(schema: Schema, where: str) -> list[Cause]:
    found = _invariants(schema, "root", where)
    found += _completeness(schema, schema, where, where)
    return sorted(found, key=lambda found: (found.field, found.message)) + _words(schema, where, _Context())


# What makes a schema structural


def _invariants(schema: Schema, level: str, where: str) -> list[Cause]:
    found: list[Cause] = []
    type_, embedded = schema.get("type", ""), schema.get(_EMBEDDED)
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
            words = f"must not be used if {_EMBEDDED} is set"
            found.append(cause("Forbidden", f"{where}.additionalProperties", words))
        if isinstance(extra, Mapping):
            found += _invariants(extra, "field", f"{where}.additionalProperties")
    if schema.get(_EITHER):
        found += [
            cause("Invalid", f"{where}.{word}", f"must be false if {_EITHER} is true", shown="true")
            for word in (_PRESERVE, _EMBEDDED)
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
    if schema.get(_EMBEDDED) and type_ != "object":
        return [_must_be(f"{where}.type", type_, f"must be object if {_EMBEDDED} is true")]
    if not type_ and not schema.get(_EITHER) and not schema.get(_PRESERVE):
        return [cause("Required", f"{where}.type", _WITHOUT_TYPE[level])]
    if level == "root" and type_ and type_ != "object":
        return [_must_be(f"{where}.type", type_, "must be object at the root")]
    return []


def _meta(schema: Schema, level: str, where: str) -> list[Cause]:
    """Type and metadata are given: a schema may only narrow the name."""
    found: list[Cause] = []
    properties = schema.get("properties", {})
    embedded = bool(schema.get(_EMBEDDED))
    if embedded and not schema.get(_PRESERVE) and not properties:
        words = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        found.append(cause("Required", f"{where}.properties", words))
    if level != "root" and not embedded:
        return found
    for name, type_ in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type", "") != type_:
            shown = properties[name].get("type", "")
            found.append(
                cause("Invalid", f"{where}.properties[{name}].type", f"must be {type_}", shown=_shown(shown))
            )
    if level == "root" and "metadata" in properties:
        metadata = properties["metadata"]
        known = set(metadata.get("properties", {})) <= {"name", "generateName"}
        if not known or set(metadata) - {"type", "properties", "description", "default"}:
            words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            found.append(cause("Forbidden", f"{where}.properties[metadata]", words))
    return found


def _junctors(schema: Schema, where: str) -> list[Cause]:
    found: list[Cause] = []
    for word in _JUNCTORS:
        nested = schema.get(word, [])
        if word == "anyOf" and nested == _INT_OR_STRING:
            continue
        for index, child in enumerate(nested):
            either = word == "allOf" and index == 0 and child.get("anyOf") == _INT_OR_STRING
            found += _nested(child, f"{where}.{word}[{index}]", either=either)
    if isinstance(schema.get("not"), Mapping):
        found += _nested(schema["not"], f"{where}.not")
    if pattern := schema.get("pattern"):
        try:
            re.compile(pattern)
        except re.error as error:
            words = f"must be a valid regular expression, but isn't: {error}"
            found.append(cause("Invalid", f"{where}.pattern", words, shown=_shown(pattern)))
    return found


_NOT_NESTED: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    _PRESERVE: "must be false to be structural",
    _EMBEDDED: "must be false to be structural",
    _EITHER: "must be false to be structural",
    _KEYS: "must be empty to be structural",
    _LIST_TYPE: "must be undefined to be structural",
    _MAP_TYPE: "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def _nested(schema: Schema, where: str, *, either: bool = False) -> list[Cause]:
    """Under a junctor a schema may only narrow values, never say what there is."""
    found = _junctors({**schema, "anyOf": []} if either else schema, where)
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
        if schema.get(word) not in (None, "", False, [])
    ]
    return found


def _completeness(narrowing: Schema, schema: Schema, where: str, at: str) -> list[Cause]:
    """What a junctor narrows must be there: every field it names is also named outside."""
    found: list[Cause] = []
    for path, child in _children(
        {word: narrowing[word] for word in (*_JUNCTORS, "not") if word in narrowing}
    ):
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


# What each word may say


@dataclass(frozen=True, slots=True)
class _Context:
    """Where in a schema we are: at the root, inside metadata, and why defaults are not allowed here."""

    root: bool = True
    inside_meta: bool = False
    no_defaults: str = ""


_UNSUPPORTED: Final = {
    "id": "id is not supported",
    "additionalItems": "additionalItems is not supported",
    "patternProperties": "patternProperties is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "$ref": "$ref is not supported",
    "uniqueItems": "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
}


def _words(schema: Schema, where: str, context: _Context) -> list[Cause]:
    type_ = schema.get("type", "")
    found: list[Cause] = []
    if type_ and type_ not in _TYPES:
        found.append(_unsupported(f"{where}.type", type_, _TYPES))
    if "default" in schema and context.no_defaults:
        found.append(cause("Forbidden", f"{where}.default", f"must not be set {context.no_defaults}"))
    found += [
        cause("Forbidden", f"{where}.{word}", words)
        for word, words in _UNSUPPORTED.items()
        if schema.get(word) not in (None, "", False, {})
    ]
    if type_ == "null":
        words = "type cannot be set to null, use nullable as an alternative"
        found.append(cause("Forbidden", f"{where}.type", words))
    if isinstance(schema.get("items"), list):
        found.append(cause("Forbidden", f"{where}.items", "items must be a schema object and not an array"))
    if context.inside_meta and schema.get(_EMBEDDED):
        found.append(cause("Forbidden", f"{where}.{_EMBEDDED}", "must not be used inside of resource meta"))
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        words = "additionalProperties and properties are mutual exclusive"
        found.append(cause("Forbidden", f"{where}.additionalProperties", words))
    if schema.get(_PRESERVE) is False:
        found.append(cause("Invalid", f"{where}.{_PRESERVE}", "must be true or undefined", shown="false"))
    return found + _lists_and_maps(schema, where) + _deeper(schema, where, context)


def _deeper(schema: Schema, where: str, context: _Context) -> list[Cause]:
    found: list[Cause] = []
    for path, child in _children(schema):
        if not isinstance(child, Mapping):
            continue
        inside = replace(context, root=False)
        name = path.removeprefix("properties[").removesuffix("]")
        if path == "additionalProperties" and context.inside_meta:
            inside = replace(inside, no_defaults="inside additionalProperties applying to object metadata")
        elif path.startswith("properties[") and name in _META and (context.root or schema.get(_EMBEDDED)):
            top = f"in top-level {name}" if context.root else context.no_defaults
            inside = replace(inside, inside_meta=True, no_defaults=top)
        found += _words(child, f"{where}.{path}", inside)
    return found


def _lists_and_maps(schema: Schema, where: str) -> list[Cause]:
    found: list[Cause] = []
    type_ = schema.get("type", "")
    for word, needed, allowed in (
        (_MAP_TYPE, "object", ("atomic", "granular")),
        (_LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        if (value := schema.get(word)) is None:
            continue
        if type_ != needed:
            found.append(_must_be(f"{where}.type", type_, f"must be {needed} if {word} is specified"))
        if value not in allowed:
            found.append(_unsupported(f"{where}.{word}", value, allowed))
    keys, listed = schema.get(_KEYS) or [], schema.get(_LIST_TYPE)
    if keys and listed != "map":
        words = f"must be map if {_KEYS} is non-empty"
        found.append(_must_be(f"{where}.{_LIST_TYPE}", listed or "", words))
    items = schema.get("items")
    if listed in ("set", "map") and isinstance(items, Mapping) and items.get("nullable"):
        words = f"cannot be nullable when {_LIST_TYPE} is {listed}"
        found.append(cause("Forbidden", f"{where}.items.nullable", words))
    if listed == "map":
        return found + _map_list(schema, keys, where)
    if listed == "set" and isinstance(items, Mapping):
        found += _set_items(items, f"{where}.items")
    return found


def _set_items(items: Schema, where: str) -> list[Cause]:
    for type_, word, fine in (("array", _LIST_TYPE, (None, "atomic")), ("object", _MAP_TYPE, ("atomic",))):
        if items.get("type") == type_ and items.get(word) not in fine:
            words = f"must be atomic as item of a list with {_LIST_TYPE}=set"
            return [cause("Invalid", f"{where}.{word}", words, shown=_shown(items.get(word)))]
    return []


def _map_list(schema: Schema, keys: Sequence[str], where: str) -> list[Cause]:
    items = schema.get("items")
    if not keys:
        return [cause("Required", f"{where}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")]
    if not isinstance(items, Mapping):
        return [cause("Required", f"{where}.items", f"must have a schema if {_LIST_TYPE} is map")]
    if items.get("type") != "object":
        words = f"must be object if parent array's {_LIST_TYPE} is map"
        return [cause("Invalid", f"{where}.items.type", words, shown=_shown(items.get("type", "")))]
    found: list[Cause] = []
    for index, key in enumerate(keys):
        found += _map_key(items, key, where, keys)
        if key in keys[:index]:
            words = "must not contain duplicate entries"
            found.append(cause("Invalid", f"{where}.{_KEYS}", words, shown=_shown(keys)))
    return found


def _map_key(items: Schema, key: str, where: str, keys: Sequence[str]) -> list[Cause]:
    if (child := items.get("properties", {}).get(key)) is None:
        words = "entries must all be names of item properties"
        return [cause("Invalid", f"{where}.{_KEYS}", words, shown=_shown(keys))]
    found: list[Cause] = []
    at = f"{where}.items.properties[{key}]"
    if child.get("type") in ("array", "object"):
        words = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
        found.append(cause("Invalid", f"{at}.type", words, shown=_shown(child.get("type"))))
    if key not in items.get("required", []) and child.get("default") is None:
        words = f"this property is in {_KEYS}, so it must have a default or be a required property"
        found.append(cause("Required", f"{at}.default", words))
    if child.get("nullable"):
        words = f"this property is in {_KEYS}, so it cannot be nullable"
        found.append(cause("Forbidden", f"{at}.nullable", words))
    return found


def _must_be(where: str, value: str, words: str) -> Cause:
    return cause("Invalid", where, words, shown=_shown(value)) if value else cause("Required", where, words)


def _unsupported(where: str, value: str, allowed: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{word}"' for word in allowed)
    return cause("NotSupported", where, f"supported values: {listed}", shown=_shown(value))


def _shown(value: object) -> str:
    return encode(value).decode()
