"""Declaring functions: a name, what it takes, what it gives, and a Python function that does it.

The names of the overloads are made from the types, so that each is unique. What a function raises as `ValueError` becomes the
error of the expression. The lists that a function is given are paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from cel_expr_python import cel

from ingot.embedded.server.kinds.cel.costs import spend

BOOL, INT, DOUBLE, STRING, DYN = (
    cel.Type.BOOL,
    cel.Type.INT,
    cel.Type.DOUBLE,
    cel.Type.STRING,
    cel.Type.DYN,
)
LIST: Final = cel.Type.List(DYN)
STRINGS: Final = cel.Type.List(STRING)
# Values of Kubernetes' own types are maps here: the library can hand no others to Python and back.
RECORD: Final = cel.Type.Map(STRING, DYN)

Overload = tuple[Sequence[cel.Type], cel.Type, Callable[..., Any]]


def member(name: str, *overloads: Overload) -> cel.FunctionDecl:
    """Called on its first argument: `x.name(…)`."""
    return _declared(name, overloads, is_member=True)


def plain(name: str, *overloads: Overload) -> cel.FunctionDecl:
    return _declared(name, overloads, is_member=False)


def _declared(name: str, overloads: Sequence[Overload], *, is_member: bool) -> cel.FunctionDecl:
    return cel.FunctionDecl(
        name,
        [
            cel.Overload(
                _label(name, takes, is_member=is_member),
                return_type=gives,
                parameters=list(takes),
                is_member=is_member,
                impl=_paid(does),
            )
            for takes, gives, does in overloads
        ],
    )


def _paid(does: Callable[..., Any]) -> Callable[..., Any]:
    def paid(*given: Any) -> Any:
        for one in given:
            if isinstance(one, list):
                spend(len(one))
        return does(*given)

    return paid


def _label(name: str, takes: Sequence[cel.Type], *, is_member: bool) -> str:
    types = "_".join(
        taken.name().lower().replace("<", "_").replace(">", "").replace(", ", "_") for taken in takes
    )
    return f"kubernetes_{'on_' if is_member else ''}{name.replace('.', '_')}_{types}"
