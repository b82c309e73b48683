"""Writing a small ISO 9660 image, with Joliet names beside the plain ones (8.3, as boot tools look for them).

`build_iso` is a pure function: the same files, label and time give the same bytes. Two directory trees, one per naming,
point at the same file contents. Meant for boot media and config drives of a few megabytes; it makes the image in memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from ingot.formats.errors import UnsupportedFormat
from ingot.formats.iso9660 import layout

_MAX_FILE: Final = (1 << 32) - layout.SECTOR
_RECORD_HEAD: Final = 33
_LONGEST_JOLIET: Final = 64


@dataclass(slots=True)
class _Node:
    """A file or directory of the image; a directory has one place per tree, a file one place in all."""

    name: str
    plain: bytes = b"\0"
    parent: _Node | None = None
    children: dict[str, _Node] = field(default_factory=dict)
    content: bytes | None = None
    place: int = 0
    """Sector of the file's content."""

    @property
    def directory(self) -> bool:
        return self.content is None


def build_iso(files: Mapping[str, bytes], *, label: str, made_at: datetime) -> bytes:
    """An ISO 9660 image with these files; the keys are absolute paths."""
    root = _tree(files)
    trees = (_Tree(root, joliet=False), _Tree(root, joliet=True))
    at = layout.FIRST_DESCRIPTOR + 3
    for tree in trees:
        at = tree.place_path_tables(at)
    for tree in trees:
        at = tree.place_directories(at)
    contents: list[bytes] = []
    for node in _walk(root):
        if node.content is not None:
            node.place = at
            contents.append(_padded(node.content))
            at += len(contents[-1]) // layout.SECTOR
    head = [bytes(layout.FIRST_DESCRIPTOR * layout.SECTOR)]
    head += [tree.descriptor(label, at, made_at) for tree in trees]
    head.append((bytes([layout.TERMINATOR]) + layout.MAGIC + b"\1").ljust(layout.SECTOR, b"\0"))
    head += [tree.path_tables() for tree in trees]
    head += [tree.directories(made_at) for tree in trees]
    return b"".join(head + contents)


class _Tree:
    """One of the two views of the files: the plain one or Joliet's."""

    def __init__(self, root: _Node, *, joliet: bool) -> None:
        self._joliet = joliet
        self._folders = self._breadth_first(root)
        self._tables_at = 0
        self._place: dict[int, int] = {}

    def place_path_tables(self, at: int) -> int:
        self._tables_at = at
        return at + 2 * _sectors(len(self._path_table("<")))

    def place_directories(self, at: int) -> int:
        for folder in self._folders:
            self._place[id(folder)] = at
            at += _sectors(self._size(folder))
        return at

    def path_tables(self) -> bytes:
        return _padded(self._path_table("<")) + _padded(self._path_table(">"))

    def directories(self, made_at: datetime) -> bytes:
        return b"".join(_padded(self._directory(folder, made_at)) for folder in self._folders)

    def descriptor(self, label: str, sectors: int, made_at: datetime) -> bytes:
        table = len(self._path_table("<"))
        root = self._folders[0]
        second_table = self._tables_at + _sectors(table)
        head = bytes([layout.SUPPLEMENTARY if self._joliet else layout.PRIMARY]) + layout.MAGIC + b"\1\0"
        body = head + self._text("", 32) + self._text(label, 32) + bytes(8) + _both(sectors)
        body += (layout.JOLIET_LEVEL_3 if self._joliet else b"").ljust(32, b"\0")
        body += _both16(1) + _both16(1) + _both16(layout.SECTOR) + _both(table)
        body += struct.pack("<II", self._tables_at, 0) + struct.pack(">II", second_table, 0)
        body += self._record(b"\0", self._place[id(root)], self._size(root), made_at, directory=True)
        body += self._text("", 128) * 4 + self._text("", 37) * 3
        stamp = made_at.astimezone(UTC).strftime("%Y%m%d%H%M%S00").encode() + b"\0"
        never = b"0" * 16 + b"\0"
        body += stamp + stamp + never + stamp + b"\1\0"
        return body.ljust(layout.SECTOR, b"\0")

    def _breadth_first(self, root: _Node) -> list[_Node]:
        order, level = [root], [root]
        while level:
            level = [child for folder in level for child in self._sorted(folder) if child.directory]
            order += level
        return order

    def _sorted(self, folder: _Node) -> list[_Node]:
        return sorted(folder.children.values(), key=self._identifier)

    def _identifier(self, node: _Node) -> bytes:
        if node.parent is None:
            return b"\0"
        if self._joliet:
            return node.name.encode("utf-16-be")
        return node.plain

    def _path_table(self, order: str) -> bytes:
        numbers = {id(folder): number for number, folder in enumerate(self._folders, 1)}
        table = b""
        for folder in self._folders:
            identifier = self._identifier(folder)
            parent = numbers[id(folder.parent or folder)]
            table += struct.pack(f"{order}BBIH", len(identifier), 0, self._place.get(id(folder), 0), parent)
            table += identifier + bytes(len(identifier) % 2)
        return table

    def _size(self, folder: _Node) -> int:
        """Bytes of a directory, whole sectors: known from the names alone, before anything has a place."""
        at = 0
        for identifier in (b"\0", b"\1", *(self._identifier(child) for child in folder.children.values())):
            at = _fitted(at, _RECORD_HEAD + len(identifier) + 1 - len(identifier) % 2)
        return _sectors(at) * layout.SECTOR

    def _directory(self, folder: _Node, made_at: datetime) -> bytes:
        entries = [(b"\0", folder), (b"\1", folder.parent or folder)]
        entries += [(self._identifier(child), child) for child in self._sorted(folder)]
        data = b""
        for identifier, node in entries:
            if node.content is None:
                place, size = self._place[id(node)], self._size(node)
            else:
                place, size = node.place, len(node.content)
            record = self._record(identifier, place, size, made_at, directory=node.directory)
            data = data.ljust(_fitted(len(data), len(record)) - len(record), b"\0") + record
        return data

    def _record(
        self, identifier: bytes, place: int, size: int, made_at: datetime, *, directory: bool
    ) -> bytes:
        at = made_at.astimezone(UTC)
        when = struct.pack("7B", at.year - 1900, at.month, at.day, at.hour, at.minute, at.second, 0)
        flags = layout.DIRECTORY if directory else 0
        body = b"\0" + _both(place) + _both(size) + when + bytes([flags, 0, 0]) + _both16(1)
        body += bytes([len(identifier)]) + identifier + bytes(1 - len(identifier) % 2)
        return bytes([len(body) + 1]) + body

    def _text(self, text: str, length: int) -> bytes:
        if self._joliet:
            encoded = text.encode("utf-16-be")[: length // 2 * 2]
            blanks = (length - len(encoded)) // 2
            return (encoded + " ".encode("utf-16-be") * blanks).ljust(length, b"\0")
        return text.encode("ascii", "replace")[:length].ljust(length)


def _fitted(at: int, length: int) -> int:
    """Where a record of this length ends when it is put at or after `at`: records do not cross sectors."""
    if at % layout.SECTOR + length > layout.SECTOR:
        at = _sectors(at) * layout.SECTOR
    return at + length


def _tree(files: Mapping[str, bytes]) -> _Node:
    root = _Node("")
    for path in sorted(files):
        if len(files[path]) > _MAX_FILE:
            raise UnsupportedFormat(
                f"{path} has {len(files[path])} bytes; a file of an ISO image has less than 4 GiB"
            )
        *folders, name = [part for part in path.split("/") if part]
        here = root
        for folder in folders:
            here = here.children.get(folder) or _add(here, folder, None)
            if not here.directory:
                raise UnsupportedFormat(f"{folder!r} is both a file and a folder of the ISO image")
        _add(here, name, files[path])
    return root


def _add(parent: _Node, name: str, content: bytes | None) -> _Node:
    if len(name) > _LONGEST_JOLIET or name in (".", ".."):
        raise UnsupportedFormat(
            f"{name!r} is no name for an ISO image: at most {_LONGEST_JOLIET} characters, no dots alone"
        )
    if name in parent.children:
        raise UnsupportedFormat(f"{name!r} is both a file and a folder of the ISO image")
    node = _Node(name, parent=parent, content=content)
    taken = {child.plain for child in parent.children.values()}
    node.plain = _plain(name, taken, directory=content is None)
    parent.children[name] = node
    return node


def _plain(name: str, taken: set[bytes], *, directory: bool) -> bytes:
    """An upper-case name of eight letters, digits and underscores, with three after the dot, unique in its folder."""
    stem, _, suffix = (name, "", "") if directory else name.rpartition(".")
    if not directory and not stem:
        stem, suffix = name, ""
    stem, suffix = (re.sub(r"[^A-Z0-9_]", "_", part.upper()) for part in (stem, suffix[:3]))
    for number in range(1000):
        distinct = stem[:8] if number == 0 else f"{stem[:5]}{number:03}"
        plain = (distinct if directory else f"{distinct}.{suffix};1").encode()
        if plain not in taken:
            return plain
    raise UnsupportedFormat(f"too many files with names like {name!r} in one folder of the ISO image")


def _walk(node: _Node) -> Iterator[_Node]:
    for name in sorted(node.children):
        child = node.children[name]
        yield child
        yield from _walk(child)


def _both(number: int) -> bytes:
    return struct.pack("<I", number) + struct.pack(">I", number)


def _both16(number: int) -> bytes:
    return struct.pack("<H", number) + struct.pack(">H", number)


def _sectors(size: int) -> int:
    return -(-size // layout.SECTOR)


def _padded(data: bytes) -> bytes:
    return data.ljust(_sectors(len(data)) * layout.SECTOR, b"\0")
