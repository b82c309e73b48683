"""Large media, read the way a machine reads a virtual CD: a part here and a part there.

`opened` fetches a small medium whole, and also one whose server gives no parts. Of a large one only what is read is fetched, in
pages, over one connection, and it is noticed when the medium changes meanwhile. Whoever reads is a plain function over a file; a
part that is not there yet ends it, and it begins anew once the part was fetched. So nothing waits in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, TypeVar, cast

import aiohttp

from ingot.lab.errors import BootFailure
from ingot.lab.fetching import Fetched, expect_all, in_words, read_whole, session, spool

T = TypeVar("T")

_FIRST: Final = 2 << 20
"""A medium of at most so many bytes is fetched whole, in one request."""
_PAGE: Final = 64 << 10
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+)")


@contextlib.asynccontextmanager
async def opened(
    url: str, what: str, *, trusted: ssl.SSLContext, folder: Path
) -> AsyncIterator[Fetched | Remote]:
    """The medium behind a URL; a `BootFailure` that says what could not be had and why."""
    first = {"Range": f"bytes=0-{_FIRST - 1}"}
    async with session() as client:
        with spool(folder) as file:
            medium: Fetched | Remote
            with in_words(what):
                async with client.get(url, ssl=trusted, headers=first) as answer:
                    start, size = _part(answer) or (None, 0)
                    if start == 0 and size > _FIRST:
                        medium = Remote(client, url, what, trusted, folder, size, answer.headers.get("ETag"))
                        await medium.take(0, answer)
                    else:
                        if start != 0:
                            expect_all(answer, what)
                        medium = Fetched(file, *await read_whole(answer, file, what))
            yield medium


class Missing(Exception):
    """Bytes that were not fetched yet."""

    def __init__(self, offset: int, length: int) -> None:
        super().__init__(f"{length} bytes at {offset}")
        self.offset = offset
        self.length = length


@dataclass(slots=True)
class Remote:
    """A large file whose server gives parts of it. It has no digest: nobody reads all of it."""

    client: aiohttp.ClientSession
    url: str
    what: str
    trusted: ssl.SSLContext
    folder: Path
    size: int
    etag: str | None
    pages: dict[int, bytes] = field(default_factory=dict)
    sha256: str = ""

    async def read(self, parse: Callable[[BinaryIO], T]) -> T:
        """What the function makes of the file. It begins anew for each part that was not there, so it must keep nothing."""
        while True:
            try:
                return await asyncio.to_thread(parse, cast("BinaryIO", _Sparse(self)))
            except Missing as missing:
                await self._fetch(missing.offset, missing.length)

    @contextlib.asynccontextmanager
    async def part(self, offset: int, length: int) -> AsyncIterator[BinaryIO]:
        """Consecutive bytes of it, fetched in one go."""
        with spool(self.folder) as file:
            async with self._asked(offset, offset + length) as answer:
                await read_whole(answer, file, self.what)
            file.seek(0)
            yield file

    async def take(self, start: int, answer: aiohttp.ClientResponse) -> int:
        """Take in an answer that begins with a page, as far as it has whole pages; how many bytes it had."""
        at, page = start, bytearray()
        async for piece in answer.content.iter_chunked(_PAGE):
            page += piece
            while len(page) >= _PAGE:
                self.pages[at // _PAGE], page = bytes(page[:_PAGE]), page[_PAGE:]
                at += _PAGE
        if at + len(page) == self.size:
            self.pages[at // _PAGE] = bytes(page)
        return at + len(page) - start

    async def _fetch(self, offset: int, length: int) -> None:
        start = offset // _PAGE * _PAGE
        end = min(self.size, -(-(offset + length) // _PAGE) * _PAGE)
        async with self._asked(start, end) as answer:
            found = await self.take(start, answer)
        if found != end - start:
            raise BootFailure(
                f"{self.what} was cut short: {found} of {end - start} bytes from byte {start} on"
            )

    @contextlib.asynccontextmanager
    async def _asked(self, start: int, end: int) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Range": f"bytes={start}-{end - 1}"}
        if self.etag is not None and not self.etag.startswith("W/"):
            headers["If-Range"] = self.etag
        with in_words(self.what):
            async with self.client.get(self.url, ssl=self.trusted, headers=headers) as answer:
                if answer.status == 200:
                    raise BootFailure(f"{self.what} changed while the server booted from it")
                if _part(answer) != (start, self.size):
                    raise BootFailure(
                        f"{self.what} cannot be read: its server answers HTTP {answer.status}, and not with bytes {start} to "
                        f"{end - 1} of {self.size}"
                    )
                yield answer


class _Sparse(io.RawIOBase):
    """A file of which some parts are here."""

    def __init__(self, remote: Remote) -> None:
        super().__init__()
        self._remote = remote
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._remote.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._remote.size if size < 0 else min(self._remote.size, self._at + size)
        if end <= self._at:
            return b""
        numbers = range(self._at // _PAGE, -(-end // _PAGE))
        if any(number not in self._remote.pages for number in numbers):
            raise Missing(self._at, end - self._at)
        whole = b"".join(self._remote.pages[number] for number in numbers)
        begin = self._at - numbers[0] * _PAGE
        found = whole[begin : begin + end - self._at]
        self._at = end
        return found


def _part(answer: aiohttp.ClientResponse) -> tuple[int, int] | None:
    """Where the part that the answer holds begins, and how much there is in all; None when it holds no part."""
    if answer.status != 206:
        return None
    found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    return None if found is None else (int(found[1]), int(found[2]))
