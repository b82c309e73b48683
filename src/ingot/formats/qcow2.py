"""qcow2: reading disk images, and writing small ones.

Reads versions 2 and 3 with uncompressed and zlib clusters. Refuses, on purpose: backing files and external data (an image
must not name files of the machine that reads it), encryption, zstd, extended L2 entries, and images marked corrupt. Every
offset is checked, so a hostile image ends in a `FormatError`.
The writer makes plain version 3 images of at most 1 GiB: enough for samples and tests.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

from ingot.formats.errors import FormatError, UnsupportedFormat

MAGIC: Final = b"QFI\xfb"
_HEADER: Final = struct.Struct(">4sIQIIQIIQQIIQ")
_HEADER_3: Final = struct.Struct(">QQQII")
_OFFSET: Final = 0x00FF_FFFF_FFFF_FE00
_COMPRESSED: Final = 1 << 62
_COPIED: Final = 1 << 63
_READS_AS_ZERO: Final = 1
_LARGEST: Final = 16 << 40
_LARGEST_L1: Final = 32 << 20
"""Bytes of the first table, which is kept in memory; QEMU reads no larger one either."""

_CORRUPT, _EXTERNAL_DATA, _COMPRESSION, _EXTENDED_L2 = 1 << 1, 1 << 2, 1 << 3, 1 << 4
_DIRTY: Final = 1 << 0

_WRITER_BITS: Final = 16
_WRITER_LIMIT: Final = 1 << 30


class Qcow2:
    """A qcow2 image in a seekable file; `size` is that of the disk it describes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._file_size = file.seek(0, 2)
        head = self._bytes(0, _HEADER.size)
        (magic, version, backing, _, bits, size, encryption, l1_size, l1_at, *_) = _HEADER.unpack(head)
        if magic != MAGIC:
            raise FormatError("not a qcow2 image: it does not begin with QFI")
        if version not in (2, 3):
            raise UnsupportedFormat(f"qcow2 version {version}; versions 2 and 3 are read")
        if backing:
            raise UnsupportedFormat("the qcow2 image has a backing file; convert it to one that stands alone")
        if encryption:
            raise UnsupportedFormat("the qcow2 image is encrypted")
        if version == 3:
            self._check_features()
        if not 9 <= bits <= 21 or size > _LARGEST:
            raise FormatError(f"the qcow2 image claims clusters of 2^{bits} bytes and a disk of {size} bytes")
        self.size: Final[int] = size
        self._bits = bits
        self._cluster = 1 << bits
        self._per_table = self._cluster // 8
        needed = -(-size // (self._cluster * self._per_table))
        if needed * 8 > _LARGEST_L1:
            raise FormatError(
                f"the qcow2 image needs {needed * 8} bytes for its first table; at most {_LARGEST_L1} are read"
            )
        if l1_size < needed:
            raise FormatError(
                f"the qcow2 image has {l1_size} entries in its first table; its disk needs {needed}"
            )
        self._l1 = struct.unpack(f">{needed}Q", self._bytes(l1_at, needed * 8))

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """Offset and bytes of everything that is not known to be zero, in order, a cluster at a time."""
        for number, entry in enumerate(self._l1):
            table_at = entry & _OFFSET
            if not table_at:
                continue
            table = struct.unpack(f">{self._per_table}Q", self._bytes(table_at, self._cluster))
            for index, cluster in enumerate(table):
                offset = (number * self._per_table + index) * self._cluster
                if offset >= self.size:
                    return
                data = self._read(cluster)
                if data is not None:
                    yield offset, data[: self.size - offset]

    def _read(self, entry: int) -> bytes | None:
        if entry & _COMPRESSED:
            return self._inflate(entry)
        if entry & _READS_AS_ZERO or not entry & _OFFSET:
            return None
        at = entry & _OFFSET
        if at >= self._file_size:
            raise FormatError(f"the qcow2 image ends at byte {self._file_size} before its cluster at {at}")
        # The last cluster of a file may be shorter than a cluster; what is missing reads as zero.
        return self._bytes(at, min(self._cluster, self._file_size - at)).ljust(self._cluster, b"\0")

    def _inflate(self, entry: int) -> bytes:
        shift = 62 - (self._bits - 8)
        at = entry & ((1 << shift) - 1)
        sectors = ((entry & (_COMPRESSED - 1)) >> shift) + 1
        length = min(sectors * 512 - at % 512, self._file_size - at)
        if length <= 0:
            raise FormatError(f"the qcow2 image ends before its compressed cluster at {at}")
        try:
            data = zlib.decompressobj(-15).decompress(self._bytes(at, length), self._cluster)
        except zlib.error as error:
            raise FormatError(
                f"the compressed cluster at {at} of the qcow2 image is damaged: {error}"
            ) from error
        if len(data) != self._cluster:
            raise FormatError(f"the compressed cluster at {at} of the qcow2 image is too short")
        return data

    def _check_features(self) -> None:
        incompatible, *_ = _HEADER_3.unpack(self._bytes(_HEADER.size, _HEADER_3.size))
        for bit, what in (
            (_CORRUPT, "is marked corrupt"),
            (_EXTERNAL_DATA, "keeps its data in another file"),
            (_EXTENDED_L2, "has extended L2 entries"),
        ):
            if incompatible & bit:
                raise UnsupportedFormat(f"the qcow2 image {what}")
        if incompatible & _COMPRESSION and self._bytes(104, 1) != b"\0":
            raise UnsupportedFormat("the qcow2 image is compressed with zstd; zlib is read")
        unknown = incompatible & ~(_DIRTY | _COMPRESSION)
        if unknown:
            raise UnsupportedFormat(f"the qcow2 image has features that are not known here ({unknown:#x})")

    def _bytes(self, offset: int, length: int) -> bytes:
        if offset + length > self._file_size:
            raise FormatError(
                f"the qcow2 image ends at byte {self._file_size}, but refers to bytes up to {offset + length}: it is cut short"
            )
        self._file.seek(offset)
        return self._file.read(length)


def write_qcow2(raw: BinaryIO, out: BinaryIO) -> None:
    """Write the disk in `raw` as a qcow2 image that leaves out clusters of zeros."""
    size = raw.seek(0, 2)
    if size > _WRITER_LIMIT:
        raise UnsupportedFormat(f"a disk of {size} bytes; this writer is for at most {_WRITER_LIMIT}")
    cluster = 1 << _WRITER_BITS
    per_table = cluster // 8
    tables = max(1, -(-size // (cluster * per_table)))
    # Clusters: header, refcount table, refcount block, L1, the L2 tables, then data.
    first_l2, used = 4, 4 + tables
    l2 = [[0] * per_table for _ in range(tables)]
    zeros = bytes(cluster)
    for number in range(-(-size // cluster)):
        raw.seek(number * cluster)
        data = raw.read(cluster).ljust(cluster, b"\0")
        if data != zeros:
            l2[number // per_table][number % per_table] = used * cluster | _COPIED
            out.seek(used * cluster)
            out.write(data)
            used += 1
    head = _HEADER.pack(MAGIC, 3, 0, 0, _WRITER_BITS, size, 0, tables, 3 * cluster, cluster, 1, 0, 0)
    head += _HEADER_3.pack(0, 0, 0, 4, 104)
    l1 = [(first_l2 + number) * cluster | _COPIED for number in range(tables)]
    _put(out, 0, head + bytes(8), cluster)
    _put(out, 1, struct.pack(">Q", 2 * cluster), cluster)
    _put(out, 2, struct.pack(f">{used}H", *[1] * used), cluster)
    _put(out, 3, struct.pack(f">{tables}Q", *l1), cluster)
    for number, table in enumerate(l2):
        _put(out, first_l2 + number, struct.pack(f">{per_table}Q", *table), cluster)


def _put(out: BinaryIO, number: int, data: bytes, cluster: int) -> None:
    out.seek(number * cluster)
    out.write(data.ljust(cluster, b"\0"))
