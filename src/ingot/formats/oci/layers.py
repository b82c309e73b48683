"""The archive of a layer: headers of a tar file, written and read.

Written are plain POSIX headers, with an extended header where a name, a link or a size does not fit into one; times and owners
are those that are given, so the same entries make the same bytes. A head can be stretched so that the content behind it begins at
a round offset: an ISO image in a layer then lies in whole blocks of the file, can be served from there, and a file system
that can share blocks copies it without copying.

Read is what any tool writes: POSIX and GNU long names, sizes in both notations. Contents are not read, only passed over.
A damaged or hostile archive ends in a `FormatError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import BinaryIO, Final

from ingot.formats.errors import FormatError, UnsupportedFormat

BLOCK: Final = 512
END: Final = bytes(2 * BLOCK)
_LONGEST_EXTENSION: Final = 1 << 20
"""What an extended header or a long name may have; a path has 4096 bytes."""
_MOST_ENTRIES: Final = 1_000_000
_OCTAL_SIZE: Final = 8 << 30
"""From here on a size does not fit into its twelve octal digits."""


class LayerKind(Enum):
    FILE = b"0"
    HARD_LINK = b"1"
    SYMLINK = b"2"
    DIRECTORY = b"5"
    OTHER = b"?"
    """Devices and whatever else a reader here has no use for; never written."""


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """One file of a layer. `path` has no slash at its ends; `offset` is where the content lies, in an archive that was read."""

    path: str
    kind: LayerKind = LayerKind.FILE
    size: int = 0
    mode: int = 0o644
    target: str = ""
    modified: int = 0
    user: int = 0
    group: int = 0
    offset: int = 0


def head(entry: LayerEntry, *, at: int = 0, content_on: int = BLOCK) -> bytes:
    """The header of an entry that stands at an offset; the content behind it begins at a multiple of `content_on`."""
    _check(entry)
    name = _bytes(entry.path + ("/" if entry.kind is LayerKind.DIRECTORY else ""))
    link = _bytes(entry.target)
    extension = b""
    if len(name) > 100:
        extension += _record(b"path", name)
    if len(link) > 100:
        extension += _record(b"linkpath", link)
    if entry.size >= _OCTAL_SIZE:
        extension += _record(b"size", str(entry.size).encode())
    last = _block(entry, name[:100], link[:100], entry.kind.value, min(entry.size, _OCTAL_SIZE - 1))
    if extension or at % content_on != -BLOCK % content_on:
        extension = _stretched(extension, at, content_on)
        frame = _block(LayerEntry("", modified=entry.modified), b"PaxHeaders", b"", b"x", len(extension))
        return frame + extension + filling(len(extension)) + last
    return last


def filling(size: int) -> bytes:
    """What follows a content of this size, up to the next header."""
    return bytes(-size % BLOCK)


def read_entries(file: BinaryIO) -> Iterator[LayerEntry]:
    """The entries of an archive that is not compressed, in order; the file is left anywhere."""
    size = file.seek(0, 2)
    at, said = 0, _Said()
    for _ in range(_MOST_ENTRIES):
        block = _read(file, at, BLOCK, size)
        if not block.strip(b"\0"):
            return
        _check_sum(block, at)
        kind, length = block[156:157], _number(block[124:136], at)
        body = at + BLOCK
        if kind in b"xgLK" and kind:
            if length > _LONGEST_EXTENSION:
                raise FormatError(f"the layer has an extended header of {length} bytes at byte {at}")
            said.hear(kind, _read(file, body, length, size))
        else:
            length = said.size if said.size is not None else length
            entry = _entry(block, said, length, body, at)
            length = length if entry.kind in (LayerKind.FILE, LayerKind.OTHER) else 0
            if body + length > size:
                raise FormatError(f"the layer ends in the middle of {entry.path!r}")
            yield entry
            said = _Said(said.general)
        at = body + length + len(filling(length))
        if at + BLOCK > size:
            raise FormatError("the layer has no end: it is cut short")
    raise FormatError(f"the layer has more than {_MOST_ENTRIES} entries")


_TELLING: Final = frozenset({"path", "linkpath", "size", "GNU.sparse.major", "GNU.sparse.map"})
"""What is heard of extended headers; there may be any number of other keys."""


class _Said:
    """What extended headers said of the entry that follows."""

    def __init__(self, general: dict[str, str] | None = None) -> None:
        self.general = general or {}
        self.values: dict[str, str] = {}

    def hear(self, kind: bytes, content: bytes) -> None:
        if kind in b"LK":
            text = _text(content.rstrip(b"\0"))
            self.values["path" if kind == b"L" else "linkpath"] = text
            return
        told = {key: value for key, value in _records(content) if key in _TELLING}
        (self.values if kind == b"x" else self.general).update(told)

    def get(self, key: str) -> str | None:
        return self.values.get(key, self.general.get(key))

    @property
    def size(self) -> int | None:
        said = self.get("size")
        if said is None:
            return None
        if not (said.isascii() and said.isdigit() and len(said) < 20):
            raise FormatError(f"the layer has a size of {said!r} in an extended header")
        return int(said)


def _entry(block: bytes, said: _Said, size: int, offset: int, at: int) -> LayerEntry:
    if said.get("GNU.sparse.major") or said.get("GNU.sparse.map") or block[156:157] == b"S":
        raise UnsupportedFormat("the layer has a file with holes, which is not contiguous")
    name = _cut(block[0:100])
    if block[257:263] == b"ustar\0" and (prefix := _cut(block[345:500])):
        name = prefix + b"/" + name
    path = said.get("path") or _text(name)
    flag = block[156:157]
    kinds = {b"\0": LayerKind.FILE, b"7": LayerKind.FILE}
    kind = kinds.get(flag) or (LayerKind(flag) if flag in b"0125" else LayerKind.OTHER)
    if kind is LayerKind.FILE and path.endswith("/"):
        kind = LayerKind.DIRECTORY  # the oldest notation of one
    return LayerEntry(
        path=path.removeprefix("./").strip("/"),
        kind=kind,
        size=size if kind is LayerKind.FILE else 0,
        mode=_number(block[100:108], at) & 0o7777,
        target=(said.get("linkpath") or _text(_cut(block[157:257]))) if flag in b"12" else "",
        modified=_number(block[136:148], at),
        user=_number(block[108:116], at),
        group=_number(block[116:124], at),
        offset=offset,
    )


def _check(entry: LayerEntry) -> None:
    parts = entry.path.split("/")
    if not entry.path or "\0" in entry.path + entry.target or any(part in ("", ".", "..") for part in parts):
        raise FormatError(f"{entry.path!r} cannot be the path of a file in a layer")
    if entry.kind is LayerKind.OTHER:
        raise UnsupportedFormat(
            f"{entry.path} is neither a file, a folder nor a link; a layer here has no other"
        )
    if (entry.kind in (LayerKind.SYMLINK, LayerKind.HARD_LINK)) != bool(entry.target):
        raise FormatError(f"{entry.path}: a link has a target, and nothing else has one")
    if entry.size and entry.kind is not LayerKind.FILE:
        raise FormatError(f"{entry.path}: only files have a content")


def _block(entry: LayerEntry, name: bytes, link: bytes, kind: bytes, size: int) -> bytes:
    fields = (
        name.ljust(100, b"\0"),
        b"%07o\0" % entry.mode,
        b"%07o\0" % entry.user,
        b"%07o\0" % entry.group,
        b"%011o\0" % size,
        b"%011o\0" % entry.modified,
        b" " * 8,
        kind,
        link.ljust(100, b"\0"),
        b"ustar\x0000",
    )
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def _record(key: bytes, value: bytes) -> bytes:
    """`LENGTH KEY=VALUE\\n`, where the length counts its own digits."""
    rest = len(key) + len(value) + 3
    length = rest + len(str(rest))
    length = rest + len(str(length))
    return b"%d %s=%s\n" % (length, key, value)


def _stretched(extension: bytes, at: int, content_on: int) -> bytes:
    """As it is, where that brings the content to where it belongs; else with a comment of the length that is missing."""

    def fits(blocks: int) -> bool:
        return (at + (blocks + 2) * BLOCK) % content_on == 0  # the frame before it, the header behind it

    needed = -(-len(extension) // BLOCK)
    if extension and fits(needed):
        return extension
    room = next(filter(fits, count(needed + 1))) * BLOCK - len(extension)
    return _record(b"comment", b"." * (room - len(b" comment=\n") - len(str(room)))) + extension


def _records(content: bytes) -> Iterator[tuple[str, str]]:
    content, at = content.rstrip(b"\0"), 0
    while at < len(content):
        digits, blank, _ = content[at : at + 8].partition(b" ")
        length = int(digits) if blank and digits.isdigit() else 0
        record = content[at + len(digits) + 1 : at + length]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n") or at + length > len(content):
            raise FormatError("the layer has an extended header that cannot be read")
        yield _text(key), _text(value[:-1])
        at += length


def _read(file: BinaryIO, at: int, length: int, size: int) -> bytes:
    if at + length > size:
        raise FormatError("the layer has no end: it is cut short")
    file.seek(at)
    content = file.read(length)
    if len(content) != length:
        raise FormatError("the layer became shorter while it was read")
    return content


def _check_sum(block: bytes, at: int) -> None:
    said = _number(block[148:156], at)
    if said != sum(block[:148]) + sum(block[156:]) + 8 * 32:
        raise FormatError(f"byte {at} of the layer is no header of a tar archive; is it compressed?")


def _number(field: bytes, at: int) -> int:
    if field[:1] == b"\x80":  # GNU's notation of what octal digits cannot hold
        return int.from_bytes(field[1:])
    digits = field.strip(b" \0")
    if digits and not (digits.isdigit() and not set(digits) & set(b"89")):
        raise FormatError(f"byte {at} of the layer is no header of a tar archive; is it compressed?")
    return int(digits or b"0", 8)


def _cut(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    """The other way: names of files need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape")
