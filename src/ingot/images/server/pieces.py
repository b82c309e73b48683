"""What an image is made of, without being made: regions of files on disk, and the few bytes that differ, in order.

A host's ISO image is the published one with patches over it, its initial RAM disk the published one with an archive behind it.
Neither is ever written down. An `Image` cannot change, so any number of requests read the same one side by side.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate
from typing import Final

from ingot.formats.coreos import Patch
from ingot.images.region import Region

Piece = Region | bytes

_TAG: Final = re.compile(r"[A-Za-z0-9._-]+")
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+")
_ALIGNED: Final = 4
_WORTH_SHARING: Final = 512
"""Shorter runs of zeros stay with what surrounds them."""


def length_of(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.length


@dataclass(frozen=True, slots=True)
class Image:
    """Everything that a request needs to know. `etag` is what stands between the quotes of a strong entity tag: two images
    with the same one are the same, byte for byte. `modified` is when it came to be what it is, not when it was last built."""

    pieces: tuple[Piece, ...]
    etag: str
    modified: datetime
    media_type: str = "application/octet-stream"
    size: int = field(init=False)
    _ends: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _TAG.fullmatch(self.etag):
            raise ValueError(f"{self.etag!r} cannot be an entity tag: letters, digits, '-', '_' and '.' only")
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise ValueError(f"{self.media_type!r} is no media type, such as application/octet-stream")
        if self.modified.tzinfo is None:
            raise ValueError(f"{self.modified} can be any of 24 moments: give the time zone")
        ends = tuple(accumulate(map(length_of, self.pieces)))
        object.__setattr__(self, "_ends", ends)
        object.__setattr__(self, "size", ends[-1] if ends else 0)
        # HTTP has whole seconds; what is compared with a date from a header must have them too.
        object.__setattr__(self, "modified", self.modified.astimezone(UTC).replace(microsecond=0))

    def part(self, start: int, length: int) -> list[Piece]:
        """What makes up so many bytes of it, from `start` on. They have to be there."""
        if start < 0 or length < 0 or start + length > self.size:
            raise ValueError(f"{length} bytes at {start} are not all within an image of {self.size}")
        made: list[Piece] = []
        number = bisect_right(self._ends, start)
        while length:
            piece = self.pieces[number]
            first = start - self._ends[number] + length_of(piece)
            some = min(length, self._ends[number] - start)
            made.append(piece[first : first + some] if isinstance(piece, bytes) else piece.part(first, some))
            start, length, number = start + some, length - some, number + 1
        return made


def patched(base: Region, patches: Sequence[Patch]) -> tuple[Piece, ...]:
    """The base with the patches over it, which must lie within it and apart from each other."""
    made: list[Piece] = []
    done = 0
    for patch in sorted(patches, key=lambda patch: (patch.offset, len(patch.content))):
        end = patch.offset + len(patch.content)
        if patch.offset < done:
            raise ValueError(f"{base.path}: two patches overlap at {patch.offset}")
        if end > base.length:
            raise ValueError(
                f"{base.path}: a patch ends at {end}, behind the end of the image at {base.length}"
            )
        made += [base.part(done, patch.offset - done), *_sharing_zeros(patch.content)]
        done = end
    return _without_empty([*made, base.part(done, base.length - done)])


def appended(base: Region, archive: bytes) -> tuple[Piece, ...]:
    """The base with an archive behind it. The kernel looks for archives at multiples of four."""
    return _without_empty([base, bytes(-base.length % _ALIGNED), archive])


def entity_tag(base: Region, base_sha256: str, pieces: Iterable[Piece]) -> str:
    """The tag of an image made of bytes and of parts of a base with this hash: other bytes, other places or another base make
    another tag, and nothing else does, not even a restart or a base that was moved."""
    digest = hashlib.sha256(f"{base_sha256}\n".encode())
    for piece in pieces:
        if isinstance(piece, bytes):
            digest.update(b"bytes %d\n" % len(piece))
            digest.update(piece)
        elif piece.path == base.path:
            digest.update(b"base %d %d\n" % (piece.offset - base.offset, piece.length))
        else:
            raise ValueError(f"{piece.path} is not the base {base.path}, of which the hash is known")
    return digest.hexdigest()[:40]


def _sharing_zeros(content: bytes) -> list[Piece]:
    """The same bytes, with long runs of zeros at the end made of blocks that all images share: of the quarter of a megabyte
    that an Ignition area has, a host fills a few kilobytes."""
    filled = content.rstrip(b"\0")
    rest = len(content) - len(filled)
    if rest < _WORTH_SHARING:
        return [content]
    sizes = [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]
    return [filled, *(zeros(size) for size in sizes)]


def is_shared(content: bytes) -> bool:
    """Whether this is one of the blocks of zeros that all images share."""
    return len(content).bit_count() == 1 and content is zeros(len(content))


@cache
def zeros(size: int) -> bytes:
    """Asked for powers of two alone, so the cache stays as small as twice the largest."""
    return bytes(size)


def _without_empty(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if length_of(piece))
