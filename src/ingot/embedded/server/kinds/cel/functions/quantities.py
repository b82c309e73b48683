"""Quantities of Kubernetes: `500m`, `2Gi`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from cel_expr_python import cel

from ingot.embedded.server.kinds.cel.functions.declaring import (
    BOOL,
    DOUBLE,
    INT,
    RECORD,
    STRING,
    member,
    plain,
)
from ingot.embedded.server.kinds.quantity import value_of

TYPE: Final = "quantity"
_MOST: Final = 2**63 - 1


def functions() -> list[cel.FunctionDecl]:
    return [
        plain("isQuantity", ([STRING], BOOL, lambda text: value_of(text) is not None)),
        plain("quantity", ([STRING], RECORD, _quantity)),
        member("isInteger", ([RECORD], BOOL, _is_integer)),
        member("asInteger", ([RECORD], INT, _as_integer)),
        member("asApproximateFloat", ([RECORD], DOUBLE, lambda found: float(number(found)))),
        member(
            "add",
            ([RECORD, RECORD], RECORD, lambda one, other: _record(number(one) + number(other))),
            ([RECORD, INT], RECORD, lambda one, other: _record(number(one) + other)),
        ),
        member(
            "sub",
            ([RECORD, RECORD], RECORD, lambda one, other: _record(number(one) - number(other))),
            ([RECORD, INT], RECORD, lambda one, other: _record(number(one) - other)),
        ),
    ]


def number(found: dict[str, Any]) -> Decimal:
    if found.get("type") != TYPE:
        raise ValueError("no such overload: this is not a quantity")
    return Decimal(found["value"])


def _quantity(text: str) -> dict[str, Any]:
    value = value_of(text)
    if value is None:
        raise ValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return _record(value)


def _record(value: Decimal) -> dict[str, Any]:
    # Equal quantities are equal records, however they were written.
    return {"type": TYPE, "value": format(value.normalize(), "f")}


def _is_integer(found: dict[str, Any]) -> bool:
    value = number(found)
    return value == value.to_integral_value() and abs(value) <= _MOST


def _as_integer(found: dict[str, Any]) -> int:
    if not _is_integer(found):
        raise ValueError("cannot convert value to integer")
    return int(number(found))
