"""Where a CoreOS live image may be changed: the Ignition area and the kernel argument areas, in every generation of them.

Owns finding them. A newer image says it in JSON files under /coreos; an older one in headers at the end of the system area;
the oldest has its Ignition area in a file of a known name. Each area lies within the image, none overlaps another: a hostile
image ends in a `FormatError` before anything is changed. Leaves what is in the areas to `live`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

import msgspec

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.iso9660 import Entry, Iso, layout

IGNITION_INFO: Final = "COREOS/IGNINFO.JSO"
ARGUMENTS_INFO: Final = "COREOS/KARGS.JSO"
_DESCRIBING: Final = (IGNITION_INFO, ARGUMENTS_INFO, "COREOS/FEATURES.JSO", "COREOS/MINISO.DAT")
_IGNITION_FILE: Final = "IMAGES/IGNITION.IMG"
_UNRECOGNIZED: Final = "Unrecognized CoreOS ISO image."

_SYSTEM_AREA: Final = 32 << 10
_IGNITION_HEADER: Final = struct.Struct("<8sQQ")
_ARGUMENTS_HEADER: Final = struct.Struct("<8sQQ6Q")
_IGNITION_HEADER_AT: Final = _SYSTEM_AREA - _IGNITION_HEADER.size
_ARGUMENTS_HEADER_AT: Final = _IGNITION_HEADER_AT - _ARGUMENTS_HEADER.size

_LARGEST_ARGUMENTS: Final = 2048
_LARGEST_IGNITION: Final = 64 << 20
_LARGEST_INFO: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Area:
    """A stretch of the image."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class ArgumentArea(Area):
    """A place that holds the kernel's arguments; None where the image does not say how the rest of it is filled."""

    pad: str | None = None
    end_mark: str | None = None

    def text(self, content: bytes) -> str:
        """The arguments in these bytes, without what fills the area up."""
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise FormatError(
                f"the kernel arguments at byte {self.offset} of the ISO image are not UTF-8"
            ) from error
        return text.rstrip(self.pad or "#").rstrip(self.end_mark or "\n").strip()

    def content(self, arguments: str) -> bytes:
        """The bytes of this area with these arguments, which fit."""
        text = arguments.encode() + (self.end_mark or "\n").encode()
        return text.ljust(self.length, (self.pad or "#").encode())


@dataclass(frozen=True, slots=True)
class ArgumentAreas:
    """All places of the kernel's arguments, which hold the same, and what they hold in an image as it is published."""

    length: int
    default: str
    areas: tuple[ArgumentArea, ...]


class _IgnitionInfo(msgspec.Struct):
    file: str
    offset: int | None = None
    length: int | None = None


_Info = TypeVar("_Info")


class ArgumentFile(msgspec.Struct, omit_defaults=True):
    """One file with an argument area, as kargs.json names it."""

    path: str
    offset: int
    pad: str | None = None
    end: str | None = None


class ArgumentsInfo(msgspec.Struct):
    """kargs.json."""

    default: str
    files: list[ArgumentFile]
    size: int


def find_ignition_area(iso: Iso) -> Area:
    """The area for the archive with Ignition config and network settings; `UnsupportedFormat` when the image has none."""
    if IGNITION_INFO in iso:
        info = _decoded(iso, IGNITION_INFO, _IgnitionInfo)
    elif _IGNITION_FILE in iso:
        info = _IgnitionInfo(_IGNITION_FILE)
    elif (area := _ignition_header(iso)) is not None:
        return _bounded(iso, area, "the Ignition area")
    else:
        raise UnsupportedFormat(_UNRECOGNIZED)
    file = _file(iso, info.file)
    offset = info.offset or 0
    length = file.size - offset if info.length is None else info.length
    _within(file, offset, length, "the Ignition area")
    return _bounded(iso, Area(file.offset + offset, length), "the Ignition area")


def find_argument_areas(iso: Iso) -> ArgumentAreas | None:
    """The areas for kernel arguments; None when the image is from before they were invented."""
    found = _argument_files(iso) if ARGUMENTS_INFO in iso else _argument_header(iso)
    if found is None:
        return None
    if not found.areas:
        raise FormatError("No karg embed areas found; corrupted CoreOS ISO image.")
    for area in found.areas:
        _bounded(iso, area, "a kernel argument area")
    return found


def check_apart(iso: Iso, ignition: Area, arguments: ArgumentAreas | None) -> None:
    """No area may overlap another, nor what says where they are: changing one would damage it."""
    areas = [ignition, *(arguments.areas if arguments else ())]
    said = [iso.entry(path) for path in _DESCRIBING if path in iso]
    areas += [Area(entry.offset, entry.size) for entry in said if entry.size]
    areas.append(Area(0, layout.SECTOR * (layout.FIRST_DESCRIPTOR + len(iso.descriptors) + 1)))
    for first, second in pairwise(sorted(areas, key=lambda area: area.offset)):
        if second.offset < first.end:
            raise FormatError(
                f"the areas at bytes {first.offset} and {second.offset} of the ISO image overlap: it is damaged, or made to harm"
            )


def arguments_info(iso: Iso) -> ArgumentsInfo:
    """kargs.json as it stands in the image."""
    return _decoded(iso, ARGUMENTS_INFO, ArgumentsInfo)


def _argument_files(iso: Iso) -> ArgumentAreas:
    info = arguments_info(iso)
    _check_size(info.size, info.default)
    areas: list[ArgumentArea] = []
    for place in info.files:
        for what in (place.pad, place.end):
            if what is not None and (len(what) != 1 or not what.isascii()):
                raise FormatError(
                    f"{ARGUMENTS_INFO} fills an area of {place.path} with {what!r}, not one character"
                )
        file = _file(iso, place.path)
        _within(file, place.offset, info.size, "a kernel argument area")
        areas.append(ArgumentArea(file.offset + place.offset, info.size, place.pad, place.end))
    return ArgumentAreas(info.size, info.default, tuple(sorted(areas, key=lambda area: area.offset)))


def _argument_header(iso: Iso) -> ArgumentAreas | None:
    head = iso.bytes_at(_ARGUMENTS_HEADER_AT, _ARGUMENTS_HEADER.size)
    magic, length, default_at, *offsets = _ARGUMENTS_HEADER.unpack(head)
    if magic != b"coreKarg":
        return None
    _check_size(length, "")
    default = ArgumentArea(default_at, length)
    areas = [ArgumentArea(offset, length) for offset in offsets[: (*offsets, 0).index(0)]]
    return ArgumentAreas(length, default.text(iso.bytes_at(default_at, length)), tuple(areas))


def _ignition_header(iso: Iso) -> Area | None:
    head = iso.bytes_at(_IGNITION_HEADER_AT, _IGNITION_HEADER.size)
    magic, offset, length = _IGNITION_HEADER.unpack(head)
    return Area(offset, length) if magic == b"coreiso+" else None


def _check_size(size: int, default: str) -> None:
    if not 0 < size <= _LARGEST_ARGUMENTS:
        raise FormatError(
            f"the kernel argument areas of the ISO image have {size} bytes; they have 1 to {_LARGEST_ARGUMENTS}"
        )
    if len(default.encode()) > size:
        raise FormatError(
            f"the default kernel arguments of the ISO image have {len(default.encode())} bytes, more than their areas ({size})"
        )


def _within(file: Entry, offset: int, length: int, what: str) -> None:
    if offset < 0 or length < 0 or offset + length > file.size:
        raise FormatError(
            f"{what} is said to be {length} bytes at byte {offset} of {file.path}, which has {file.size} bytes"
        )


def _bounded(iso: Iso, area: Area, what: str) -> Area:
    if area.offset < _SYSTEM_AREA or area.end > iso.size or not 0 < area.length <= _LARGEST_IGNITION:
        raise FormatError(
            f"{what} is said to be {area.length} bytes at byte {area.offset} of an ISO image of {iso.size} bytes"
        )
    return area


def _file(iso: Iso, path: str) -> Entry:
    # The JSON files name paths as Rock Ridge has them; the plain names are the same in upper case.
    try:
        entry = iso.entry(path.upper())
    except KeyError:
        raise UnsupportedFormat(f"{_UNRECOGNIZED} It names a file {path}, which it does not have.") from None
    if entry.directory:
        raise FormatError(f"{path} of the ISO image is a directory; a file with an area is expected")
    return entry


def _decoded(iso: Iso, path: str, kind: type[_Info]) -> _Info:
    try:
        return msgspec.json.decode(iso.read(path, limit=_LARGEST_INFO), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} of the ISO image is not what is expected there: {error}") from error
