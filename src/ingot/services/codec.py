"""Dataclass fields that are environment variables: how a field gets its name there, and how values become text and back.

A field says `Annotated[int, Variable("IRONIC_LISTEN_PORT")]`. Knows text, whole numbers, switches, paths and secrets, by the
annotation; leaves to the dataclass what makes a value right. An empty variable counts as not set, because that is how shells
and manifests take a setting away.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, get_args, get_type_hints

from ingot.services.errors import SettingsError
from ingot.trust import Secret

_YES: Final = frozenset({"true", "yes", "on", "1"})
_NO: Final = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class Variable:
    """The name of a field in the environment."""

    name: str


class Dataclass(Protocol):
    """Any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


def variables(kind: type[Dataclass]) -> dict[str, tuple[str, Any]]:
    """Of each field that is a variable: its name in the environment, and its type without `| None`."""
    return _variables(kind)


@functools.cache
def _variables(kind: type[Dataclass]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for field, hint in get_type_hints(kind, include_extras=True).items():
        annotated, *extras = get_args(hint) or (hint,)
        for extra in extras:
            if isinstance(extra, Variable):
                found[field] = extra.name, _without_none(annotated)
    return found


def from_text(kind: type[Dataclass], environment: Mapping[str, str]) -> dict[str, Any]:
    """The values, by field, of the variables that this environment sets."""
    return {
        field: _parse(variable, wanted, environment[variable])
        for field, (variable, wanted) in variables(kind).items()
        if environment.get(variable)
    }


def to_text(value: Dataclass, usual: Mapping[str, object]) -> dict[str, str]:
    """The variables of this value as text, without the fields that have their usual value."""
    fields = {field: getattr(value, field) for field in variables(type(value))}
    return {
        variables(type(value))[field][0]: _format(here)
        for field, here in fields.items()
        if here is not None and (field not in usual or here != usual[field])
    }


def defaults(kind: type[Dataclass]) -> dict[str, object]:
    """The fields that have a default, with it."""
    return {
        name: field.default
        for name, field in kind.__dataclass_fields__.items()
        if field.default is not dataclasses.MISSING
    }


def _without_none(annotation: Any) -> Any:
    choices = [choice for choice in get_args(annotation) if choice is not type(None)]
    return choices[0] if choices else annotation


def _parse(variable: str, wanted: Any, text: str) -> object:
    if wanted is bool:
        return _parse_switch(variable, text)
    if wanted is int:
        return _parse_number(variable, text)
    return wanted(text)


def _parse_switch(variable: str, text: str) -> bool:
    if text.lower() in _YES | _NO:
        return text.lower() in _YES
    raise SettingsError(f"{variable} is {text!r}; expected true or false.")


def _parse_number(variable: str, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise SettingsError(f"{variable} is {text!r}; expected a whole number.")


def _format(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Secret():
            return value.reveal()
        case _:
            return str(value)
