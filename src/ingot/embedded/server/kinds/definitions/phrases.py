"""Causes that several rules give: a value that is none of the allowed ones, a name that is none."""

from __future__ import annotations

from collections.abc import Sequence

from ingot.embedded.server.documents import encode
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.names import label_1035_problem


def shown(value: object) -> str:
    return encode(value).decode()


def must_be(where: str, value: str, words: str) -> Cause:
    """A value that is another one than it must be, or is missing."""
    return cause("Invalid", where, words, shown=shown(value)) if value else cause("Required", where, words)


def unsupported(where: str, value: str, allowed: Sequence[str]) -> Cause:
    listed = ", ".join(f'"{word}"' for word in allowed)
    return cause("NotSupported", where, f"supported values: {listed}", shown=shown(value))


def not_one_of(where: str, value: str, allowed: Sequence[str]) -> list[Cause]:
    if not value:
        return [cause("Required", where, "")]
    return [] if value in allowed else [unsupported(where, value, allowed)]


def no_label(where: str, value: str) -> list[Cause]:
    problem = label_1035_problem(value)
    return [cause("Invalid", where, problem, shown=shown(value))] if problem else []
