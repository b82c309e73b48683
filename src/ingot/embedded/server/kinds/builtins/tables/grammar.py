"""How the tables are written, and what they say once they are read.

A table names the package its messages are from and then gives each message, a line a field:

    package io.k8s.api.core.v1

    Container: One program of a pod, and how it is run.
      1 name! text # Name of the program, unique in the pod.
      6 ports [ContainerPort] by containerPort,protocol
      13 terminationMessagePath text = "/dev/termination-log"

The number is the one protobuf uses, nought where protobuf has no such field. Behind the name, `!` says that the field
must be there, `?` that an empty value says something else than none (where neither stands, empty and absent are the
same). Types are `text`, `int32`, `int64`, `bool`, `bytes`, `time`, `microtime`, `quantity`, `number-or-text`, `any`,
`text(A|B)` for a choice, another message, `[…]` for a list, `{…}` for a map from text. `..` instead of a name puts the
fields of a message among those of this one; protobuf still has them apart.

    by a,b        elements of the list are told apart by these fields, in apply and in strategic patches
    set           so are plain values
    patch a       strategic patches tell elements apart by this field; `patch -`: they do not, `patch values`: by value
    retainKeys    strategic patches drop what they do not name
    atomic        has one owner as a whole, in apply (of a message: wherever it stands)
    granular      has one owner a field, in apply, though the message says otherwise
    = value       the default, in JSON
    # words       what kubectl explain says
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Final, TypeAlias

CORE: Final = "io.k8s.api.core.v1"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"


@dataclass(frozen=True, slots=True)
class Scalar:
    name: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListOf:
    of: Type


@dataclass(frozen=True, slots=True)
class MapOf:
    of: Type


@dataclass(frozen=True, eq=False)
class Message:
    package: str
    name: str
    words: str
    atomic: bool
    lines: tuple[str, ...]

    @property
    def full_name(self) -> str:
        return f"{self.package}.{self.name}"

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """As protobuf sees them."""
        return tuple(_field(self.package, line) for line in self.lines)

    @cached_property
    def by_number(self) -> Mapping[int, Field]:
        return {field.number: field for field in self.fields}

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """As JSON sees them: what is inlined stands beside the others."""
        return {field.name: field for field in self._flat()}

    def _flat(self) -> Iterable[Field]:
        for field in self.fields:
            if field.inlined and isinstance(field.type, Message):
                yield from field.type.by_name.values()
            else:
                yield field


Type: TypeAlias = Scalar | ListOf | MapOf | Message


@dataclass(frozen=True, slots=True)
class Field:
    number: int
    name: str
    type: Type
    required: bool = False
    # Whether an empty value says something else than none.
    explicit: bool = False
    inlined: bool = False
    # How lists are merged in apply.
    keys: tuple[str, ...] = ()
    unique: bool = False
    # How lists are merged by strategic patches: by this field; "" is by value, None is not at all.
    patch_key: str | None = None
    retain_keys: bool = False
    # One owner for the whole, or for each field; "" leaves that to the type.
    map_type: str = ""
    default: Any = None
    words: str = ""


def message(full_name: str) -> Message:
    return _all()[full_name]


def find_message(full_name: str) -> Message | None:
    return _all().get(full_name)


@cache
def _all() -> Mapping[str, Message]:
    found: dict[str, Message] = {}
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".table"):
            for made in _messages(file.read_text(encoding="utf-8")):
                found[made.full_name] = made
    return found


def _messages(table: str) -> Iterable[Message]:
    package = ""
    for paragraph in re.split(r"\n\n+", table.strip()):
        head, *lines = paragraph.split("\n")
        if head.startswith("package "):
            package = head.removeprefix("package ")
            continue
        name, _, words = head.partition(": ")
        name, _, mark = name.partition(" ")
        yield Message(package, name, words, mark == "atomic", tuple(lines))


_LINE: Final = re.compile(
    r"\s+(?P<number>\d+) (?P<name>[\w$.-]+?)(?P<mark>!?\??) (?P<type>\S+?)"
    r"(?: by (?P<keys>[\w,]+))?(?P<unique> set)?(?: patch (?P<patch>[\w-]+))?"
    r"(?P<retain> retainKeys)?(?: (?P<map>atomic|granular))?(?: = (?P<default>.+?))?(?: # (?P<words>.+))?"
)


def _field(package: str, line: str) -> Field:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"{package}: this is no line of a table: {line!r}")
    type_ = _type(package, found["type"])
    if found["name"] == "..":
        return Field(int(found["number"]), "", type_, inlined=True)
    keys = tuple(found["keys"].split(",")) if found["keys"] else ()
    return Field(
        number=int(found["number"]),
        name=found["name"],
        type=type_,
        required="!" in found["mark"],
        explicit="?" in found["mark"],
        keys=keys,
        unique=bool(found["unique"]),
        patch_key=_patch_key(found["patch"], keys, unique=bool(found["unique"])),
        retain_keys=bool(found["retain"]),
        map_type=found["map"] or "",
        default=json.loads(found["default"]) if found["default"] else None,
        words=found["words"] or "",
    )


def _patch_key(patch: str | None, keys: tuple[str, ...], *, unique: bool) -> str | None:
    match patch:
        case "-":
            return None
        case "values":
            return ""
        case None:
            return keys[0] if keys else "" if unique else None
        case key:
            return key


_SCALARS: Final = frozenset(
    {"text", "int32", "int64", "bool", "bytes", "time", "microtime", "quantity", "number-or-text", "any"}
)


@cache
def _type(package: str, text: str) -> Type:
    if text.startswith("["):
        return ListOf(_type(package, text[1:-1]))
    if text.startswith("{"):
        return MapOf(_type(package, text[1:-1]))
    name, _, options = text.removesuffix(")").partition("(")
    if name in _SCALARS:
        return Scalar(
            name, tuple("" if option == '""' else option for option in options.split("|") if option)
        )
    known = _all()
    return next(known[f"{place}.{name}"] for place in (package, CORE, META) if f"{place}.{name}" in known)
