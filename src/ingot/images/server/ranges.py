"""Which parts of an image a request wants. Pure.

What the header `Range` may say, as RFC 9110 has it, and what is done where it leaves the choice: a unit that is not known, and
more or larger parts than anybody needs, get the whole image; what cannot be read, or lies behind the end, is refused.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MOST_PARTS: Final = 16

_SPEC: Final = re.compile(r"(\d{1,18})-(\d{1,18})?|-(\d{1,18})", re.ASCII)


class Part(NamedTuple):
    start: int
    length: int


class Unsatisfiable(Exception):
    """None of what was asked for is there."""


def parts_wanted(header: str, size: int) -> list[Part] | None:
    """The parts, in the order asked for; None for the whole image."""
    unit, equals, specs = header.partition("=")
    if not equals or unit.strip().lower() != "bytes":
        return None
    parts = [_part(spec, size) for word in specs.split(",") if (spec := word.strip(" \t"))]
    there = [part for part in parts if part is not None]
    if not there:
        raise Unsatisfiable
    # Parts that overlap can make a small request very large; who asks for all of it may as well have it once.
    if len(parts) > 1 and (len(parts) > MOST_PARTS or sum(part.length for part in there) > size):
        return None
    return there


def _part(spec: str, size: int) -> Part | None:
    """What one of them means; None where there is nothing of it."""
    matched = _SPEC.fullmatch(spec)
    if matched is None:
        raise Unsatisfiable
    first, last, suffix = matched.groups()
    if first is None:
        length = min(int(suffix), size)
        return Part(size - length, length) if length else None
    start, end = int(first), size if last is None else int(last) + 1
    if last is not None and end <= start:
        raise Unsatisfiable
    length = min(end, size) - start
    return Part(start, length) if length > 0 else None
