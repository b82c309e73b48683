"""Expressions in CEL: compiled once, evaluated often.

The library behind it is loaded with the first expression: a server without any starts without it. What goes into an
expression is plain data; how an object becomes that is the business of `values`. Evaluating is bounded: the library gives up
after ten thousand steps of its comprehensions, and `costs` limits what one step can take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ingot.embedded.server.errors import ServerError
from ingot.embedded.server.kinds.cel import costs
from ingot.embedded.server.kinds.cel.syntax import Reading, Types

if TYPE_CHECKING:
    from cel_expr_python import cel

_CODE: Final = re.compile(r"^[A-Z_]+: ")
_CODE_AGAIN: Final = re.compile(r" \[[A-Z_]+\]$")
_LONGEST: Final = 16 * 1024
# The words of the library, and those of Kubernetes.
_WORDS: Final = (
    (re.compile(r'Key not found in map : "(.*)"'), r"no such key: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"Iteration budget exceeded"), costs.EXCEEDED),
)


class InvalidExpression(ServerError):
    """The text is no expression that this server can evaluate; the message says where and why."""


class EvaluationFailed(ServerError):
    """An expression had no value for this data."""


class Expression:
    """A compiled expression."""

    def __init__(self, text: str, compiled: cel.Expression, returns: str, searches: costs.Searches) -> None:
        self.text = text
        # What it evaluates to, as CEL writes it: `bool`, `string`, `dyn`, …
        self.type = returns
        self._compiled = compiled
        self._searches = searches

    def evaluate(self, data: Mapping[str, Any]) -> Any:
        if costs.is_too_much(self._searches, data.values()):
            raise EvaluationFailed(costs.EXCEEDED)
        costs.begin()
        try:
            value = self._compiled.eval(data=dict(data))
            plain = value.plain_value()
        except RuntimeError as error:
            raise EvaluationFailed(_plain(str(error))) from None
        if value.type().name() == "ERROR":
            raise EvaluationFailed(_plain(str(plain)))
        return plain


def compiled(text: str, variables: tuple[str, ...], types: Types | None = None) -> Expression:
    """The expression over these variables; `types` says of some of them what they are. Raises `InvalidExpression`."""
    if len(text) > _LONGEST:
        raise InvalidExpression(f"an expression of more than {_LONGEST} characters is too long")
    environment = _environment(variables)
    try:
        checked = environment.compile(text)
        returns = checked.return_type().name().lower()
        reading = Reading()
        read = reading.read(environment.compile(text, disable_check=True).serialize(), types or {})
        if reading.missing:
            raise InvalidExpression(_undefined(text, reading.missing))
        made = environment.deserialize(read) if reading.changed else checked
        return Expression(text, made, returns, reading.searches)
    except RuntimeError as error:
        raise InvalidExpression(f"compilation failed: {_plain(str(error))}") from None


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


def _undefined(text: str, names: list[str]) -> str:
    """In the form that the library has for what it finds itself."""
    return "compilation failed: " + "\n".join(_marked(text, name) for name in names)


def _marked(text: str, name: str) -> str:
    found = re.search(rf"\.\s*\??{re.escape(name)}\b", text)
    at = found.start() if found else 0
    before = text[:at]
    line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1)
    shown = text.splitlines()[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: undefined field '{name}'\n | {shown}\n | {'.' * column}^"


def _plain(message: str) -> str:
    """Without the names of the library's error codes."""
    words = _CODE_AGAIN.sub("", _CODE.sub("", message)).strip()
    for pattern, ours in _WORDS:
        if found := pattern.fullmatch(words):
            return found.expand(ours)
    return words
