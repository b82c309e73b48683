"""Which files a live ISO image yields: itself, with kernel arguments if need be, and what a machine boots over the network.

Decides, and writes one file at a time; where files go and what makes a release of them is `unpacking`.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from ingot.formats import FormatError
from ingot.formats.coreos import ArgumentChanges, LiveIso, Patch
from ingot.images.region import Region
from ingot.images.release.errors import PayloadError
from ingot.images.release.layout import writing_to
from ingot.images.release.payload import PayloadImage

_PXE: Final = "IMAGES/PXEBOOT"
_PIECE: Final = 16 << 20
_GZIP: Final = b"\x1f\x8b"
_LARGEST_KERNEL: Final = 512 << 20


class Kind(StrEnum):
    """What a file is to Ironic; the ending of its other name there."""

    ISO = "iso"
    KERNEL = "kernel"
    INITRAMFS = "initramfs"
    ROOTFS = "rootfs"


class Parts(StrEnum):
    """Which files are wanted."""

    ALL = "all"
    ISO = "iso"
    PXE = "pxe"
    IMAGE_BUILD = "image-build"

    @property
    def kinds(self) -> frozenset[Kind]:
        return _KINDS[self]


_KINDS: Final = {
    Parts.ALL: frozenset(Kind),
    Parts.ISO: frozenset({Kind.ISO}),
    Parts.PXE: frozenset({Kind.KERNEL, Kind.INITRAMFS, Kind.ROOTFS}),
    Parts.IMAGE_BUILD: frozenset({Kind.ISO, Kind.INITRAMFS}),
}
_NAMES: Final = {
    "vmlinuz": Kind.KERNEL,
    "kernel.img": Kind.KERNEL,
    "initrd.img": Kind.INITRAMFS,
    "rootfs.img": Kind.ROOTFS,
}


@dataclass(frozen=True, slots=True)
class Extract:
    """A file to be made: bytes of the payload, with other bytes laid over them, or taken out of gzip."""

    name: str
    kind: Kind | None
    source: Region
    patches: tuple[Patch, ...] = ()
    unzipped: bool = False
    sha256: str | None = None
    """What it must be, where that is known."""


def extracts_of(image: PayloadImage, parts: Parts, arguments: Sequence[str]) -> list[Extract]:
    """The files that are wanted of an image; kernel arguments are put into the ISO image."""
    try:
        with image.iso.open() as file:
            return list(_extracts(LiveIso(file), image, parts, arguments))
    except FormatError as error:
        raise PayloadError(f"the ISO image for {image.architecture}: {error}") from error


def write_extract(extract: Extract, target: Path, tell: Callable[[int], None]) -> None:
    """Make the file, synced. Where the file system can, it shares blocks with the payload."""
    with writing_to(target), target.open("xb") as file:
        if extract.unzipped:
            for chunk in _unzipped(extract.source):
                file.write(chunk)
                tell(file.tell())
            file.flush()
        else:
            _copy(extract.source, file.fileno(), tell)
            for patch in extract.patches:
                _write(file.fileno(), patch)
        os.fsync(file.fileno())


def _extracts(
    live: LiveIso, image: PayloadImage, parts: Parts, arguments: Sequence[str]
) -> Iterator[Extract]:
    stem = f"coreos-{image.architecture}"
    if Kind.ISO in parts.kinds:
        changed = ArgumentChanges(append=arguments).applied_to(live.arguments) if arguments else None
        patches = tuple(live.arguing(changed)) if changed is not None else ()
        yield Extract(f"{stem}.iso", Kind.ISO, image.iso, patches, sha256=None if patches else image.sha256)
    try:
        entries = [entry for entry in live.iso.children(_PXE) if not entry.directory]
    except KeyError:
        raise FormatError("it has nothing to boot over the network") from None
    # On s390x the kernel is there under two names; the one that all architectures have is Ironic's.
    by_name = {entry.path.rpartition("/")[2].lower(): entry for entry in entries}
    for name, entry in sorted(by_name.items()):
        kind = _NAMES.get(name)
        if name == "kernel.img" and "vmlinuz" in by_name:
            kind = None
        if (kind in parts.kinds) or (kind is None and Kind.KERNEL in parts.kinds):
            region = image.iso.part(entry.offset, entry.size)
            packed = image.architecture == "aarch64" and kind is Kind.KERNEL and _is_gzip(region)
            yield Extract(f"{stem}-{name}", kind, region, unzipped=packed)


def _is_gzip(region: Region) -> bool:
    """Whether all of it is one gzip stream. Some firmware and iPXE cannot boot a kernel that is packed like that."""
    with region.open() as file:
        if file.read(2) != _GZIP:
            return False
    try:
        for _ in _unzipped(region):
            pass
    except FormatError:
        return False
    return True


def _unzipped(region: Region) -> Iterator[bytes]:
    unzip, size = zlib.decompressobj(wbits=31), 0
    with region.open() as file:
        while not unzip.eof and (packed := unzip.unconsumed_tail or file.read(1 << 20)):
            try:
                chunk = unzip.decompress(packed, 1 << 20)
            except zlib.error as error:
                raise FormatError(f"the kernel cannot be unpacked: {error}") from error
            size += len(chunk)
            if size > _LARGEST_KERNEL:
                raise FormatError(f"the kernel unpacks to more than {_LARGEST_KERNEL} bytes")
            yield chunk
        rest = unzip.unused_data + file.read(4096)
    if not unzip.eof or rest.strip(b"\0"):
        raise FormatError("the kernel is packed, but not wholly")


def _copy(source: Region, target: int, tell: Callable[[int], None]) -> None:
    handle, done = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC), 0
    try:
        while done < source.length:
            copied = _copy_piece(handle, target, source.offset + done, min(_PIECE, source.length - done))
            if not copied:
                raise OSError(errno.EIO, "became shorter while it was copied", str(source.path))
            done += copied
            tell(done)
    finally:
        os.close(handle)


def _copy_piece(source: int, target: int, offset: int, length: int) -> int:
    try:
        return os.copy_file_range(source, target, length, offset_src=offset)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        return os.write(target, os.pread(source, min(length, 1 << 20), offset))


def _write(handle: int, patch: Patch) -> None:
    view, at = memoryview(patch.content), patch.offset
    while view:
        written = os.pwrite(handle, view, at)
        view, at = view[written:], at + written
