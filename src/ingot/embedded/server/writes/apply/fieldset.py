"""Sets of fields, in the form they have in `managedFields`.

A set is a tree of nested dictionaries, just as `fieldsV1` writes it: a key is a step (`f:name`, `k:{"name":"x"}`,
`v:"x"`, `i:0`), the value is what lies below. A place is *in* the set when nothing lies below it or when it holds `.`;
otherwise it is only on the way to others. Because this is the stored form, reading a set costs nothing.

The functions never change what they are given; results share parts with it, so nobody may change those either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from ingot.embedded.server.documents import encode

# A tree of such trees; a recursive alias has no form that both mypy and this file can read.
FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

SELF: Final = "."
_MEMBER: Final[FieldSet] = {}
_KINDS: Final = frozenset("fkvi")
# As Kubernetes writes JSON inside a step; two spellings of one step would be two fields.
_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class NotASet(ValueError):
    """What was given as `fieldsV1` is not of that form."""


# Steps


def named(name: str) -> str:
    return f"f:{name}"


def valued(value: object) -> str:
    return f"v:{_json(value)}"


def keyed(keys: Mapping[str, object]) -> str:
    return f"k:{_json({name: keys[name] for name in sorted(keys)})}"


def _json(value: object) -> str:
    text = encode(value).decode()
    for plain, escaped in _ESCAPES.items():
        if plain in text:
            text = text.replace(plain, escaped)
    return text


def shown(path: Path) -> str:
    """A path as messages write it: `.spec.ports[port=80].name`."""
    return "".join(_shown_step(step) for step in path)


def _shown_step(step: str) -> str:
    kind, content = step[:1], step[2:]
    if kind == "f":
        return f".{content}"
    if kind == "i":
        return f"[{content}]"
    value = msgspec.json.decode(content)
    if kind == "k":
        return f"[{','.join(f'{name}={encode(part).decode()}' for name, part in value.items())}]"
    return f"[={encode(value).decode()}]"


# Reading


def checked(given: object) -> FieldSet:
    """A set that a client sent, with every step in its one spelling. Raises NotASet."""
    if not isinstance(given, Mapping):
        raise NotASet("a set of fields is an object")
    return {_checked_step(step): checked(below) for step, below in given.items()}


def _checked_step(step: str) -> str:
    if step == SELF:
        return step
    if len(step) < 2 or step[1] != ":" or step[0] not in _KINDS:
        raise NotASet(f"{step[:40]!r} is not a step of a path")
    if step[0] == "f":
        return step
    try:
        value = msgspec.json.decode(step[2:])
    except msgspec.DecodeError:
        raise NotASet(f"{step[:40]!r} does not hold JSON") from None
    if step[0] == "v":
        return valued(value)
    if step[0] == "k" and isinstance(value, dict):
        return keyed(value)
    if step[0] == "i" and isinstance(value, int):
        return f"i:{value}"
    raise NotASet(f"{step[:40]!r} is not a step of a path")


def members(fields: FieldSet, way: Path = ()) -> Iterator[Path]:
    """Every place in the set, parents before what lies below them."""
    for step, below in fields.items():
        if step == SELF:
            continue
        if not below or SELF in below:
            yield (*way, step)
        if below:
            yield from members(below, (*way, step))


def has(fields: FieldSet, step: str) -> bool:
    """Whether the place one step away is in the set."""
    below = fields.get(step)
    return below is not None and (not below or SELF in below)


# Making


def node(below: FieldSet, *, member: bool) -> FieldSet | None:
    """What stands at a place: None where neither it nor anything below is in the set."""
    if not below:
        return _MEMBER if member else None
    return {SELF: _MEMBER, **below} if member else below


def _parts(here: FieldSet) -> tuple[FieldSet, bool]:
    if not here:
        return here, True
    if SELF in here:
        return {step: below for step, below in here.items() if step != SELF}, True
    return here, False


def in_order(fields: FieldSet) -> FieldSet:
    return dict(sorted(fields.items()))


def union(first: FieldSet, second: FieldSet) -> FieldSet:
    if not first or not second:
        return first or second
    made = dict(first)
    for step, theirs in second.items():
        ours = first.get(step)
        if ours is None:
            made[step] = theirs
        elif step != SELF:
            below, member = _parts(ours)
            other, also = _parts(theirs)
            made[step] = node(union(below, other), member=member or also)
    return in_order(made)


def difference(first: FieldSet, second: FieldSet) -> FieldSet:
    """What is in the first and not in the second, place by place: what lies below a place stands for itself."""
    if not second:
        return first
    made: FieldSet = {}
    for step, ours in first.items():
        theirs = second.get(step)
        if theirs is None:
            made[step] = ours
            continue
        below, member = _parts(ours)
        other, also = _parts(theirs)
        left = node(difference(below, other), member=member and not also)
        if left is not None:
            made[step] = left
    return made


def intersection(first: FieldSet, second: FieldSet) -> FieldSet:
    made: FieldSet = {}
    for step, ours in first.items():
        theirs = second.get(step)
        if theirs is None:
            continue
        below, member = _parts(ours)
        other, also = _parts(theirs)
        common = node(intersection(below, other), member=member and also)
        if common is not None:
            made[step] = common
    return made
