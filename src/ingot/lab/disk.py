"""The disk of a server: a sparse file, with the config drive in a file beside it.

The functions block and are meant for `in_thread`, which also stops them: a server that is switched off in the middle of a
write leaves a disk that was written to in part, and nothing goes on writing behind its back.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

from ingot.formats.qcow2 import MAGIC, Qcow2
from ingot.trust import write_private

T = TypeVar("T")
Check = Callable[[], None]

_CHUNK: Final = 1 << 20
_WIPED: Final = 1 << 20
"""How much erasing metadata clears at the start and at the end: partition tables, boot code and their copies."""
_SIGNATURE: Final = (510, b"\x55\xaa")


class Stopped(Exception):
    """The work was told to stop."""


async def in_thread(work: Callable[[Check], T]) -> T:
    """Run blocking work that calls its argument now and then; when cancelled, stop it and wait until it has stopped."""
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise Stopped

    task = asyncio.ensure_future(asyncio.to_thread(work, check))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        with contextlib.suppress(Exception):  # whoever cancelled wants the end, not the outcome
            await task
        raise


class Disk:
    def __init__(self, folder: Path, size: int) -> None:
        self.size: Final = size
        self._file = folder / "disk.img"
        self._config_drive = folder / "config-drive.iso"

    @property
    def config_drive(self) -> bytes | None:
        return self._config_drive.read_bytes() if self._config_drive.exists() else None

    def write_image(self, image: Path, format_name: str, check: Check) -> int:
        """Put a raw or qcow2 image on the disk; the number of bytes it covers."""
        with image.open("rb") as source:
            if format_name == "qcow2":
                qcow2 = Qcow2(source)
                self._write(qcow2.chunks(), qcow2.size, check)
                return qcow2.size
            size = source.seek(0, os.SEEK_END)
            source.seek(0)
            pieces = iter(lambda: source.read(_CHUNK), b"")
            self._write(_placed(pieces), size, check)
            return size

    def write_config_drive(self, content: bytes | None) -> None:
        if content is None:
            self._config_drive.unlink(missing_ok=True)
        else:
            write_private(self._config_drive, content)

    def wipe_metadata(self) -> None:
        """Clear the start and the end of the disk, and the config drive."""
        self.write_config_drive(None)
        if self._file.exists():
            with self._file.open("r+b") as disk:
                for at in (0, self.size - _WIPED):
                    disk.seek(at)
                    disk.write(bytes(_WIPED))
                os.fsync(disk.fileno())

    def wipe(self) -> None:
        """Discard everything."""
        self.write_config_drive(None)
        self._file.unlink(missing_ok=True)

    def bootable(self) -> bool:
        at, signature = _SIGNATURE
        if not self._file.exists():
            return False
        with self._file.open("rb") as disk:
            disk.seek(at)
            return disk.read(len(signature)) == signature

    def sha256(self, size: int, check: Check) -> str:
        """The digest of the first `size` bytes, read from the disk now."""
        digest = hashlib.sha256()
        with self._file.open("rb") as disk:
            left = size
            while left > 0 and (piece := disk.read(min(_CHUNK, left))):
                check()
                digest.update(piece)
                left -= len(piece)
        return digest.hexdigest()

    def _write(self, pieces: Iterable[tuple[int, bytes]], size: int, check: Check) -> None:
        if size > self.size:
            raise ValueError(f"the image has {size} bytes, the disk only {self.size}")
        # The whole disk is discarded first, so it reads as zeros and runs of zeros need not be written.
        with self._file.open("wb") as disk:
            disk.truncate(self.size)
            for at, piece in pieces:
                check()
                if piece.count(0) != len(piece):
                    disk.seek(at)
                    disk.write(piece)
            disk.flush()
            os.fsync(disk.fileno())


def _placed(pieces: Iterable[bytes]) -> Iterable[tuple[int, bytes]]:
    at = 0
    for piece in pieces:
        yield at, piece
        at += len(piece)


def image_format(image: Path) -> str:
    """What the first bytes say: qcow2 or raw."""
    with image.open("rb") as file:
        return "qcow2" if file.read(len(MAGIC)) == MAGIC else "raw"
