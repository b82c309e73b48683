"""The root file system of a live system that comes over the network: fetched, and compared with what the initial RAM disk wants.

Nothing of it is kept: digests are made while it arrives. An initial RAM disk that names no digests wants a root file system of
its own build, which that says at its end; only then is it put into a file to be read.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.formats import FormatError
from ingot.formats.initrd import read_members
from ingot.lab.errors import BootFailure
from ingot.lab.fetching import CHUNK, Fetched, asked, fetched

VERSION: Final = "etc/coreos-live-rootfs"
_HEAD: Final = re.compile(r"stream-hash sha256 ([1-9][0-9]{0,9})")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_LARGEST_PART: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class StreamHash:
    """The digests of a file's parts, in their order; all but the last have the same size."""

    size: int
    digests: tuple[str, ...]


def parse_stream_hash(content: bytes) -> StreamHash:
    lines = content.decode("ascii", "replace").split("\n")
    head = _HEAD.fullmatch(lines[0])
    digests = tuple(line for line in lines[1:] if line)
    if head is None or int(head[1]) > _LARGEST_PART or not all(_DIGEST.fullmatch(line) for line in digests):
        raise BootFailure(
            "the initial RAM disk does not say in a way that can be read which root file system it wants"
        )
    return StreamHash(int(head[1]), digests)


async def check_root_file_system(
    url: str, *, build: str, wanted: bytes | None, trusted: ssl.SSLContext, folder: Path
) -> None:
    """Fetch it as the live system does; a `BootFailure` when it is not the one that this build wants."""
    what = f"the root file system {url}"
    if wanted is None:
        async with fetched(url, what, trusted=trusted, folder=folder) as found:
            await _check_build(found, what, build)
        return
    stream = parse_stream_hash(wanted)
    async with asked(url, what, trusted=trusted) as answer:
        problem = await difference(answer.content.iter_chunked(CHUNK), stream)
    if problem:
        raise BootFailure(
            f"{what} is not the one that the initial RAM disk of {build} wants: {problem}. It is of another build, or no root "
            "file system at all"
        )


async def difference(pieces: AsyncIterator[bytes], wanted: StreamHash) -> str:
    """Where the bytes are not those that are wanted; "" when they are."""
    digest, inside, number = hashlib.sha256(), 0, 0
    async for piece in pieces:
        while piece:
            part, piece = piece[: wanted.size - inside], piece[wanted.size - inside :]
            digest.update(part)
            inside += len(part)
            if inside < wanted.size:
                continue
            if wanted.digests[number : number + 1] != (digest.hexdigest(),):
                return f"hash mismatch at offset {number * wanted.size}"
            digest, inside, number = hashlib.sha256(), 0, number + 1
    if inside:
        if wanted.digests[number : number + 1] != (digest.hexdigest(),):
            return f"hash mismatch at offset {number * wanted.size}"
        number += 1
    return "" if number == len(wanted.digests) else f"it ends after {number} of {len(wanted.digests)} parts"


async def _check_build(found: Fetched, what: str, build: str) -> None:
    try:
        members = await found.read(lambda file: read_members(file, lambda name: name == VERSION))
    except FormatError as error:
        raise BootFailure(f"{what} is none: {error}") from error
    check_same_build(build, members.get(VERSION, b"").decode("utf-8", "replace").strip(), what)


def check_same_build(build: str, found: str, what: str) -> None:
    if found != build:
        raise BootFailure(
            f"{what} is of {found or 'no build that it names'}, and the initial RAM disk is of {build}; they differ"
        )
