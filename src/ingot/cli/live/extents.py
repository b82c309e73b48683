"""Where the bytes of a file lie on its device, as the kernel's FIEMAP tells."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_ASK: Final = 0xC020660B  # FS_IOC_FIEMAP
_HEAD: Final = struct.Struct("=QQIIII")
_EXTENT: Final = struct.Struct("=QQQQQIIII")
_AT_ONCE: Final = 32
_SYNC: Final = 1
_LAST: Final = 1


@dataclass(frozen=True, slots=True)
class Extent:
    """A stretch of a file, in bytes: where it is in the file, where on the device."""

    logical: int
    physical: int
    length: int


def extents_of(path: str) -> Iterator[Extent]:
    """The stretches of a file in order; an `OSError` where the file system cannot tell."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found, last = _ask(descriptor, 0)
        while found:
            yield from found
            if last:
                return
            found, last = _ask(descriptor, found[-1].logical + found[-1].length)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from error
    finally:
        os.close(descriptor)


def _ask(descriptor: int, at: int) -> tuple[list[Extent], bool]:
    """The next few from this byte on, and whether the last one is among them."""
    head = _HEAD.pack(at, (1 << 64) - 1 - at, _SYNC, 0, _AT_ONCE, 0)
    answer = bytearray(head + bytes(_EXTENT.size * _AT_ONCE))
    fcntl.ioctl(descriptor, _ASK, answer)
    count = _HEAD.unpack_from(answer)[3]
    raw = [_EXTENT.unpack_from(answer, _HEAD.size + number * _EXTENT.size) for number in range(count)]
    return [Extent(*extent[:3]) for extent in raw], any(extent[5] & _LAST for extent in raw)
