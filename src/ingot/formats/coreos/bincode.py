"""Numbers and byte strings as Rust's bincode writes them: little endian, a number in as few bytes as it needs."""

from __future__ import annotations

import struct
from typing import Final

from ingot.formats.errors import FormatError

_WIDTHS: Final = {251: "<H", 252: "<I", 253: "<Q"}


class Reader:
    """Takes one value after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._content[self._at : self._at + count]
        if len(taken) < count:
            raise FormatError("a record is cut short: it announces more bytes than there are")
        self._at += count
        return taken

    def number(self) -> int:
        first = self.take(1)[0]
        if first < 251:
            return first
        if first not in _WIDTHS:
            raise FormatError("a record has a number of more than 64 bits")
        form = _WIDTHS[first]
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def sized(self) -> bytes:
        return self.take(self.number())


def number(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    for mark, form in _WIDTHS.items():
        if value < 1 << 8 * struct.calcsize(form):
            return bytes([mark]) + struct.pack(form, value)
    raise FormatError(f"{value} has more than 64 bits")


def sized(content: bytes) -> bytes:
    return number(len(content)) + content
