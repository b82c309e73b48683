"""Rules for labels and for choosing by them: what is written has to be something that a label can be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ingot.api.admission.errors import FieldError, forbidden, invalid, not_supported, required
from ingot.api.hostselector import HostSelector, HostSelectorRequirement
from ingot.api.meta import LABEL_KEY_PATTERN

_KEY: Final = re.compile(LABEL_KEY_PATTERN.removeprefix("^").removesuffix("$"))
_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_MOST_IN_A_NAME: Final = 63
_MOST_IN_A_PREFIX: Final = 253

ONE_VALUE: Final = ("=", "==", "!=")
SOME_VALUES: Final = ("in", "notin")
NO_VALUE: Final = ("exists", "!")


def key(path: str, found: str) -> Iterator[FieldError]:
    prefix, _, name = found.rpartition("/")
    if not _KEY.fullmatch(found) or len(name) > _MOST_IN_A_NAME or len(prefix) > _MOST_IN_A_PREFIX:
        yield invalid(
            path,
            found,
            "no label can have this name: up to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or "
            "digit, and before it perhaps a DNS name and a slash.",
        )


def value(path: str, found: str) -> Iterator[FieldError]:
    if not _VALUE.fullmatch(found) or len(found) > _MOST_IN_A_NAME:
        yield invalid(
            path,
            found,
            "no label can have this value: up to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or "
            "digit.",
        )


def selector(path: str, found: HostSelector) -> Iterator[FieldError]:
    yield from pairs(f"{path}.matchLabels", found.match_labels)
    for index, requirement in enumerate(found.match_expressions):
        yield from _requirement(f"{path}.matchExpressions[{index}]", requirement)


def pairs(path: str, found: Mapping[str, str]) -> Iterator[FieldError]:
    for name, text in found.items():
        yield from key(path, name)
        yield from value(f"{path}[{name}]", text)


def _requirement(path: str, found: HostSelectorRequirement) -> Iterator[FieldError]:
    yield from key(f"{path}.key", found.key)
    for index, text in enumerate(found.values):
        yield from value(f"{path}.values[{index}]", text)
    # Operators were always compared without regard to case: In and NotIn are as good.
    operator = found.operator.lower()
    if operator in ONE_VALUE:
        yield from _exactly_one(path, operator, found.values)
    elif operator in SOME_VALUES:
        if not found.values:
            yield required(f"{path}.values", f"{operator!r} compares with at least one value.")
    elif operator in NO_VALUE:
        if found.values:
            yield forbidden(
                f"{path}.values", found.values, f"{operator!r} compares with no value. Leave them out."
            )
    else:
        yield not_supported(
            f"{path}.operator",
            found.operator,
            f"use one of: {', '.join((*ONE_VALUE, *SOME_VALUES, *NO_VALUE))}.",
        )


def _exactly_one(path: str, operator: str, values: Sequence[str]) -> Iterator[FieldError]:
    if len(values) != 1:
        yield invalid(
            f"{path}.values",
            list(values),
            f"{operator!r} compares with exactly one value; use 'in' or 'notin' for several.",
        )
