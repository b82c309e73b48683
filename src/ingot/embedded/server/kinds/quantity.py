"""Quantities: `500m`, `1.5`, `2Gi`, and the one form Kubernetes shows each in.

A quantity is a number with a binary (`Ki` … `Ei`), decimal (`n` … `E`) or exponent (`e3`) suffix. The canonical form
has no fraction, and the largest suffix of its sort that allows that.
"""

from __future__ import annotations

import re
from decimal import Decimal, localcontext
from typing import Final

_BINARY: Final = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SHAPE: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?", re.ASCII
)
# More than this many digits are an accident, not an amount.
_LARGEST: Final = 30
_PLAIN: Final = re.compile(r"[1-9]\d{0,2}(?:[KMGTPE]i|[mkMGTPE])?", re.ASCII)


def value_of(text: str) -> Decimal | None:
    """The number a quantity stands for; None where it is none."""
    parsed = _parsed(text)
    return parsed[0] if parsed else None


def canonical(text: str) -> str | None:
    """The form the API shows; None where the text is no quantity."""
    if _PLAIN.fullmatch(text):
        return text
    parsed = _parsed(text)
    if parsed is None:
        return None
    value, suffix = parsed
    with localcontext() as exact:
        exact.prec = 60
        # Nothing finer than a billionth is kept; what is finer is rounded away from zero.
        if value % Decimal("1e-9"):
            value = value.quantize(Decimal("1e-9"), rounding="ROUND_UP")
        if suffix in _BINARY and suffix and abs(value) >= 1024 and value == value.to_integral_value():
            return _binary(int(value))
        return _decimal(value, exponent=suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix[1] != "i")


def _parsed(text: str) -> tuple[Decimal, str] | None:
    found = _SHAPE.fullmatch(text)
    if found is None or len(text) > 100:
        return None
    suffix = found["suffix"] or ""
    with localcontext() as exact:
        exact.prec = 400
        number = Decimal(found["number"])
        if suffix in _BINARY:
            value = number * _BINARY[suffix]
        elif suffix in _DECIMAL:
            value = number.scaleb(_DECIMAL[suffix])
        else:
            value = number.scaleb(int(suffix[1:]))
    return None if value and value.adjusted() > _LARGEST else (value, suffix)


def _binary(value: int) -> str:
    suffix, unit = "", 1
    for name, size in _BINARY.items():
        if value % size == 0:
            suffix, unit = name, size
    return f"{value // unit}{suffix}"


def _decimal(value: Decimal, *, exponent: bool) -> str:
    if value == 0:
        return "0"
    best = max(
        (power for power in _DECIMAL.values() if value.scaleb(-power) % 1 == 0),
        default=-9,
    )
    number = int(value.scaleb(-best))
    if exponent:
        return f"{number}e{best}" if best else str(number)
    return f"{number}{next(name for name, power in _DECIMAL.items() if power == best)}"
