"""From a configuration to the fields it owns, and from a set of fields to the document without them."""

from __future__ import annotations

from typing import Any

from ingot.embedded.server.documents import Document
from ingot.embedded.server.writes.apply.fieldset import SELF, FieldSet, has, named, node
from ingot.embedded.server.writes.apply.structure import DEDUCED, Structure


def fields_of(document: Document, structure: Structure) -> FieldSet:
    """What somebody owns who applies this document.

    Fields that a schema names are owned by what they hold; keys of a map and elements of a list are owned themselves,
    because making one is a statement of its own.
    """
    return _below_map(document, structure)


def _below(value: object, structure: Structure) -> tuple[FieldSet, bool]:
    """The owned places below a value, and whether the value is itself one."""
    match structure.form(value):
        case "map" if not structure.atomic:
            return (_below_map(value, structure) if isinstance(value, dict) else {}), False
        case "list" if structure.lists != "atomic":
            return _below_list(value, structure), False
        case _:
            return {}, True


def _below_map(value: Document, structure: Structure) -> FieldSet:
    made: FieldSet = {}
    for name in sorted(value):
        part = value[name]
        below, member = _below(part, structure.field(name))
        member = member or part is None or part == {} or name not in structure.fields
        if (here := node(below, member=member)) is not None:
            made[named(name)] = here
    return made


def _below_list(value: object, structure: Structure) -> FieldSet:
    made: FieldSet = {}
    items = structure.items or DEDUCED
    for step, item in structure.steps(value):
        below = {} if step in made else _below(item, items)[0]
        made[step] = {SELF: {}, **below} if below else {}
    return made


def with_named_fields(fields: FieldSet, structure: Structure | None) -> FieldSet:
    """The set, and the named fields that lead to its places: without what it holds, such a field goes too."""
    made: FieldSet = {}
    for step, below in fields.items():
        if not below or step == SELF:
            made[step] = below
            continue
        inner = _inside(structure, step) if structure is not None else None
        is_field = structure is not None and step[0] == "f" and step[2:] in structure.fields
        deeper = with_named_fields(below, inner)
        made[step] = {SELF: {}, **deeper} if is_field else deeper
    return made


def fitted(fields: FieldSet, structure: Structure | None) -> FieldSet:
    """A set that may be older than the schema: who owned parts of what is one value now owns that value."""
    if structure is None:
        return fields
    made: FieldSet = {}
    for step, below in fields.items():
        inner = _inside(structure, step)
        is_one = inner is not None and below and (_is_one_list(below, inner) or _is_one_map(below, inner))
        made[step] = {} if is_one else fitted(below, inner)
    return made


def _inside(structure: Structure, step: str) -> Structure | None:
    if step[0] == "f" and structure.maps:
        return structure.fields.get(step[2:]) or structure.element
    return structure.items if structure.lists and step[0] in "kv" else None


def _is_one_list(below: FieldSet, structure: Structure) -> bool:
    return structure.lists == "atomic" and any(step[0] in "kv" for step in below)


def _is_one_map(below: FieldSet, structure: Structure) -> bool:
    return structure.maps and structure.atomic and any(step[0] == "f" for step in below)


def without(value: Any, fields: FieldSet, structure: Structure) -> Any:
    """The value without the places in the set. What is left empty by that stays, empty."""
    match structure.form(value):
        case "map":
            return _map_without(value, fields, structure)
        case "list":
            return _list_without(value, fields, structure)
        case _:
            return value


def _map_without(value: Any, fields: FieldSet, structure: Structure) -> Any:
    if not isinstance(value, dict) or structure.atomic:
        return value
    made = {}
    for name, part in value.items():
        step = named(name)
        if has(fields, step):
            continue
        below = fields.get(step)
        made[name] = without(part, below, structure.field(name)) if below else part
    return made


def _list_without(value: Any, fields: FieldSet, structure: Structure) -> Any:
    if not isinstance(value, list) or structure.lists == "atomic":
        return value
    made = []
    items = structure.items or DEDUCED
    for item in value:
        step = structure.step(item) or ""
        if has(fields, step):
            continue
        below = fields.get(step)
        made.append(without(item, below, items) if below else item)
    return made
