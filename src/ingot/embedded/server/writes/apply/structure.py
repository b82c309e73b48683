"""How the fields of a kind merge: which maps and lists are one value, and which are owned part by part.

A `Structure` is made once from a schema. It reads `x-kubernetes-map-type`, `x-kubernetes-list-type`,
`x-kubernetes-list-map-keys` and, for built-in kinds, the patch extensions. What a schema leaves open takes its form from
the value: maps part by part, lists as one. Metadata is the same for every kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from ingot.embedded.server.writes.apply.fieldset import keyed, valued

Form = Literal["map", "list", "scalar"]
Lists = Literal["atomic", "set", "map"]

# Parts of built-in kinds that are never absent, so that writing into one is not the same as making it.
_ALWAYS_THERE: Final = frozenset(
    {
        "containers",
        "involvedObject",
        "metadata",
        "resources",
        "source",
        "spec",
        "status",
        "strategy",
        "template",
        "updateStrategy",
    }
)
_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean", "string": "string"}


class Structure:
    """One place in a schema. A place may allow several forms; `form` says which one a value takes."""

    __slots__ = (
        "atomic",
        "defaults",
        "element",
        "fields",
        "items",
        "keys",
        "lists",
        "maps",
        "merged_by",
        "scalar",
    )

    def __init__(self) -> None:
        self.maps = False
        self.atomic = False
        self.fields: dict[str, Structure] = {}
        # What a map holds under names that are no fields; None where there can be none.
        self.element: Structure | None = None
        self.lists: Lists | None = None
        self.items: Structure | None = None
        self.keys: tuple[str, ...] = ()
        self.defaults: dict[str, Any] = {}
        # The key by which a strategic patch merges this list, empty for plain values; None where it replaces it.
        self.merged_by: str | None = None
        self.scalar = ""

    def form(self, value: object) -> Form:
        if isinstance(value, dict):
            if self.maps:
                return "map"
        elif isinstance(value, list):
            if self.lists:
                return "list"
        elif value is not None and self.scalar:
            return "scalar"
        # Null, and what does not fit at all.
        if self.maps:
            return "map"
        return "scalar" if self.scalar else "list"

    def field(self, name: str) -> Structure:
        return self.fields.get(name) or self.element or ATOMIC

    def step(self, item: object) -> str | None:
        """How an element of a list is known, whatever its place; None where it cannot be known."""
        if self.lists == "set":
            return None if item is None or isinstance(item, dict | list) else valued(item)
        if not isinstance(item, dict):
            return None
        found = {
            name: item.get(name, default)
            for name, default in self.defaults.items()
            if name in item or default is not None
        }
        return keyed(found) if found else None

    def steps(self, items: object) -> Iterator[tuple[str, Any]]:
        for item in items if isinstance(items, list) else ():
            if (step := self.step(item)) is not None:
                yield step, item

    def empty(self) -> dict[str, Any] | None:
        """A built-in object into which nobody has written anything: the parts that cannot be absent, none with a value."""
        if not self.maps:
            return None
        return {name: part.empty() for name, part in self.fields.items() if name in _ALWAYS_THERE}


def _any(*, maps_as_one: bool) -> Structure:
    made = Structure()
    made.maps, made.atomic, made.lists, made.scalar = True, maps_as_one, "atomic", "untyped"
    return made


# What a schema does not describe: as one value, or with the parts of its maps told apart.
ATOMIC: Final = _any(maps_as_one=True)
ATOMIC.element = ATOMIC.items = ATOMIC
DEDUCED: Final = _any(maps_as_one=False)
DEDUCED.element, DEDUCED.items = DEDUCED, ATOMIC


def structure_of(schema: Mapping[str, Any]) -> Structure:
    """The structure of a whole object of a kind."""
    properties = {"apiVersion": _TEXT, "kind": _TEXT, **schema.get("properties", {}), "metadata": _METADATA}
    return _made({**schema, "type": "object", "properties": properties}, open_=False)


def _made(schema: Mapping[str, Any], *, open_: bool) -> Structure:
    """`open_` is inherited: below a part that keeps unknown fields, all parts take them."""
    open_ = open_ or schema.get("x-kubernetes-preserve-unknown-fields") is True
    type_ = schema.get("type", "")
    if not type_ and not schema.get("properties") and not schema.get("items"):
        return DEDUCED
    made = Structure()
    if type_ in _SCALARS:
        made.scalar = _SCALARS[type_]
        if type_ == "string" and schema.get("format", "") not in ("", "byte"):
            made.scalar = "untyped"
        return made
    if type_ != "array":
        _add_map(made, schema, open_=open_)
    if type_ != "object":
        _add_list(made, schema, open_=open_)
    if not type_:
        made.scalar = "untyped"
    return made


def _add_map(made: Structure, schema: Mapping[str, Any], *, open_: bool) -> None:
    properties = dict(schema.get("properties", {}))
    if schema.get("x-kubernetes-embedded-resource"):
        properties |= {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
    made.maps = True
    made.atomic = schema.get("x-kubernetes-map-type") == "atomic"
    made.fields = {name: _made(sub, open_=open_) for name, sub in properties.items()}
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        made.element = _made(extra, open_=open_)
    elif extra or (extra is None and (open_ or not properties)):
        made.element = DEDUCED


def _add_list(made: Structure, schema: Mapping[str, Any], *, open_: bool) -> None:
    items = schema.get("items")
    made.items = _made(items, open_=open_) if isinstance(items, Mapping) else ATOMIC
    made.lists, made.keys = _list_form(schema)
    defaults = items.get("properties", {}) if isinstance(items, Mapping) else {}
    made.defaults = {key: defaults.get(key, {}).get("default") for key in made.keys}
    if _is_merged(schema):
        made.merged_by = schema.get("x-kubernetes-patch-merge-key", "")


def _is_merged(schema: Mapping[str, Any]) -> bool:
    return "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(",")


def _list_form(schema: Mapping[str, Any]) -> tuple[Lists, tuple[str, ...]]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return "set", ()
        case "map":
            return "map", tuple(schema.get("x-kubernetes-list-map-keys") or ())
        case None if _is_merged(schema):
            key = schema.get("x-kubernetes-patch-merge-key")
            return ("map", (key,)) if key else ("set", ())
        case _:
            return "atomic", ()


_TEXT: Final = {"type": "string"}
_TIME: Final = {"type": "string", "format": "date-time"}
_NUMBER: Final = {"type": "integer"}
_FLAG: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}
_OWNER: Final = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": _FLAG,
        "blockOwnerDeletion": _FLAG,
    },
}
_METADATA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "generation": _NUMBER,
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": _NUMBER,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {
            "type": "array",
            "items": _TEXT,
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
        },
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "uid",
        },
        "managedFields": {"type": "array", "items": {"type": "object"}},
    },
}
