"""Semantic versions, and the order of what has one: versions and quantities."""

from __future__ import annotations

import re
from typing import Any, Final

from cel_expr_python import cel

from ingot.embedded.server.kinds.cel.functions import quantities
from ingot.embedded.server.kinds.cel.functions.declaring import BOOL, INT, RECORD, STRING, member, plain

_TYPE: Final = "semver"
_NUMBER: Final = r"(0|[1-9][0-9]{0,18})"
_PART: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SHAPE: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}(?:\.{_PART})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)


def functions() -> list[cel.FunctionDecl]:
    return [
        plain("isSemver", ([STRING], BOOL, lambda text: _SHAPE.fullmatch(text) is not None)),
        plain("semver", ([STRING], RECORD, _semver)),
        member("major", ([RECORD], INT, lambda found: _numbers(found)[0])),
        member("minor", ([RECORD], INT, lambda found: _numbers(found)[1])),
        member("patch", ([RECORD], INT, lambda found: _numbers(found)[2])),
        member("compareTo", ([RECORD, RECORD], INT, _compared)),
        member("isLessThan", ([RECORD, RECORD], BOOL, lambda one, other: _compared(one, other) < 0)),
        member("isGreaterThan", ([RECORD, RECORD], BOOL, lambda one, other: _compared(one, other) > 0)),
    ]


def _semver(text: str) -> dict[str, Any]:
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a semantic version")
    # What was built from what does not make two versions different.
    return {"type": _TYPE, "numbers": [int(found[1]), int(found[2]), int(found[3])], "before": found[4] or ""}


def _numbers(found: dict[str, Any]) -> list[int]:
    if found.get("type") != _TYPE:
        raise ValueError("no such overload: this is not a semantic version")
    return list(found["numbers"])


def _compared(one: dict[str, Any], other: dict[str, Any]) -> int:
    if one.get("type") != other.get("type"):
        raise ValueError("no such overload: only things of one sort can be compared")
    if one.get("type") == quantities.TYPE:
        first, second = quantities.number(one), quantities.number(other)
        return (first > second) - (first < second)
    left, right = _order(one), _order(other)
    return (left > right) - (left < right)


def _order(found: dict[str, Any]) -> tuple[list[int], bool, list[tuple[bool, int, str]]]:
    """Numbers, then whether it is final, then its parts: numbers before words."""
    before = str(found["before"])
    parts = before.split(".") if before else []
    sorted_parts = [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
    return _numbers(found), not before, sorted_parts
