"""Taking in a JSON document of a built-in kind, the way Kubernetes decodes one into its own types.

A value of another type than the message says is a 400, before anything else is looked at. What is null or empty and
says nothing is dropped, so that a default can take its place. Times, quantities and bytes come out in the one form
the API shows them in. Fields that the message does not know are left for the `Shape`, which names and cuts them.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.kinds.builtins.tables.grammar import Field, ListOf, MapOf, Message, Scalar, Type
from ingot.embedded.server.kinds.quantity import canonical


class Undecodable(ValueError):
    """A value is not of the type its field has; the message says which and what was expected."""


def take_in(document: Document, message: Message) -> None:
    """Bring the document into the form its message has, in place. Raises Undecodable."""
    _message(document, message, "")


def _message(value: Document, message: Message, path: str) -> None:
    fields = message.by_name
    for name in list(value):
        field = fields.get(name)
        if field is None or (name == "metadata" and not path):
            continue
        given = value[name]
        if given is None:
            del value[name]
            continue
        taken = _taken(given, field.type, f"{path}.{name}" if path else name)
        if _says_nothing(taken, field):
            del value[name]
        else:
            value[name] = taken
    for name, field in fields.items():
        # A part that must be there is there, empty: what it lacks is then named more exactly.
        if not (field.required and isinstance(field.type, Message)) or field.explicit or name == "metadata":
            continue
        if name not in value:
            value[name] = {}
            _message(value[name], field.type, f"{path}.{name}" if path else name)


def _says_nothing(value: Any, field: Field) -> bool:
    if field.explicit or isinstance(field.type, Message):
        return False
    if field.required:
        # Zero and false can be meant; no text and no elements cannot.
        return value == "" and field.default is None
    return not value and value != "0"


def _taken(value: Any, type_: Type, path: str) -> Any:
    match type_:
        case Message():
            _expect(value, dict, path, "an object")
            _message(value, type_, path)
            return value
        case ListOf(of):
            _expect(value, list, path, "a list")
            return [
                _empty(of) if item is None else _taken(item, of, f"{path}[{index}]")
                for index, item in enumerate(value)
            ]
        case MapOf(of):
            _expect(value, dict, path, "a map")
            return {
                key: _empty(of) if item is None else _taken(item, of, f"{path}[{key}]")
                for key, item in value.items()
            }
        case Scalar(name):
            return _SCALARS[name](value, path)


def _empty(type_: Type) -> Any:
    match type_:
        case Message():
            return {}
        case Scalar("int32" | "int64"):
            return 0
        case Scalar("bool"):
            return False
        case Scalar("quantity"):
            return "0"
        case ListOf():
            return []
        case MapOf():
            return {}
        case _:
            return ""


def _expect(value: Any, type_: type[Any], path: str, words: str) -> None:
    if not isinstance(value, type_):
        raise Undecodable(f"{path} is {_found(value)}, expected {words}")


def _found(value: Any) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def _text(value: Any, path: str) -> str:
    _expect(value, str, path, "a string")
    return str(value)


def _bool(value: Any, path: str) -> bool:
    _expect(value, bool, path, "a boolean")
    return bool(value)


def _integer(bits: int) -> Callable[[Any, str], int]:
    bound = 1 << (bits - 1)

    def read(value: Any, path: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not -bound <= value < bound:
            found = "a number out of range" if isinstance(value, int | float) else _found(value)
            raise Undecodable(f"{path} is {found}, expected an integer of {bits} bits")
        return value

    return read


def _bytes(value: Any, path: str) -> str:
    text = _text(value, path)
    try:
        binascii.a2b_base64(text.encode(), strict_mode=True)
    except (binascii.Error, ValueError):
        raise Undecodable(f"{path}: illegal base64 data; plain text is no base64") from None
    return text


_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_MICROSECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)", re.ASCII)


def _time(shape: re.Pattern[str], form: str, example: str) -> Callable[[Any, str], str]:
    def read(value: Any, path: str) -> str:
        text = _text(value, path)
        try:
            when = datetime.fromisoformat(text).astimezone(UTC) if shape.fullmatch(text) else None
        except (ValueError, OverflowError):
            when = None
        if when is None:
            raise Undecodable(f"{path} is no time such as {example}")
        # Go writes the year 1 for a time that never was; strftime would not fill it up.
        return f"{when.year:04d}{when.strftime(form)}"

    return read


def _quantity(value: Any, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Undecodable(f"{path} is {_found(value)}, expected a quantity such as 500m or 2Gi")
    made = canonical(str(value))
    if made is None:
        raise Undecodable(f"{path}: quantities are written as 500m, 1.5 or 2Gi")
    return made


def _number_or_text(value: Any, path: str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Undecodable(f"{path} is {_found(value)}, expected an integer or a string")
    return value


_SCALARS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "text": _text,
    "bool": _bool,
    "int32": _integer(32),
    "int64": _integer(64),
    "bytes": _bytes,
    "time": _time(_SECONDS, "-%m-%dT%H:%M:%SZ", "2006-01-02T15:04:05Z"),
    "microtime": _time(_MICROSECONDS, "-%m-%dT%H:%M:%S.%fZ", "2006-01-02T15:04:05.000000Z"),
    "quantity": _quantity,
    "number-or-text": _number_or_text,
    "any": lambda value, path: value,
}
