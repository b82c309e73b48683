"""Reading a mapping field by field, so that nothing in it is passed over.

Owns the rule that keeps network data honest: each field is taken by its name and checked, and whatever is left when everything
that is understood was taken is refused with its path. What a field means is for the callers to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.network.document import Value
from ingot.formats.network.telling import shown

_TRUTHS: Final = {"1": True, "true": True, "yes": True, "on": True, "y": True} | {
    "0": False, "false": False, "no": False, "off": False, "n": False
}  # fmt: skip
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}|0x[0-9a-fA-F]{1,16}")
_LONGEST: Final = 1024


class Fields:
    """A mapping that is being read; a field that is null is not there."""

    def __init__(self, value: Value, path: str, prefix: str = "") -> None:
        if not isinstance(value, dict):
            raise FormatError(f"{path or 'the document'}: expected a mapping, found {shown(value)}")
        self.path: Final = path
        self._prefix: Final = prefix
        self._left: Final = {key: item for key, item in value.items() if item is not None}

    def at(self, key: str) -> str:
        return f"{self.path}.{self._prefix}{key}" if self.path else key

    def under(self, prefix: str) -> Fields:
        """The fields whose names begin like this, as a mapping of their own without it; an empty text says nothing."""
        names = [key for key in self._left if key.startswith(prefix)]
        found = {key.removeprefix(prefix): self._left.pop(key) for key in names}
        return Fields({key: value for key, value in found.items() if value != ""}, self.path, prefix)

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def take(self, *keys: str) -> tuple[str, Value]:
        """The first of these names that is there, with its value; the others would say the same again."""
        there = [key for key in keys if key in self._left]
        for key in there[1:]:
            raise FormatError(f"{self.at(key)}: is another name of {there[0]}, which is there too")
        return (there[0], self._left.pop(there[0])) if there else (keys[0], None)

    def text(self, *keys: str) -> str | None:
        key, value = self.take(*keys)
        if value is None:
            return None
        if not isinstance(value, str):
            raise FormatError(f"{self.at(key)}: expected text, found {shown(value)}; put it in quotes")
        if len(value) > _LONGEST or not value.isprintable():
            raise FormatError(
                f"{self.at(key)}: {shown(value)} has control characters, or more than {_LONGEST} characters"
            )
        return value

    def needed(self, key: str) -> str:
        value = self.text(key)
        if not value:
            raise FormatError(f"{self.at(key)}: is needed and not there")
        return value

    def flag(self, *keys: str) -> bool | None:
        key, value = self.take(*keys)
        if value is None or isinstance(value, bool):
            return value
        said = _TRUTHS.get(str(value).lower()) if isinstance(value, str | int) else None
        if said is None:
            raise FormatError(f"{self.at(key)}: expected true or false, found {shown(value)}")
        return said

    def number(self, key: str, low: int, high: int) -> int | None:
        _, value = self.take(key)
        if value is None:
            return None
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = int(value, 16 if value.startswith("0x") else 10)
        if isinstance(value, bool) or not isinstance(value, int):
            raise FormatError(f"{self.at(key)}: expected a number, found {shown(value)}")
        if not low <= value <= high:
            raise FormatError(f"{self.at(key)}: {value} is not between {low} and {high}")
        return value

    def choice(self, key: str, choices: Mapping[str, str]) -> str | None:
        """One of a few words; each means what it maps to. Numbers are words too."""
        _, value = self.take(key)
        if value is None:
            return None
        said = (
            choices.get(str(value))
            if isinstance(value, str | int | float) and not isinstance(value, bool)
            else None
        )
        if said is None:
            known = ", ".join(dict.fromkeys(choices.values()))
            raise UnsupportedFormat(f"{self.at(key)}: {shown(value)} is not one of {known}")
        return said

    def fields(self, *keys: str) -> Fields | None:
        key, value = self.take(*keys)
        return None if value is None else Fields(value, self.at(key))

    def items(self, *keys: str) -> list[tuple[str, Value]] | None:
        """The values of a list, each with its path."""
        key, value = self.take(*keys)
        if value is None:
            return None
        if not isinstance(value, list):
            raise FormatError(f"{self.at(key)}: expected a list, found {shown(value)}")
        return [(f"{self.at(key)}[{number}]", item) for number, item in enumerate(value)]

    def each(self, *keys: str) -> Iterator[Fields]:
        return (Fields(value, path) for path, value in self.items(*keys) or ())

    def texts(self, *keys: str) -> list[tuple[str, str]]:
        return [(path, text_of(value, path)) for path, value in self.items(*keys) or ()]

    def passed_over(self, *keys: str) -> None:
        """What describes the state that was found, and asks for nothing."""
        for key in keys:
            self._left.pop(key, None)

    def refuse(self, key: str, why: str) -> NoReturn:
        raise UnsupportedFormat(f"{self.at(key)}: {why}")

    def done(self) -> None:
        for key in self._left:
            self.refuse(key if key.isprintable() and len(key) <= 60 else shown(key), "is not supported")


def text_of(value: Value, path: str) -> str:
    """An item of a list that has to be text."""
    if not isinstance(value, str) or not value or len(value) > _LONGEST or not value.isprintable():
        raise FormatError(f"{path}: expected text, found {shown(value)}")
    return value
