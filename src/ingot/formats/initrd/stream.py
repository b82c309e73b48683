"""A stream that can be looked into and put back to, and the decompression of what begins in it.

Owns recognising gzip, xz and zstd by their first bytes and decoding exactly one of them, so that what follows in the file
is read as what it is. Memory stays bounded whatever the bytes say, and what comes out is counted against a limit.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.initrd import zstd

CHUNK: Final = 128 << 10
_XZ_MEMORY: Final = 192 << 20
_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\0"


class Peekable:
    """Bytes in order, from a function that reads up to so many."""

    def __init__(self, read: Callable[[int], bytes], *, limit: int) -> None:
        self._read = read
        self._buffer = bytearray()
        self._limit = limit
        self._left = limit

    @property
    def left(self) -> int:
        """How many more bytes may be read."""
        return self._left

    def peek(self, count: int) -> bytes:
        """The next bytes without taking them; fewer only at the end."""
        while len(self._buffer) < count:
            more = self._read(CHUNK)
            if not more:
                break
            self._left -= len(more)
            if self._left < 0:
                raise FormatError(
                    f"the archive holds more than {self._limit} bytes, which is all that is read"
                )
            self._buffer += more
        return bytes(self._buffer[:count])

    def take(self, count: int) -> bytes:
        """The next bytes; fewer only at the end."""
        taken = self.peek(count)
        del self._buffer[: len(taken)]
        return taken

    def exactly(self, count: int, what: str) -> bytes:
        taken = self.take(count)
        if len(taken) < count:
            raise FormatError(f"the archive ends in the middle of {what}: it is cut short")
        return taken

    def put_back(self, data: bytes) -> None:
        self._buffer[:0] = data

    def skip_zeros(self) -> None:
        while data := self.take(CHUNK):
            rest = data.lstrip(b"\0")
            if rest:
                self.put_back(rest)
                return


def decoded(source: Peekable, *, limit: int) -> Peekable | None:
    """What the compressed stream that begins here holds; None when nothing compressed begins here.

    Once it is read to its end, `source` goes on behind it.
    """
    head = source.peek(6)
    if head.startswith(_GZIP):
        chunks = _gzip(source)
    elif head == _XZ:
        chunks = _xz(source)
    elif zstd.starts_frame(head):
        chunks = _zstd(source)
    else:
        return None
    return Peekable(lambda _: next(chunks, b""), limit=limit)


def _gzip(source: Peekable) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(wbits=31)
    while not decompressor.eof:
        data = decompressor.unconsumed_tail or source.take(CHUNK)
        if not data:
            raise FormatError("the gzip archive is cut short")
        try:
            made = decompressor.decompress(data, CHUNK)
        except zlib.error as error:
            raise FormatError(f"the gzip archive is damaged: {error}") from error
        if made:
            yield made
    source.put_back(decompressor.unused_data)


def _xz(source: Peekable) -> Iterator[bytes]:
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    while not decompressor.eof:
        data = source.take(CHUNK) if decompressor.needs_input else b""
        if decompressor.needs_input and not data:
            raise FormatError("the xz archive is cut short")
        try:
            made = decompressor.decompress(data, CHUNK)
        except lzma.LZMAError as error:
            raise FormatError(f"the xz archive is damaged or needs too much memory: {error}") from error
        if made:
            yield made
    source.put_back(decompressor.unused_data)


def _zstd(source: Peekable) -> Iterator[bytes]:
    # One archive may be several frames; they belong together as long as one follows the other.
    while zstd.starts_frame(source.peek(4)):
        decompressor = zstd.ZstdDecompressor()
        while not decompressor.eof:
            made = decompressor.decompress(b"")
            if not made and not decompressor.eof:
                data = source.take(CHUNK)
                if not data:
                    raise FormatError("the zstd archive is cut short")
                made = decompressor.decompress(data)
            if made:
                yield made
        source.put_back(decompressor.unused_data)
