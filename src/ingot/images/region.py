"""Where bytes of an image lie: a whole file, a file inside an ISO image, an ISO image inside a layer of a container image.

A region is only a name for them: it holds nothing open and reads nothing until it is asked to. `open` gives a view that sees
these bytes and no others; it reads at its own position, so any number of views of one file go on side by side.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Region:
    """`length` bytes of the file `path`, from `offset` on."""

    path: Path
    offset: int
    length: int

    def __post_init__(self) -> None:
        if self.offset < 0 or self.length < 0:
            raise ValueError(f"{self.path}: no file has {self.length} bytes at {self.offset}")

    @classmethod
    def whole(cls, path: Path) -> Self:
        """All of a file, as long as it is now."""
        with path.open("rb") as file:
            return cls(path, 0, file.seek(0, os.SEEK_END))  # also right for a block device

    def part(self, offset: int, length: int) -> Region:
        """Bytes of this region; `offset` counts from its beginning."""
        if offset < 0 or length < 0 or offset + length > self.length:
            raise ValueError(
                f"{self.path}: {length} bytes at {offset} are not all within a region of {self.length}"
            )
        return Region(self.path, self.offset + offset, length)

    def open(self) -> BinaryIO:
        """A seekable view of just these bytes, to read. A file that is shorter by now ends early."""
        return io.BufferedReader(_View(self))


class _View(io.RawIOBase):
    def __init__(self, region: Region) -> None:
        self._handle = os.open(region.path, os.O_RDONLY | os.O_CLOEXEC)
        self._region = region
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._region.length}[whence]
        if start + offset < 0:
            raise ValueError(f"{self._region.path}: no position is before the beginning")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer)[: max(0, self._region.length - self._position)]
        read = os.preadv(self._handle, [room], self._region.offset + self._position) if room else 0
        self._position += read
        return read

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()
