"""The part of JSONPath that printer columns and selectable fields use.

`.spec.online`, `.metadata.annotations.example\\.com/x`, `.items[0]`, `.items[*].name`, `['example\\.com/x']`, and
`.status.conditions[?(@.type=="Ready")].status`. A path is compiled once and answers with every value it finds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

Step = Callable[[Any], Iterable[Any]]

_TOKEN: Final = re.compile(
    r"""
    \.?(?P<name>(?:[^.\[\]\\]|\\.)+)
    | \[(?P<index>-?\d+)\]
    | \[(?P<all>\*)\]
    | \.(?P<every>\*)
    | \[\s*(?P<quote>['"])(?P<key>.*?)(?P=quote)\s*\]
    | \[\?\(\s*@(?P<left>[^=!<>]*?)\s*(?P<operator>==|!=)\s*(?P<right>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]
    """,
    re.VERBOSE,
)


_PLAIN: Final = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_]*)+")


class PathError(ValueError):
    """A path that is not in the supported part of JSONPath."""


def plain(path: str) -> tuple[str, ...] | None:
    """The fields on the way, where a path is nothing but fields; None for any other path."""
    text = _bare(path)
    return tuple(text[1:].split(".")) if _PLAIN.fullmatch(text) else None


def compiled(path: str) -> Callable[[Any], list[Any]]:
    """A function from a document to the values at this path."""
    if (names := plain(path)) is not None:
        return functools.partial(_at_the_end_of, names)
    text = _bare(path)
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if not found:
            raise PathError(f"the JSONPath {path!r} is not understood from {text[position:]!r} on")
        steps.append(_step(found))
        position = found.end()

    def read(document: Any) -> list[Any]:
        values = [document]
        for step in steps:
            values = [deeper for value in values for deeper in step(value)]
        return values

    return read


def _at_the_end_of(names: tuple[str, ...], document: Any) -> list[Any]:
    for name in names:
        if not isinstance(document, dict) or name not in document:
            return []
        document = document[name]
    return [document]


def _bare(path: str) -> str:
    return path.strip().removeprefix("{").removesuffix("}").removeprefix("$")


def _step(found: re.Match[str]) -> Step:
    if found["all"] or found["every"] or found["name"] == "*":
        return _children
    if found["index"] is not None:
        return _at(int(found["index"]))
    if found["operator"]:
        return _where(compiled(found["left"]), found["right"].strip("\"'"), equal=found["operator"] == "==")
    return _named(re.sub(r"\\(.)", r"\1", found["name"] if found["key"] is None else found["key"]))


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _at(index: int) -> Step:
    def step(value: Any) -> Iterable[Any]:
        return (value[index],) if isinstance(value, list) and -len(value) <= index < len(value) else ()

    return step


def _named(name: str) -> Step:
    def step(value: Any) -> Iterable[Any]:
        return (value[name],) if isinstance(value, dict) and name in value else ()

    return step


def _where(left: Callable[[Any], list[Any]], right: str, *, equal: bool) -> Step:
    def step(value: Any) -> Iterable[Any]:
        for item in value if isinstance(value, list) else ():
            found = left(item)
            if (bool(found) and as_text(found[0]) == right) is equal:
                yield item

    return step


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
