"""Demands on the labels of a host, read once and then asked of many hosts. Pure.

The rules are those of Kubernetes' label selectors: a label that is absent is not equal to anything and in no set, so `!=` and
`notin` are met by it. Operators are compared without regard to case. `gt` and `lt`, which only machines use, compare whole
numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from ingot.api.admission.labels import selector as problems_with
from ingot.api.hostselector import HostSelector, HostSelectorRequirement

Labels = Mapping[str, str]
Demands = Callable[[Labels], bool]


class UnusableSelector(ValueError):
    """The demands cannot be understood; the sentence says which, and what to write instead."""


def demands_of(selector: HostSelector, *, path: str) -> Demands:
    """What the selector asks. `path` is where it stands, for the sentence about what is wrong with it."""
    for problem in problems_with(path, _without_order(selector)):
        raise UnusableSelector(str(problem))
    labels = dict(selector.match_labels)
    tests = [
        _test(requirement, f"{path}.matchExpressions[{index}]")
        for index, requirement in enumerate(selector.match_expressions)
    ]

    def met(found: Labels) -> bool:
        return all(found.get(key) == value for key, value in labels.items()) and all(
            test(found) for test in tests
        )

    return met if labels or tests else lambda _: True


def _without_order(selector: HostSelector) -> HostSelector:
    """With a demand that the rules of labels know in the place of each `gt` and `lt`, so that all keep their number."""
    expressions = [
        replace(one, operator="exists", values=[]) if one.operator.lower() in _ORDER else one
        for one in selector.match_expressions
    ]
    return replace(selector, match_expressions=expressions)


def _test(requirement: HostSelectorRequirement, path: str) -> Demands:
    name = requirement.operator.lower()
    if name in _ORDER:
        return _in_order(requirement, path)
    return _TESTS[name](requirement.key, frozenset(requirement.values))


def _in_order(requirement: HostSelectorRequirement, path: str) -> Demands:
    key, values, compare = requirement.key, requirement.values, _ORDER[requirement.operator.lower()]
    limit = _number(values[0]) if len(values) == 1 else None
    if limit is None:
        raise UnusableSelector(
            f"{path}.values: {requirement.operator!r} compares with exactly one whole number, and found {values}."
        )

    def met(found: Labels) -> bool:
        number = _number(found.get(key, ""))
        return number is not None and compare(number, limit)

    return met


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


_NUMBER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_ORDER: Final[dict[str, Callable[[int, int], bool]]] = {"gt": operator.gt, "lt": operator.lt}
_TESTS: Final[dict[str, Callable[[str, frozenset[str]], Demands]]] = {
    "=": lambda key, values: lambda found: found.get(key) in values,
    "==": lambda key, values: lambda found: found.get(key) in values,
    "in": lambda key, values: lambda found: found.get(key) in values,
    "!=": lambda key, values: lambda found: found.get(key) not in values,
    "notin": lambda key, values: lambda found: found.get(key) not in values,
    "exists": lambda key, _: lambda found: key in found,
    "!": lambda key, _: lambda found: key not in found,
}
