"""A published CoreOS live image as the base of ramdisks: what is in it, and where.

Kernel, initial RAM disk and root file system are regions of the ISO image itself; nothing is unpacked. What the image is not fit
for is said here, before a host is told to boot it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from ingot.formats import FormatError
from ingot.formats.coreos import ROOTFS, LiveIso
from ingot.images.ramdisk.errors import BaseError
from ingot.images.region import Region
from ingot.images.server.pieces import Image, entity_tag

_FOLDER: Final = "IMAGES/PXEBOOT"
_KERNELS: Final = (f"{_FOLDER}/VMLINUZ", f"{_FOLDER}/KERNEL.IMG")
_INITRAMFS: Final = f"{_FOLDER}/INITRD.IMG"
_NOT_IN_URLS: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """One live image. `sha256` is that of the whole file, and was checked by whoever made this."""

    architecture: str
    version: str
    """Its volume ID: which system, and which build of it."""
    sha256: str
    iso: Region
    kernel: Region
    initramfs: Region
    rootfs: Region
    early_network: bool
    """Its initial RAM disk takes NetworkManager's keyfiles, so that the network is there before the root file system is."""
    modified: datetime
    """When its file was written: as long as it is the same, so is every image made of it."""

    @classmethod
    def read(cls, iso: Region, *, architecture: str, sha256: str) -> Self:
        """Reads a few sectors. Raises `BaseError`."""
        try:
            with iso.open() as file:
                live = LiveIso(file)

                def place(*paths: str) -> Region:
                    found = next((path for path in paths if path in live.iso), None)
                    if found is None:
                        raise BaseError(
                            f"{iso.path} has no {paths[0].lower()}: it is no live image, from which a server can be booted"
                        )
                    entry = live.iso.entry(found)
                    return iso.part(entry.offset, entry.size)

                return cls(
                    architecture=architecture,
                    version=_NOT_IN_URLS.sub("-", live.iso.label.strip()) or "coreos",
                    sha256=sha256,
                    iso=iso,
                    kernel=place(*_KERNELS),
                    initramfs=place(_INITRAMFS),
                    rootfs=place(ROOTFS),
                    early_network=live.features.live_initrd_network,
                    modified=datetime.fromtimestamp(int(iso.path.stat().st_mtime), UTC),
                )
        except FormatError as error:
            raise BaseError(
                f"{iso.path}, for {architecture}, is not a live image of CoreOS: {error}"
            ) from error
        except OSError as error:
            raise BaseError(f"{iso.path}, for {architecture}, cannot be read: {error.strerror}") from error

    def is_there(self) -> bool:
        """Whether its file still is, by a look from outside."""
        try:
            return self.iso.path.stat().st_size >= self.iso.offset + self.iso.length
        except OSError:
            return False

    def kernel_image(self) -> Image:
        """To be served as it is."""
        return self._whole(self.kernel)

    def rootfs_image(self) -> Image:
        return self._whole(self.rootfs)

    def _whole(self, piece: Region) -> Image:
        return Image((piece,), entity_tag(self.iso, self.sha256, (piece,)), self.modified)
