"""The words of a schema inside a definition: which there are, what they hold, and which go together.

`cut_unknown` drops what is no word of a schema, `misshapen` finds words with values of the wrong type, `problems` says
which words cannot be used as they are. Whether the whole can be pruned and given defaults is said by `structural`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.definitions.phrases import must_be, shown, unsupported

Schema = Mapping[str, Any]

# Far more than anybody needs, and little enough for whoever walks through a schema.
_DEEPEST: Final = 100
_TOO_DEEP: Final = f"is nested more than {_DEEPEST} levels deep"

JUNCTORS: Final = ("anyOf", "allOf", "oneOf")
_META: Final = frozenset({"metadata", "kind", "apiVersion"})
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
EITHER: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
MAP_TYPE: Final = "x-kubernetes-map-type"
KEYS: Final = "x-kubernetes-list-map-keys"

# Every word of a schema, and what its value must be.
_TEXT, _NUMBER, _WHOLE, _FLAG, _TEXTS, _ONE, _MANY, _NAMED, _RULES, _VALUES, _ANY = (
    "a string",
    "a number",
    "an integer",
    "a boolean",
    "a list of strings",
    "a schema",
    "a list of schemas",
    "a map of schemas",
    "a list of rules",
    "a list",
    "anything",
)
_WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), _TEXT),
    **dict.fromkeys((LIST_TYPE, MAP_TYPE), _TEXT),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), _WHOLE
    ),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), _FLAG),
    **dict.fromkeys((PRESERVE, EMBEDDED, EITHER), _FLAG),
    **dict.fromkeys(("required", KEYS), _TEXTS),
    **dict.fromkeys(("not", "items", "additionalProperties", "additionalItems"), _ONE),
    **dict.fromkeys(JUNCTORS, _MANY),
    **dict.fromkeys(("properties", "patternProperties", "definitions", "dependencies"), _NAMED),
    "x-kubernetes-validations": _RULES,
    "enum": _VALUES,
    **dict.fromkeys(("default", "externalDocs", "example"), _ANY),
}


def children(schema: Schema) -> Iterator[tuple[str, Any]]:
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
    """Drop what is no word of a schema, in place, and answer with the paths of it.

    A null counts as absent, or where a schema must be as an empty one; and a flag that is off counts as absent, except for the
    one that says something then.
    """
    unknown = [word for word in schema if word not in _WORDS]
    for word, value in list(schema.items()):
        off = value is False and _WORDS.get(word) == _FLAG and word != PRESERVE
        if word not in _WORDS or value is None or off:
            del schema[word]
        elif isinstance(value, list) and _WORDS[word] in (_ONE, _MANY):
            schema[word] = [{} if item is None else item for item in value]
        elif isinstance(value, dict) and _WORDS[word] == _NAMED:
            schema[word] = {name: {} if item is None else item for name, item in value.items()}
    for path, child in children(schema):
        if isinstance(child, dict):
            # Strict checking names the fields as they are in the document.
            plain = re.sub(r"\[([^\]\d][^\]]*)\]", r".\1", path)
            unknown += [f"{plain}.{deeper}" for deeper in cut_unknown(child)]
    return unknown


def misshapen(schema: object, *, depth: int = 0) -> str:
    """Where a word has a value of the wrong type, and which is expected; empty if nowhere."""
    if not isinstance(schema, Mapping):
        return "must be a schema"
    if depth > _DEEPEST:
        return _TOO_DEEP
    for word, value in schema.items():
        wanted = _WORDS.get(word, _ANY)
        if value is not None and not _FITS[wanted](value):
            return f"{word} must be {wanted}"
    for path, child in children(schema):
        # Dependencies, which are refused anyway, may be lists of names.
        if child is None or (path.startswith("dependencies[") and isinstance(child, list)):
            continue
        if found := misshapen(child, depth=depth + 1):
            return found if found is _TOO_DEEP else f"{path}.{found}"
    return ""


_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    _TEXT: lambda value: isinstance(value, str),
    _NUMBER: lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    _WHOLE: lambda value: isinstance(value, int) and not isinstance(value, bool),
    _FLAG: lambda value: isinstance(value, bool),
    _TEXTS: lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    _ONE: lambda value: isinstance(value, Mapping | bool | list),
    _MANY: lambda value: isinstance(value, list) and all(isinstance(item, Mapping | None) for item in value),
    _NAMED: lambda value: isinstance(value, Mapping),
    _RULES: lambda value: isinstance(value, list) and all(_is_rule(rule) for rule in value),
    _VALUES: lambda value: isinstance(value, list),
    _ANY: lambda value: True,
}


def _is_rule(rule: object) -> bool:
    if not isinstance(rule, Mapping):
        return False
    texts = (rule.get(name) for name in ("rule", "message", "messageExpression", "reason", "fieldPath"))
    return all(isinstance(text, str | None) for text in texts) and isinstance(
        rule.get("optionalOldSelf"), bool | None
    )


def every(schema: Schema) -> Iterator[Schema]:
    """This schema and all inside it."""
    yield schema
    for _, child in children(schema):
        if isinstance(child, Mapping):
            yield from every(child)


def problems(schema: Schema, where: str) -> list[Cause]:
    """What cannot be said, in this schema and all inside it."""
    return _words(schema, where, _Context())


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
        found.append(unsupported(f"{where}.type", type_, _TYPES))
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
    if context.inside_meta and schema.get(EMBEDDED):
        found.append(cause("Forbidden", f"{where}.{EMBEDDED}", "must not be used inside of resource meta"))
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        words = "additionalProperties and properties are mutual exclusive"
        found.append(cause("Forbidden", f"{where}.additionalProperties", words))
    if schema.get(PRESERVE) is False:
        found.append(cause("Invalid", f"{where}.{PRESERVE}", "must be true or undefined", shown="false"))
    return found + _lists_and_maps(schema, where) + _deeper(schema, where, context)


def _deeper(schema: Schema, where: str, context: _Context) -> list[Cause]:
    found: list[Cause] = []
    for path, child in children(schema):
        if not isinstance(child, Mapping):
            continue
        inside = replace(context, root=False)
        name = path.removeprefix("properties[").removesuffix("]")
        if path == "additionalProperties" and context.inside_meta:
            inside = replace(inside, no_defaults="inside additionalProperties applying to object metadata")
        elif path.startswith("properties[") and name in _META and (context.root or schema.get(EMBEDDED)):
            top = f"in top-level {name}" if context.root else context.no_defaults
            inside = replace(inside, inside_meta=True, no_defaults=top)
        found += _words(child, f"{where}.{path}", inside)
    return found


def _lists_and_maps(schema: Schema, where: str) -> list[Cause]:
    found: list[Cause] = []
    type_ = schema.get("type", "")
    for word, needed, allowed in (
        (MAP_TYPE, "object", ("atomic", "granular")),
        (LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        if (value := schema.get(word)) is None:
            continue
        if type_ != needed:
            found.append(must_be(f"{where}.type", type_, f"must be {needed} if {word} is specified"))
        if value not in allowed:
            found.append(unsupported(f"{where}.{word}", value, allowed))
    keys, listed = schema.get(KEYS) or [], schema.get(LIST_TYPE)
    if keys and listed != "map":
        words = f"must be map if {KEYS} is non-empty"
        found.append(must_be(f"{where}.{LIST_TYPE}", listed or "", words))
    items = schema.get("items")
    if listed in ("set", "map") and isinstance(items, Mapping) and items.get("nullable"):
        words = f"cannot be nullable when {LIST_TYPE} is {listed}"
        found.append(cause("Forbidden", f"{where}.items.nullable", words))
    if listed == "map":
        return found + _map_list(schema, keys, where)
    if listed == "set" and isinstance(items, Mapping):
        found += _set_items(items, f"{where}.items")
    return found


def _set_items(items: Schema, where: str) -> list[Cause]:
    for type_, word, fine in (("array", LIST_TYPE, (None, "atomic")), ("object", MAP_TYPE, ("atomic",))):
        if items.get("type") == type_ and items.get(word) not in fine:
            words = f"must be atomic as item of a list with {LIST_TYPE}=set"
            return [cause("Invalid", f"{where}.{word}", words, shown=shown(items.get(word)))]
    return []


def _map_list(schema: Schema, keys: Sequence[str], where: str) -> list[Cause]:
    items = schema.get("items")
    found: list[Cause] = []
    if not keys:
        found.append(cause("Required", f"{where}.{KEYS}", f"must not be empty if {LIST_TYPE} is map"))
    if not isinstance(items, Mapping):
        return [*found, cause("Required", f"{where}.items", f"must have a schema if {LIST_TYPE} is map")]
    if items.get("type") != "object":
        words = f"must be object if parent array's {LIST_TYPE} is map"
        return [*found, cause("Invalid", f"{where}.items.type", words, shown=shown(items.get("type", "")))]
    for index, key in enumerate(keys):
        found += _map_key(items, key, where, keys)
        if key in keys[:index]:
            words = "must not contain duplicate entries"
            found.append(cause("Invalid", f"{where}.{KEYS}", words, shown=shown(keys)))
    return found


def _map_key(items: Schema, key: str, where: str, keys: Sequence[str]) -> list[Cause]:
    if (child := items.get("properties", {}).get(key)) is None:
        words = "entries must all be names of item properties"
        return [cause("Invalid", f"{where}.{KEYS}", words, shown=shown(keys))]
    found: list[Cause] = []
    at = f"{where}.items.properties[{key}]"
    if child.get("type") in ("array", "object"):
        words = f"must be a scalar type if parent array's {LIST_TYPE} is map"
        found.append(cause("Invalid", f"{at}.type", words, shown=shown(child.get("type"))))
    if key not in items.get("required", []) and child.get("default") is None:
        words = f"this property is in {KEYS}, so it must have a default or be a required property"
        found.append(cause("Required", f"{at}.default", words))
    if child.get("nullable"):
        words = f"this property is in {KEYS}, so it cannot be nullable"
        found.append(cause("Forbidden", f"{at}.nullable", words))
    return found
