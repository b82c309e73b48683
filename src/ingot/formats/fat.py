"""Reading the root directory of a small FAT volume (FAT12 and FAT16), as boot parameters travel on a virtual stick.

Owns the way from a seekable file to a label and the files of the root, with their long names. Directories are left out, and
FAT32 is refused. Every chain of clusters is followed within the volume and at most once round, so a damaged image ends in a
`FormatError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from ingot.formats.errors import FormatError, UnsupportedFormat

_ENTRY: Final = 32
_LARGEST_FILE: Final = 16 << 20
_LONG_NAME, _LABEL, _DIRECTORY = 0x0F, 0x08, 0x10
_DELETED: Final = 0xE5


@dataclass(frozen=True, slots=True)
class FatVolume:
    label: str
    files: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class _Layout:
    sector: int
    cluster: int
    table: int
    root: int
    root_bytes: int
    data: int
    clusters: int


def looks_like_fat(head: bytes) -> bool:
    """Whether the first sector is that of a FAT volume of the kinds that are read here."""
    return len(head) >= 512 and head[510:512] == b"\x55\xaa" and head[54:58] == b"FAT1"


def read_fat(file: BinaryIO) -> FatVolume:
    """The volume in a seekable file; the file stays the caller's to close."""
    size = file.seek(0, 2)
    layout = _layout(_at(file, 0, 512), size)
    table = _at(file, layout.table, (layout.clusters + 2) * 2)
    label, files = "", {}
    for name, attributes, start, length in _entries(_at(file, layout.root, layout.root_bytes)):
        if attributes & _LABEL:
            label = name
        elif not attributes & _DIRECTORY:
            files[name] = _content(file, layout, table, start, length)
    return FatVolume(label, files)


def _layout(head: bytes, size: int) -> _Layout:
    if len(head) < 512 or head[510:512] != b"\x55\xaa":
        raise FormatError("not a FAT volume: its first sector has no signature")
    sector, per_cluster, reserved, tables, entries, small, _, per_table = struct.unpack_from(
        "<HBHBHHBH", head, 11
    )
    sectors = small or struct.unpack_from("<I", head, 32)[0]
    if sector not in (512, 1024, 2048, 4096) or not per_cluster or not tables or not reserved:
        raise FormatError("not a FAT volume: its first sector makes no sense")
    if not per_table or not entries:
        raise UnsupportedFormat("the volume is FAT32; FAT12 and FAT16 are read")
    root = (reserved + tables * per_table) * sector
    data = root + entries * _ENTRY
    clusters = (sectors * sector - data) // (per_cluster * sector)
    if sectors * sector > size or clusters < 1 or per_table * sector < clusters * 3 // 2:
        raise FormatError(f"the FAT volume says it has {sectors * sector} bytes, but there are {size}")
    return _Layout(sector, per_cluster * sector, reserved * sector, root, entries * _ENTRY, data, clusters)


def _entries(root: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Name, attributes, first cluster and length of each entry."""
    long_name: list[str] = []
    for at in range(0, len(root) - _ENTRY + 1, _ENTRY):
        entry = root[at : at + _ENTRY]
        if entry[0] == 0:
            return
        if entry[0] == _DELETED:
            long_name = []
        elif entry[11] == _LONG_NAME:  # the last part of a long name comes first
            long_name.insert(0, _part(entry))
        else:
            base, extension = (entry[0:8].decode("cp437"), entry[8:11].decode("cp437"))
            label = bool(entry[11] & _LABEL)
            short = (
                (base + extension).rstrip() if label else _short(base.rstrip(), extension.rstrip(), entry[12])
            )
            start, length = struct.unpack_from("<HI", entry, 26)
            yield "".join(long_name) or short, entry[11], start, length
            long_name = []


def _part(entry: bytes) -> str:
    text = (entry[1:11] + entry[14:26] + entry[28:32]).decode("utf-16-le", "replace")
    return text.partition("\0")[0]


def _short(base: str, extension: str, case: int) -> str:
    base = base.lower() if case & 0x08 else base
    extension = extension.lower() if case & 0x10 else extension
    return f"{base}.{extension}" if extension else base


def _content(file: BinaryIO, layout: _Layout, table: bytes, start: int, length: int) -> bytes:
    if length > _LARGEST_FILE:
        raise FormatError(f"a file of the FAT volume has {length} bytes; at most {_LARGEST_FILE} are read")
    content, cluster = b"", start
    while len(content) < length:
        if not 2 <= cluster < layout.clusters + 2:
            raise FormatError("a file of the FAT volume is cut short")
        content += _at(file, layout.data + (cluster - 2) * layout.cluster, layout.cluster)
        cluster = _next(table, cluster, twelve=layout.clusters < 4085)
    return content[:length]


def _next(table: bytes, cluster: int, *, twelve: bool) -> int:
    if not twelve:
        return int.from_bytes(table[cluster * 2 : cluster * 2 + 2], "little")
    pair = int.from_bytes(table[cluster * 3 // 2 : cluster * 3 // 2 + 2], "little")
    return pair >> 4 if cluster % 2 else pair & 0xFFF


def _at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)
