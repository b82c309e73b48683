"""The kernel of a base as a boot loader takes it.

That of aarch64 may be packed with gzip, which neither older iPXE nor some firmware unpacks: then it is unpacked here, once, and
kept. All others are served straight out of the ISO image.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ingot.images.ramdisk.base import Base
from ingot.images.ramdisk.errors import BaseError
from ingot.images.ramdisk.kept import keep
from ingot.images.region import Region
from ingot.images.server.pieces import Image

_GZIP: Final = b"\x1f\x8b\x08"
_CHUNK: Final = 1 << 20
_LARGEST: Final = 512 << 20


def kernel_of(base: Base, folder: Path) -> Image:
    """What is to be served. Blocks for as long as unpacking takes. Raises `BaseError`."""
    served = base.kernel_image()
    try:
        with base.kernel.open() as file:
            if base.architecture != "aarch64" or file.read(len(_GZIP)) != _GZIP:
                return served
        path = folder / f"{base.sha256}.vmlinuz"
        keep(path, _unpacked(base.kernel))
        return Image((Region.whole(path),), f"{served.etag}-unpacked", base.modified)
    except OSError as error:
        raise BaseError(f"the kernel of {base.version} cannot be unpacked: {error.strerror}") from error


def _unpacked(kernel: Region) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    size = 0
    with kernel.open() as file:
        while not unpacker.eof:
            given = unpacker.unconsumed_tail or file.read(_CHUNK)
            try:
                chunk = unpacker.decompress(given, _CHUNK)
            except zlib.error as error:
                raise BaseError(f"the kernel in {kernel.path} is damaged: {error}") from error
            size += len(chunk)
            if not given or size > _LARGEST:
                raise BaseError(f"the kernel in {kernel.path} is cut short, or no kernel: {size} bytes of it")
            yield chunk
