"""The disks of a server: each a sparse file, with what was put on it for the operating system in files beside it.

The functions block and are meant for `in_thread`, which also stops them: a server that is switched off in the middle of a
write leaves a disk that was written to in part, and nothing goes on writing behind its back.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, TypeVar

from ingot.formats.qcow2 import MAGIC, Qcow2
from ingot.lab.devices import Device
from ingot.trust import write_private

T = TypeVar("T")
Check = Callable[[], None]

_CHUNK: Final = 1 << 20
_WIPED: Final = 1 << 20
"""How much erasing metadata clears at the start and at the end: partition tables, boot code and their copies."""
_SIGNATURE: Final = (510, b"\x55\xaa")
_IDENTIFIER: Final = 440


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


class Disks:
    """The disks of one server, by the key of their device."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def at(self, device: Device) -> Disk:
        return Disk(self._folder, device.key, device.size)

    def wipe_key(self, key: str) -> None:
        """Discard what is kept for a device that is no more."""
        Disk(self._folder, key, 0).wipe()


class Disk:
    def __init__(self, folder: Path, key: str, size: int) -> None:
        self.size: Final = size
        self._file = folder / f"disk-{key}.img"
        self._config_drive = folder / f"config-drive-{key}.iso"
        self._ignition = folder / f"ignition-{key}.json"

    @property
    def config_drive(self) -> bytes | None:
        return self._config_drive.read_bytes() if self._config_drive.exists() else None

    @property
    def ignition(self) -> bytes | None:
        """What an installer left for the first boot instead of a config drive."""
        return self._ignition.read_bytes() if self._ignition.exists() else None

    def writing(self, image: Path, format_name: str) -> Writing:
        """Begin to put a raw or qcow2 image on the disk. What was there is gone from now on."""
        return Writing(self._file, self.size, image, format_name)

    def begin_stream(self) -> BinaryIO:
        """The blank disk, to be written from its start; the caller closes it."""
        self.wipe()
        disk = self._file.open("wb")
        disk.truncate(self.size)
        return disk

    def write_config_drive(self, content: bytes | None) -> None:
        _kept(self._config_drive, content)

    def write_ignition(self, content: bytes | None) -> None:
        _kept(self._ignition, content)

    def wipe_metadata(self) -> None:
        """Clear the start and the end of the disk, and what is there for the operating system."""
        self.write_config_drive(None)
        self.write_ignition(None)
        if self._file.exists():
            with self._file.open("r+b") as disk:
                for at in (0, self.size - _WIPED):
                    disk.seek(at)
                    disk.write(bytes(_WIPED))
                os.fsync(disk.fileno())

    def wipe(self) -> None:
        """Discard everything."""
        self.write_config_drive(None)
        self.write_ignition(None)
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

    def identifier(self) -> str:
        """The disk's identifier in its first sector, as partition tools show it."""
        if not self._file.exists():
            return "0x00000000"
        with self._file.open("rb") as disk:
            disk.seek(_IDENTIFIER)
            return f"0x{int.from_bytes(disk.read(4), 'little'):08x}"


class Writing:
    """An image on its way to a disk, in as many parts as the caller likes. Use it as a context."""

    def __init__(self, disk: Path, room: int, image: Path, format_name: str) -> None:
        self._source = image.open("rb")
        try:
            if format_name == "qcow2":
                qcow2 = Qcow2(self._source)
                self.size = qcow2.size
                self._pieces: Iterator[tuple[int, bytes]] = iter(qcow2.chunks())
            else:
                self.size = self._source.seek(0, os.SEEK_END)
                self._pieces = _placed(self._source)
            if self.size > room:
                raise ValueError(f"the image has {self.size} bytes, the disk only {room}")
            # The whole disk is discarded first, so it reads as zeros and runs of zeros need not be written.
            self._disk = disk.open("wb")
            self._disk.truncate(room)
        except BaseException:
            self._source.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.close()
        self._disk.close()

    def advance(self, until: int, check: Check) -> None:
        """Write all that lies before this byte of the image."""
        for at, piece in self._pieces:
            check()
            put(self._disk, at, piece)
            if at + len(piece) >= until:
                break
        self._disk.flush()

    def finish(self, check: Check) -> None:
        self.advance(self.size + 1, check)
        os.fsync(self._disk.fileno())


def put(disk: BinaryIO, at: int, piece: bytes) -> None:
    """Write a piece of a blank disk; zeros are there already."""
    if piece.count(0) != len(piece):
        disk.seek(at)
        disk.write(piece)


def _placed(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    source.seek(0)
    at = 0
    while piece := source.read(_CHUNK):
        yield at, piece
        at += len(piece)


def _kept(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink(missing_ok=True)
    else:
        write_private(file, content)


def image_format(image: Path) -> str:
    """What the first bytes say: qcow2 or raw."""
    with image.open("rb") as file:
        return "qcow2" if file.read(len(MAGIC)) == MAGIC else "raw"
