"""Texts: finding what a regular expression matches."""

from __future__ import annotations

import re
from functools import lru_cache

from cel_expr_python import cel

from ingot.embedded.server.kinds.cel.functions.declaring import INT, STRING, STRINGS, member


def functions() -> list[cel.FunctionDecl]:
    return [
        member("find", ([STRING, STRING], STRING, _find)),
        member(
            "findAll", ([STRING, STRING], STRINGS, _find_all), ([STRING, STRING, INT], STRINGS, _find_all)
        ),
    ]


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [match.group() for match in _compiled(pattern).finditer(text)]
    return found if most < 0 else found[:most]


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"Illegal regex: {error}") from None
