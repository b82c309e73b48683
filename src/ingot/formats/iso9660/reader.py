"""Reading files out of an ISO 9660 image.

Owns the way from a seekable file to names and contents. Rock Ridge names are preferred, then Joliet's, then the plain ones,
which are compared without regard to case and without the version number. Every offset is checked against the file and every
directory is visited once, so a damaged or hostile image ends in a `FormatError`, never in a loop or in memory without bound.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from ingot.formats.errors import FormatError
from ingot.formats.iso9660 import layout

_MAX_DIRECTORY: Final = 4 << 20
_MAX_DESCRIPTORS: Final = 64
_MAX_DIRECTORIES: Final = 10_000
_RECORD_HEAD: Final = 33


@dataclass(slots=True)
class _Record:
    """One entry of a directory: a name and where its bytes are."""

    identifier: bytes
    system_use: bytes
    directory: bool
    extents: list[tuple[int, int]] = field(default_factory=list)
    """Offset and length in bytes; several for a file of more than 4 GiB."""

    @property
    def size(self) -> int:
        return sum(length for _, length in self.extents)


class Iso:
    """An ISO 9660 image in a seekable file. The file stays the caller's to close."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        primary, joliet = self._descriptors()
        self.label = primary[40:72].decode("ascii", "replace").rstrip(" \0")
        self._joliet = False
        self._root = _first_record(primary[156:190])
        self._skip = self._rock_ridge_skip()
        if self._skip is None and joliet is not None:
            self._joliet = True
            self._root = _first_record(joliet[156:190])

    def read(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """The content of a file; `KeyError` when there is none of that name, `FormatError` past the limit."""
        record = self._find(path)
        if record is None or record.directory:
            raise KeyError(path)
        if record.size > limit:
            raise FormatError(f"{path} in the ISO image has {record.size} bytes; at most {limit} are read")
        return b"".join(self._bytes(offset, length) for offset, length in record.extents)

    def __contains__(self, path: str) -> bool:
        """Whether there is a file of that name, so that `read` finds it."""
        record = self._find(path)
        return record is not None and not record.directory

    def files(self) -> Iterator[tuple[str, int]]:
        """Path and size of every file, directories in the order they are met."""
        waiting = [("", self._root)]
        seen: set[int] = set()
        while waiting:
            prefix, directory = waiting.pop(0)
            start = directory.extents[0][0]
            if start in seen or len(seen) > _MAX_DIRECTORIES:
                raise FormatError(
                    "the ISO image has a directory that contains itself, or too many directories"
                )
            seen.add(start)
            for record in self._records(directory):
                path = f"{prefix}/{self._name(record)}"
                if record.directory:
                    waiting.append((path, record))
                else:
                    yield path, record.size

    def _descriptors(self) -> tuple[bytes, bytes | None]:
        primary = joliet = None
        for number in range(layout.FIRST_DESCRIPTOR, layout.FIRST_DESCRIPTOR + _MAX_DESCRIPTORS):
            sector = self._bytes(number * layout.SECTOR, layout.SECTOR)
            if sector[1:6] != layout.MAGIC:
                raise FormatError("not an ISO 9660 image: no volume descriptor where one belongs")
            if sector[0] == layout.PRIMARY and primary is None:
                primary = sector
            elif sector[0] == layout.SUPPLEMENTARY and sector[88:91] in layout.JOLIET_ESCAPES:
                joliet = sector
            elif sector[0] == layout.TERMINATOR:
                break
        if primary is None:
            raise FormatError("not an ISO 9660 image: it has no primary volume descriptor")
        return primary, joliet

    def _bytes(self, offset: int, length: int) -> bytes:
        if offset + length > self._size:
            raise FormatError(
                f"the ISO image ends at byte {self._size}, but refers to bytes up to {offset + length}: it is cut short"
            )
        self._file.seek(offset)
        return self._file.read(length)

    def _find(self, path: str) -> _Record | None:
        here = self._root
        for part in filter(None, path.split("/")):
            if not here.directory:
                return None
            named = {self._name(record): record for record in self._records(here)}
            found = named.get(part)
            if found is None:
                found = {name.lower(): record for name, record in named.items()}.get(part.lower())
            if found is None:
                return None
            here = found
        return here

    def _records(self, directory: _Record) -> Iterator[_Record]:
        """The entries of a directory without itself and its parent, the parts of a large file put together."""
        whole: _Record | None = None
        for record, more in self._raw_records(directory):
            if record.identifier in (b"\0", b"\1"):
                continue
            if whole is None:
                whole = record
            else:
                whole.extents += record.extents
            if not more:
                yield whole
                whole = None

    def _raw_records(self, directory: _Record) -> Iterator[tuple[_Record, bool]]:
        if directory.size > _MAX_DIRECTORY:
            raise FormatError(
                f"the ISO image has a directory of {directory.size} bytes; that is not credible"
            )
        data = b"".join(self._bytes(offset, length) for offset, length in directory.extents)
        at = 0
        while at < len(data):
            length = data[at]
            if length == 0:  # records do not cross sectors: the rest of this one is empty
                at = (at // layout.SECTOR + 1) * layout.SECTOR
                continue
            yield _record(data[at : at + length]), bool(data[at + 25] & layout.MULTI_EXTENT)
            at += length

    def _rock_ridge_skip(self) -> int | None:
        """How many bytes precede the system use entries; None when the image has no Rock Ridge names."""
        for record, _ in self._raw_records(self._root):
            if record.system_use[:2] == b"SP" and record.system_use[4:6] == b"\xbe\xef":
                if len(record.system_use) < 7:
                    raise FormatError(
                        "the ISO image announces Rock Ridge names in an entry that is cut short"
                    )
                return record.system_use[6]
            return None
        return None

    def _name(self, record: _Record) -> str:
        if self._joliet:
            return record.identifier.decode("utf-16-be", "replace").removesuffix(";1")
        name = self._rock_ridge_name(record) if self._skip is not None else ""
        return name or record.identifier.decode("ascii", "replace").split(";")[0].rstrip(".")

    def _rock_ridge_name(self, record: _Record) -> str:
        name, area = b"", record.system_use[self._skip or 0 :]
        for _ in range(32):  # a continuation may point at a further one; a name needs few
            continued = None
            for signature, body in _system_use(area):
                if signature == b"NM" and body and not body[0] & 0x06:
                    name += body[1:]
                elif signature == b"CE" and len(body) >= 24:
                    block, offset, length = body[0:4], body[8:12], body[16:20]
                    at = int.from_bytes(block, "little") * layout.SECTOR + int.from_bytes(offset, "little")
                    continued = self._bytes(at, min(int.from_bytes(length, "little"), layout.SECTOR))
            if continued is None:
                break
            area = continued
        return name.decode("utf-8", "replace")


def _system_use(area: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 4 <= len(area):
        length = area[at + 2]
        if length < 4:
            return
        yield area[at : at + 2], area[at + 4 : at + length]
        at += length


def _first_record(data: bytes) -> _Record:
    record = _record(data)
    if not record.directory:
        raise FormatError("the root of the ISO image is not a directory")
    return record


def _record(data: bytes) -> _Record:
    if len(data) < _RECORD_HEAD + 1 or len(data) < _RECORD_HEAD + data[32]:
        raise FormatError("the ISO image has a directory record that is cut short")
    extended, (block,), (size,) = (
        data[1],
        struct.unpack_from("<I", data, 2),
        struct.unpack_from("<I", data, 10),
    )
    end = _RECORD_HEAD + data[32]
    return _Record(
        identifier=data[_RECORD_HEAD:end],
        # the identifier is padded to an even length
        system_use=data[end + (1 - data[32] % 2) :],
        directory=bool(data[25] & layout.DIRECTORY),
        extents=[((block + extended) * layout.SECTOR, size)],
    )
