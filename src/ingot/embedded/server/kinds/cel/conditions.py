"""Conditions of webhooks: what they may be about, and what is wrong with one that cannot be evaluated."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ingot.embedded.server.kinds.cel.expressions import Expression, InvalidExpression, compiled

VARIABLES: Final = ("object", "oldObject", "request")


@lru_cache(maxsize=256)
def condition(text: str) -> Expression:
    """The condition over the object, the one before, and the request. Raises `InvalidExpression`."""
    made = compiled(text, VARIABLES)
    if made.type not in ("bool", "dyn"):
        raise InvalidExpression(f"must evaluate to bool but got {made.type}")
    return made


def problem(text: str) -> str:
    """Why the text is no condition; empty if it is one."""
    try:
        condition(text)
    except InvalidExpression as error:
        return str(error)
    return ""
