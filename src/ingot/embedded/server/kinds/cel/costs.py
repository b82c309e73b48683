"""What evaluating may cost, so that no object and no expression keeps everybody else waiting.

Expressions cannot loop for ever, but they can take a long time over large objects, and the library cannot be interrupted. Three
limits together keep it short: `weight` is what handing a value over costs, and a `Budget` is what all rules of one write may
spend; an expression that searches lists or texts inside a loop is not begun where these are too large (`is_too_much`); and
functions of ours count what they look at (`begin`, `spend`). That alone is not enough: a loop may go on after an error.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"

# A step of the library's loops is one; it makes no more than this many.
_MOST_STEPS: Final = 10_000
# What can be searched, element by element or character by character, in a few tenths of a second.
_MOST_ELEMENTS: Final = 25_000_000
_MOST_CHARACTERS: Final = 75_000_000
# Elements that our own functions may look at in one evaluation. Each is handed to Python, which is slow.
_MOST_HANDED_OVER: Final = 300_000
# Beginning an evaluation costs as much as handing over this many values.
_BEGINNING: Final = 30
_CHARACTERS_AS_ONE: Final = 1024


def weight(value: Any) -> int:
    """About how many small values this is made of."""
    total, waiting = 0, [value]
    while waiting:
        found = waiting.pop()
        total += 1
        if isinstance(found, dict):
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)
        elif isinstance(found, str):
            total += len(found) // _CHARACTERS_AS_ONE
    return total


class Budget:
    """What the rules of one write may spend together."""

    def __init__(self, limit: int = 2_000_000) -> None:
        self._left = limit

    def allows(self, evaluations: int, each: int) -> bool:
        """Whether so many evaluations can still be made, over values of that weight; if so, they are paid for."""
        self._left -= evaluations * (each + _BEGINNING)
        return self._left >= 0


@dataclass(slots=True)
class Searches:
    """Inside of how many loops an expression searches lists and texts, and hands lists to our functions; none if it does
    not."""

    lists: int = 0
    texts: int = 0
    handed_over: int = 0


def is_too_much(searches: Searches, values: Iterable[Any]) -> bool:
    """Whether an expression could search so much in these values that it must not be begun."""
    if not (searches.lists or searches.texts or searches.handed_over):
        return False
    longest_list, longest_text = _longest(values)
    for loops, longest, most in (
        (searches.lists, longest_list, _MOST_ELEMENTS),
        (searches.texts, longest_text, _MOST_CHARACTERS),
        (searches.handed_over, longest_list, _MOST_HANDED_OVER),
    ):
        if loops and min(longest_list**loops, _MOST_STEPS) * longest > most:
            return True
    return False


def _longest(values: Iterable[Any]) -> tuple[int, int]:
    elements, characters, waiting = 0, 0, list(values)
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            elements = max(elements, len(found))
            waiting.extend(found.values())
        elif isinstance(found, list):
            elements = max(elements, len(found))
            waiting.extend(found)
        elif isinstance(found, str):
            characters = max(characters, len(found))
    return elements, characters


class _Meter(threading.local):
    spent = 0


_meter = _Meter()


def begin() -> None:
    """An evaluation begins in this thread: what functions of ours spend is counted from zero."""
    _meter.spent = 0


def spend(elements: int) -> None:
    """Raises ValueError, which becomes the error of the expression, when it is too much."""
    _meter.spent += elements
    if _meter.spent > _MOST_HANDED_OVER:
        raise ValueError(EXCEEDED)
