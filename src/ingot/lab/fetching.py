"""Fetching what is booted: whole, with its digest, checked against the length that was announced.

Small things stay in memory, large ones go to a file without a name, so nothing is left behind by a boot that was cut off.
Leaves large media, of which a machine reads a part here and there, to `media`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeVar, cast

import aiohttp

from ingot.lab.errors import BootFailure

T = TypeVar("T")

LARGEST: Final = 8 << 30
IN_MEMORY: Final = 4 << 20
"""What is larger is written and read by a thread."""
_HELD: Final = 256 << 10
"""What is larger is in a file rather than in this process: a thousand servers may boot at once."""
CHUNK: Final = 1 << 20
AS_IT_IS: Final = {"Accept-Encoding": "identity"}
"""Digest and length are those of the file; a server that packs it on the way would announce another length."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, connect=30, sock_read=60)


@dataclass(frozen=True, slots=True)
class Fetched:
    """All of it is here."""

    file: BinaryIO
    sha256: str
    size: int

    @property
    def small(self) -> bool:
        return self.size <= IN_MEMORY

    async def read(self, parse: Callable[[BinaryIO], T]) -> T:
        """What the function makes of the file; in a thread unless it is small."""
        self.file.seek(0)
        return parse(self.file) if self.small else await asyncio.to_thread(parse, self.file)

    @contextlib.asynccontextmanager
    async def part(self, offset: int, length: int) -> AsyncIterator[BinaryIO]:
        """Consecutive bytes of it, to be read once."""
        yield cast("BinaryIO", _Part(self.file, offset, length))


@contextlib.asynccontextmanager
async def fetched(url: str, what: str, *, trusted: ssl.SSLContext, folder: Path) -> AsyncIterator[Fetched]:
    """The bytes behind a URL, all of them; a `BootFailure` that says what could not be had and why."""
    with spool(folder) as file:
        async with asked(url, what, trusted=trusted) as answer:
            sha256, size = await read_whole(answer, file, what)
        yield Fetched(file, sha256, size)


@contextlib.asynccontextmanager
async def asked(url: str, what: str, *, trusted: ssl.SSLContext) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer to a GET, which is not an error."""
    with in_words(what):
        async with session() as client, client.get(url, ssl=trusted) as answer:
            expect_all(answer, what)
            yield answer


def session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=_TIMEOUT, headers=AS_IT_IS)


@contextlib.contextmanager
def spool(folder: Path) -> Iterator[BinaryIO]:
    """A file without a name, in memory while it is small."""
    with tempfile.SpooledTemporaryFile(max_size=_HELD, dir=str(folder)) as file:
        yield cast("BinaryIO", file)


@contextlib.contextmanager
def in_words(what: str) -> Iterator[None]:
    """What goes wrong on the way is a `BootFailure`."""
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise BootFailure(f"{what} cannot be fetched: {error or type(error).__name__}") from error


def expect_all(answer: aiohttp.ClientResponse, what: str) -> None:
    if answer.status != 200:
        raise BootFailure(f"{what} cannot be fetched: its server answers HTTP {answer.status}")


async def read_whole(answer: aiohttp.ClientResponse, file: BinaryIO, what: str) -> tuple[str, int]:
    """Put all of an answer into a file; its digest and size."""
    digest, size = hashlib.sha256(), 0
    async for piece in answer.content.iter_chunked(CHUNK):
        size += len(piece)
        if size > LARGEST:
            raise BootFailure(f"{what} has more than {LARGEST} bytes")
        digest.update(piece)
        if size <= IN_MEMORY:
            file.write(piece)
        else:
            await asyncio.to_thread(file.write, piece)
    if answer.content_length is not None and size != answer.content_length:
        raise BootFailure(f"{what} was cut short: {size} of {answer.content_length} bytes")
    return digest.hexdigest(), size


class _Part(io.RawIOBase):
    """A stretch of another file."""

    def __init__(self, file: BinaryIO, offset: int, length: int) -> None:
        super().__init__()
        self._file = file
        self._at, self._end = offset, offset + length

    def read(self, size: int = -1) -> bytes:
        left = self._end - self._at
        self._file.seek(self._at)
        found = self._file.read(left if size < 0 else min(size, left))
        self._at += len(found)
        return found
