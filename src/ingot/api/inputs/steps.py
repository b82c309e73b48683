"""Names of deploy steps: a word, because it is looked up among the functions of the ramdisk."""

from __future__ import annotations

import re
from typing import Final

_STEP: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}")


def problem_with(name: str) -> str | None:
    if _STEP.fullmatch(name):
        return None
    return "expected the name of a deploy step: letters, digits, '_', '.' and '-'."
