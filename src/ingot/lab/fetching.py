"""Fetching what is booted: always whole, with its digest, checked against the length that was announced.

Small things stay in memory, large ones go to a file without a name, so nothing is left behind by a boot that was cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

import aiohttp

from ingot.lab.errors import BootFailure

LARGEST: Final = 8 << 30
IN_MEMORY: Final = 4 << 20
"""What is larger is written and read by a thread."""
_HELD: Final = 256 << 10
"""What is larger is in a file rather than in this process: a thousand servers may boot at once."""
_CHUNK: Final = 1 << 20
AS_IT_IS: Final = {"Accept-Encoding": "identity"}
"""Digest and length are those of the file; a server that packs it on the way would announce another length."""


@dataclass(frozen=True, slots=True)
class Fetched:
    file: BinaryIO
    sha256: str
    size: int

    @property
    def small(self) -> bool:
        return self.size <= IN_MEMORY


@contextlib.asynccontextmanager
async def fetched(url: str, what: str, *, trusted: ssl.SSLContext, folder: Path) -> AsyncIterator[Fetched]:
    """The bytes behind a URL, all of them; a `BootFailure` that says what could not be had and why."""
    timeout = aiohttp.ClientTimeout(total=None, connect=30, sock_read=60)
    with tempfile.SpooledTemporaryFile(max_size=_HELD, dir=str(folder)) as spool:
        file = cast("BinaryIO", spool)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=AS_IT_IS) as session,
                session.get(url, ssl=trusted) as answer,
            ):
                if answer.status != 200:
                    raise BootFailure(f"{what} cannot be fetched: its server answers HTTP {answer.status}")
                sha256, size = await _read(answer, file, what)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise BootFailure(f"{what} cannot be fetched: {error or type(error).__name__}") from error
        yield Fetched(file, sha256, size)


async def _read(answer: aiohttp.ClientResponse, file: BinaryIO, what: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    async for piece in answer.content.iter_chunked(_CHUNK):
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
