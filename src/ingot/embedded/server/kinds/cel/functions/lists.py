"""Lists and sets: sums, extremes, order, where something is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from cel_expr_python import cel

from ingot.embedded.server.kinds.cel.costs import spend
from ingot.embedded.server.kinds.cel.functions.declaring import BOOL, DYN, INT, LIST, member, plain


def functions() -> list[cel.FunctionDecl]:
    return [
        member("sum", ([LIST], DYN, _sum)),
        member("min", ([LIST], DYN, _min)),
        member("max", ([LIST], DYN, _max)),
        member("isSorted", ([LIST], BOOL, _is_sorted)),
        member("indexOf", ([LIST, DYN], INT, _index_of)),
        member("lastIndexOf", ([LIST, DYN], INT, _last_index_of)),
        plain("sets.contains", ([LIST, LIST], BOOL, _contains)),
        plain("sets.equivalent", ([LIST, LIST], BOOL, lambda a, b: _contains(a, b) and _contains(b, a))),
        plain("sets.intersects", ([LIST, LIST], BOOL, _intersects)),
    ]


def _sum(values: Sequence[Any]) -> Any:
    if not values:
        return 0
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _min(values: Sequence[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return min(values)


def _max(values: Sequence[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return max(values)


def _is_sorted(values: Sequence[Any]) -> bool:
    return all(first <= second for first, second in pairwise(values))


def _index_of(values: Sequence[Any], wanted: Any) -> int:
    return next((index for index, value in enumerate(values) if _same(value, wanted)), -1)


def _last_index_of(values: Sequence[Any], wanted: Any) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if _same(values[index], wanted)), -1)


def _contains(values: Sequence[Any], wanted: Sequence[Any]) -> bool:
    # Each is compared with each, which is done in Python and costs less than handing one over.
    spend(len(values) * len(wanted) // 10)
    return all(_index_of(values, one) >= 0 for one in wanted)


def _intersects(values: Sequence[Any], others: Sequence[Any]) -> bool:
    spend(len(values) * len(others) // 10)
    return any(_index_of(values, one) >= 0 for one in others)


def _same(first: Any, second: Any) -> bool:
    """True is not 1 in CEL."""
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)
