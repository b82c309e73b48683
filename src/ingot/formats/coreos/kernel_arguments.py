"""Editing kernel arguments, word by word, in the order that coreos-installer has: delete, append, replace.

Pure text. A deletion or replacement that finds nothing changes nothing. There is no quoting: an argument may hold blanks,
and then it is looked for with them. Refuses what would end the line or the area it is written into.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ingot.formats.errors import FormatError

_REPLACEMENT: Final = re.compile(r"([^=]+)=([^=]+)=([^=]+)")


@dataclass(frozen=True, slots=True)
class ArgumentChanges:
    """What to change; each entry is one argument, of `replace` one KEY=OLD=NEW."""

    append: Sequence[str] = ()
    delete: Sequence[str] = ()
    replace: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.append or self.delete or self.replace)

    def applied_to(self, arguments: str) -> str:
        # A blank at both ends makes every argument one that stands between blanks.
        line = f" {arguments} "
        for argument in self.delete:
            line = line.replace(f" {argument.strip()} ", " ")
        for argument in self.append:
            line += f"{_printable(argument.strip())} "
        for change in self.replace:
            parts = _REPLACEMENT.fullmatch(_printable(change))
            if parts is None:
                raise FormatError(f"Wrong input {change!r}, format should be: KEY=OLD=NEW")
            key, old, new = parts.groups()
            line = line.replace(f" {key}={old} ", f" {key}={new} ")
        return line.strip()


def _printable(argument: str) -> str:
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in argument):
        raise FormatError(
            f"the kernel argument {argument!r} has a line break or another control character, which would end the line"
        )
    return argument
