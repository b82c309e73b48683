"""Expressions in CEL: compiled once, evaluated often.

The library behind it is loaded with the first expression: a server without any starts without it. What goes into an
expression is plain data; how an object's fields become that is the business of `values`. Evaluating is bounded: expressions
cannot loop, and the library gives up after ten thousand steps of its comprehensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ingot.embedded.server.errors import ServerError

if TYPE_CHECKING:
    from cel_expr_python import cel

_CODE: Final = re.compile(r"^[A-Z_]+: ")
_CODE_AGAIN: Final = re.compile(r" \[[A-Z_]+\]$")
_LONGEST: Final = 16 * 1024


class InvalidExpression(ServerError):
    """The text is no expression that this server can evaluate; the message says where and why."""


class EvaluationFailed(ServerError):
    """An expression had no value for this data."""


class Expression:
    """A compiled expression."""

    def __init__(self, text: str, compiled: cel.Expression) -> None:
        self.text = text
        self._compiled = compiled

    @property
    def type(self) -> str:
        """What it evaluates to, as CEL writes it: `bool`, `string`, `dyn`, …"""
        return self._compiled.return_type().name().lower()

    def evaluate(self, data: Mapping[str, Any]) -> Any:
        try:
            value = self._compiled.eval(data=dict(data))
            plain = value.plain_value()
        except RuntimeError as error:
            raise EvaluationFailed(_plain(str(error))) from None
        if value.type().name() == "ERROR":
            raise EvaluationFailed(_plain(str(plain)))
        return plain


def compiled(text: str, variables: tuple[str, ...]) -> Expression:
    """The expression over these variables, whose types are known when they are there. Raises `InvalidExpression`."""
    if len(text) > _LONGEST:
        raise InvalidExpression(f"an expression of more than {_LONGEST} characters is too long")
    try:
        return Expression(text, _environment(variables).compile(text))
    except RuntimeError as error:
        raise InvalidExpression(_plain(str(error))) from None


@cache
def _environment(variables: tuple[str, ...]) -> cel.Env:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    from ingot.embedded.server.kinds.cel import functions

    return cel.NewEnv(
        variables=dict.fromkeys(variables, cel.Type.DYN),
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            functions.extension(),
        ],
    )


def _plain(message: str) -> str:
    """Without the names of the library's error codes; `no such key` is what Kubernetes calls it."""
    words = _CODE_AGAIN.sub("", _CODE.sub("", message)).strip()
    return re.sub(r'^Key not found in map : "(.*)"$', r"no such key: \1", words)
