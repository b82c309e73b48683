"""Unpacking a compressed image once it is there and verified: gzip or xz, as the end of its name says.

The packed file is read to its very end. Data behind the end of the compressed stream is refused: a checksum or signature
covers it, but nothing that is used does, and an attacker could put there what makes the two agree (CVE-2021-20319). What comes
out is checked against its own sha256 where the metadata has one, and gets its name when it is whole.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from ingot.images.fetching.errors import NotVerified, Unwritable
from ingot.images.fetching.partial import Partial, claimed, there
from ingot.images.fetching.threads import in_thread
from ingot.images.fetching.wanted import LARGEST, Fetched

_CHUNK: Final = 1 << 20
_XZ_MEMORY: Final = 256 << 20


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


def unpacked_name(name: str) -> str | None:
    """What a compressed file is called when it is unpacked; None for one that is not compressed, and for a tar archive."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and stem and suffix in ("gz", "xz") and not stem.endswith(".tar") else None


async def unpack(path: Path, *, sha256: str | None, limit: int = LARGEST) -> Fetched:
    """The file unpacked beside itself; the packed one stays. `sha256` is that of what comes out, if it is known."""
    name = unpacked_name(path.name)
    assert name is not None, "only a file with the name of a compressed one is unpacked"
    part = await claimed(path.parent, name, url="", sha256=sha256 or "")
    try:
        target = path.with_name(name)
        if (found := await there(target, sha256)) is not None:
            await in_thread(part.discard)
            return found
        await in_thread(lambda: _unpack(path, part, limit))
        if sha256 is not None and part.digest != sha256:
            raise NotVerified(
                f"{path} holds something with the sha256 {part.digest}; {sha256} is expected. It is not used"
            )
        digest, size = part.digest, part.size
        await in_thread(part.finish, target)
        return Fetched(path=target, sha256=digest, size=size)
    except NotVerified:
        await in_thread(part.discard)
        raise
    finally:
        await in_thread(part.close)


def _unpack(path: Path, part: Partial, limit: int) -> None:
    part.begin(None)
    try:
        with path.open("rb") as file:
            chunks = _gzip(file, path) if path.suffix == ".gz" else _xz(file, path)
            for chunk in chunks:
                if part.size + len(chunk) > limit:
                    raise NotVerified(
                        f"{path} unpacks to more than {limit} bytes, which is the most that is taken"
                    )
                part.write(chunk)
    except OSError as error:
        raise Unwritable(f"{path}: {error.strerror}") from error


def _gzip(file: BinaryIO, path: Path) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(wbits=31)
    while not decompressor.eof:
        data = decompressor.unconsumed_tail or file.read(_CHUNK)
        if not data:
            raise NotVerified(f"{path} is cut short")
        try:
            yield decompressor.decompress(data, _CHUNK)
        except zlib.error as error:
            raise NotVerified(f"{path} is not gzip, or damaged: {error}") from error
    _check_end(decompressor, file, path)


def _xz(file: BinaryIO, path: Path) -> Iterator[bytes]:
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    while not decompressor.eof:
        data = file.read(_CHUNK) if decompressor.needs_input else b""
        if decompressor.needs_input and not data:
            raise NotVerified(f"{path} is cut short")
        try:
            yield decompressor.decompress(data, _CHUNK)
        except lzma.LZMAError as error:
            raise NotVerified(f"{path} is not xz, damaged, or needs too much memory: {error}") from error
    _check_end(decompressor, file, path)


def _check_end(decompressor: _Decompressor, file: BinaryIO, path: Path) -> None:
    if decompressor.unused_data or file.read(1):
        raise NotVerified(
            f"{path} has data behind its compressed end, which nothing accounts for. It is not used"
        )
