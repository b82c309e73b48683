"""Several archives in one file, plain and compressed, as one set of members.

Owns the order in which the kernel reads them: one after the other, zeros between them skipped, of a path that is there twice
the last one counts. `pack` is the way back for a few small files. Only regular files are members; what is not asked for is
passed over without being kept.
"""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from typing import BinaryIO, Final

from ingot.formats.errors import FormatError
from ingot.formats.initrd import cpio
from ingot.formats.initrd.stream import Peekable, decoded

Members = dict[str, bytes]
"""Path in the initial RAM disk, without a leading slash, and content."""

_LARGEST_FILE: Final = 64 << 30
_LARGEST_ARCHIVE: Final = 16 << 30
_KEPT: Final = 64 << 20
_MOST_MEMBERS: Final = 100_000
_FILE: Final = cpio.REGULAR | 0o600
_FOLDER: Final = cpio.DIRECTORY | 0o755


def chosen(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a path matches one of these shell patterns; a star matches slashes too."""
    matchers = [re.compile(translate(pattern)) for pattern in patterns]
    return lambda path: any(matcher.match(path) for matcher in matchers)


def read_members(
    file: BinaryIO, wanted: Callable[[str], bool], *, limit: int = _KEPT, unpacked: int = _LARGEST_ARCHIVE
) -> Members:
    """The wanted regular files of an initial RAM disk, sorted by path.

    At most `limit` bytes of them, out of compressed archives of at most `unpacked` bytes together.
    """
    members: Members = {}
    kept = 0
    for entry in _entries(file, unpacked):
        if not entry.regular or not wanted(entry.name):
            continue
        kept += entry.size - len(members.get(entry.name, b""))
        if kept > limit:
            raise FormatError(
                f"the archive has {entry.name} of {entry.size} bytes; at most {limit} bytes are taken out of it"
            )
        members[entry.name] = entry.data()
    return dict(sorted(members.items()))


def list_names(file: BinaryIO, wanted: Callable[[str], bool]) -> list[str]:
    """The paths of the wanted regular files, sorted, each once."""
    return sorted({entry.name for entry in _entries(file) if entry.regular and wanted(entry.name)})


def pack(members: Mapping[str, bytes], *, limit: int | None = None) -> bytes:
    """A compressed archive of these files; the same files give the same bytes.

    gzip is quick and is enough. Where the result may not be longer than `limit` and is, xz is tried too: the shorter one
    is returned, and it is for the caller to see that it is too long all the same.
    """
    plain = b"".join(_archive(members))
    packed = gzip.compress(plain, mtime=0)
    if limit is not None and len(packed) > limit:
        # The kernel reads no other check than CRC-32, and the dictionary need not be longer than what is packed.
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": max(4096, len(plain))}]
        packed = min(packed, lzma.compress(plain, check=lzma.CHECK_CRC32, filters=filters), key=len)
    return packed


def _archive(members: Mapping[str, bytes]) -> Iterator[bytes]:
    made: set[str] = set()
    for path in sorted(members, key=str.encode):
        for folder in _parents(path):
            if folder not in made:
                made.add(folder)
                yield cpio.entry_bytes(folder, _FOLDER)
        yield cpio.entry_bytes(path, _FILE, members[path])
    yield cpio.trailer()


def _parents(path: str) -> Iterable[str]:
    """The folders of a path, outermost first: the kernel drops a file whose folder is not there."""
    parts = path.split("/")[:-1]
    return ("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def _entries(file: BinaryIO, unpacked: int = _LARGEST_ARCHIVE) -> Iterator[cpio.Entry]:
    source = Peekable(file.read, limit=_LARGEST_FILE)
    count = 0
    while source.peek(1):
        inner = decoded(source, limit=unpacked)
        for entry in cpio.read_entries(inner or source):
            count += 1
            if count > _MOST_MEMBERS:
                raise FormatError(
                    f"the archive has more than {_MOST_MEMBERS} files, which is all that is read"
                )
            yield entry
        if inner is not None:
            inner.skip_zeros()
            unpacked = inner.left
            if inner.peek(1):
                raise FormatError(
                    "found trailing garbage inside a compressed archive: there is data behind its end"
                )
        source.skip_zeros()
