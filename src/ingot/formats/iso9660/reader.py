"""Reading files out of an ISO 9660 image.

Owns the way from a seekable file to names and contents. Rock Ridge names are preferred, then Joliet's, then the plain ones,
which are compared without regard to case and without the version number; who wants the plain ones alone says so. Every
offset is checked against the file and every directory is visited once, so a damaged or hostile image ends in a
`FormatError`, never in a loop or in memory without bound.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.iso9660 import layout
from ingot.formats.iso9660.descriptors import Descriptor, read_descriptors

_MAX_DIRECTORY: Final = 4 << 20
_MAX_DEPTH: Final = 64
"""The standard allows 8; Rock Ridge goes deeper. Paths, which are as long as they are deep, stay bounded with it."""
_MAX_ENTRIES: Final = 200_000
"""What is looked at in one walk: directories that overlap could otherwise hold more entries than the image has bytes."""
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory, and where its bytes are in the image."""

    path: str
    directory: bool
    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class Iso:
    """An ISO 9660 image in a seekable file. The file stays the caller's to close."""

    def __init__(self, file: BinaryIO, *, plain_names: bool = False) -> None:
        self._file = file
        self.size: Final[int] = file.seek(0, 2)
        self.descriptors: Final[list[Descriptor]] = read_descriptors(self.bytes_at)
        self.primary: Final[Descriptor] = next(d for d in self.descriptors if d.kind == layout.PRIMARY)
        self.label: Final[str] = self.primary.label
        self._joliet = False
        self._root = _first_record(self.primary.root)
        self._skip = None if plain_names else self._rock_ridge_skip()
        joliet = next((descriptor for descriptor in self.descriptors if descriptor.joliet), None)
        if self._skip is None and joliet is not None and not plain_names:
            self._joliet = True
            self._root = _first_record(joliet.root)

    def read(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """The content of a file; `KeyError` when there is none of that name, `FormatError` past the limit."""
        record = self._find(path)
        if record is None or record.directory:
            raise KeyError(path)
        if record.size > limit:
            raise FormatError(f"{path} in the ISO image has {record.size} bytes; at most {limit} are read")
        return b"".join(self.bytes_at(offset, length) for offset, length in record.extents)

    def __contains__(self, path: str) -> bool:
        """Whether there is a file of that name, so that `read` finds it."""
        record = self._find(path)
        return record is not None and not record.directory

    def files(self) -> Iterator[tuple[str, int]]:
        """Path and size of every file, in the order of `entries`."""
        for path, record in self._walk():
            if not record.directory:
                yield path, record.size

    def entries(self) -> Iterator[Entry]:
        """Every file and directory, a directory before what is in it."""
        for path, record in self._walk():
            yield _entry(path, record)

    def entry(self, path: str) -> Entry:
        """A file or directory by name; `KeyError` when there is none. Its bytes lie within the image."""
        record = self._find(path)
        if record is None:
            raise KeyError(path)
        return self._whole(_entry(path, record))

    def children(self, path: str) -> list[Entry]:
        """What is in a directory; `KeyError` when there is none of that name."""
        record = self._find(path)
        if record is None or not record.directory:
            raise KeyError(path)
        children = ((f"{path}/{self._name(child)}", child) for child in self._records(record))
        return [self._whole(_entry(*child)) for child in children]

    def check_complete(self) -> None:
        """Refuse an image that is shorter than it says; one that is longer was padded."""
        said = self.primary.sectors * layout.SECTOR
        if said > self.size:
            raise FormatError(f"ISO image is incomplete: it has {self.size} of {said} bytes")

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Bytes of the image itself; `FormatError` when it does not have them."""
        if offset + length > self.size:
            raise FormatError(
                f"the ISO image ends at byte {self.size}, but refers to bytes up to {offset + length}: it is cut short"
            )
        self._file.seek(offset)
        return self._file.read(length)

    def _whole(self, entry: Entry) -> Entry:
        if entry.end > self.size:
            raise FormatError(
                f"{entry.path} ends at byte {entry.end} of an ISO image of {self.size} bytes: it is cut short"
            )
        return entry

    def _walk(self) -> Iterator[tuple[str, _Record]]:
        seen: set[int] = set()
        waiting = [("", self._unseen(self._root, seen))]
        count = 0
        while waiting:
            prefix, records = waiting[-1]
            record = next(records, None)
            if record is None:
                waiting.pop()
                continue
            count += 1
            if count > _MAX_ENTRIES or len(waiting) > _MAX_DEPTH:
                raise FormatError(
                    f"the ISO image has more than {_MAX_ENTRIES} files, or folders more than {_MAX_DEPTH} deep: it is damaged, "
                    "or made to harm"
                )
            path = f"{prefix}/{self._name(record)}"
            yield path, record
            if record.directory:
                waiting.append((path, self._unseen(record, seen)))

    def _unseen(self, directory: _Record, seen: set[int]) -> Iterator[_Record]:
        start = directory.extents[0][0]
        if start in seen:
            raise FormatError("the ISO image has a directory that contains itself, or is in two places")
        seen.add(start)
        return self._records(directory)

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
        data = b"".join(self.bytes_at(offset, length) for offset, length in directory.extents)
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
                    continued = self.bytes_at(at, min(int.from_bytes(length, "little"), layout.SECTOR))
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


def _entry(path: str, record: _Record) -> Entry:
    offset = end = record.extents[0][0]
    for at, length in record.extents:
        if at != end:
            raise UnsupportedFormat(f"{path} lies in several places of the ISO image")
        # Only the last part of a large file may end inside a sector.
        end = at + length
    return Entry(path, record.directory, offset, end - offset)


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
