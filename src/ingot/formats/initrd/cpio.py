"""cpio archives in the form the kernel unpacks ("newc"): headers of hexadecimal text, names and data padded to four bytes.

Owns the bytes of one archive. Reading is a stream: an entry's data is skipped unless it is asked for. Leaves compression
and several archives in one file to `archive`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.initrd.stream import CHUNK, Peekable

REGULAR: Final = 0o100000
DIRECTORY: Final = 0o040000
_KIND: Final = 0o170000
_HEADER: Final = 110
_MAGICS: Final = (b"070701", b"070702")
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f]+")
_TRAILER: Final = "TRAILER!!!"
_LONGEST_NAME: Final = 64 << 10
"""dracut pads names with zeros to align the data behind them; the kernel itself reads 4 KiB."""


@dataclass(slots=True)
class Entry:
    """One member of an archive; `data` may be read once, before the next entry is asked for."""

    name: str
    mode: int
    size: int
    _source: Peekable
    _left: int

    @property
    def regular(self) -> bool:
        return self.mode & _KIND == REGULAR

    def data(self) -> bytes:
        data = self._source.exactly(self._left, self.name)
        self._left = 0
        return data

    def skip(self) -> None:
        while self._left:
            self._left -= len(self._source.exactly(min(self._left, CHUNK), self.name))


def read_entries(source: Peekable) -> Iterator[Entry]:
    """The members of the archive that begins here, up to its trailer."""
    while True:
        header = source.exactly(_HEADER, "an entry's header")
        if header[:6] not in _MAGICS:
            raise FormatError("not a cpio archive: there is no entry where one belongs")
        if not _HEXADECIMAL.fullmatch(header, 6):
            raise FormatError("an entry of the cpio archive has a header that is not hexadecimal")
        fields = [int(header[at : at + 8], 16) for at in range(6, _HEADER, 8)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        if not 0 < name_size <= _LONGEST_NAME:
            raise FormatError(f"an entry of the cpio archive has a name of {name_size} bytes")
        name = _name(source.exactly(name_size + _padding(_HEADER + name_size), "an entry's name"))
        entry = Entry(name, mode, size, source, size)
        if name == _TRAILER:
            entry.skip()
            return
        yield entry
        entry.skip()
        source.exactly(_padding(size), name)


def entry_bytes(name: str, mode: int, data: bytes = b"") -> bytes:
    """One member, padded. Owner root, made at the epoch: the same members give the same bytes."""
    named = name.encode() + b"\0"
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(named), 0]
    head = _MAGICS[0] + b"".join(b"%08X" % field for field in fields) + named
    return head + bytes(_padding(len(head))) + data + bytes(_padding(len(data)))


def trailer() -> bytes:
    return entry_bytes(_TRAILER, 0)


def _name(field: bytes) -> str:
    try:
        return field.split(b"\0", 1)[0].decode()
    except UnicodeDecodeError as error:
        raise FormatError("an entry of the cpio archive has a name that is not UTF-8") from error


def _padding(length: int) -> int:
    return -length % 4
