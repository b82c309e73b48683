"""What the process that makes images and those that serve them say to each other.

Each message is its length and what msgspec makes of it, over a pair of sockets that nobody else has: names and images are secret.
They arrive in the order in which they were sent, so whoever has confirmed a `Mark` knows everything that was said before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from ingot.images.region import Region
from ingot.images.server.pieces import Image, Piece, is_shared, zeros

_LENGTH: Final = 4


class FilePart(msgspec.Struct, frozen=True, array_like=True, tag="file"):
    path: str
    offset: int
    length: int


class Content(msgspec.Struct, frozen=True, array_like=True, tag="bytes"):
    content: bytes


class Zeros(msgspec.Struct, frozen=True, array_like=True, tag="zeros"):
    length: int


class Put(msgspec.Struct, frozen=True, tag=True):
    """An image, under its name."""

    name: str
    etag: str
    modified: datetime
    media_type: str
    pieces: list[FilePart | Content | Zeros]

    @classmethod
    def of(cls, name: str, image: Image) -> Put:
        return cls(
            name, image.etag, image.modified, image.media_type, [_told(piece) for piece in image.pieces]
        )

    @property
    def image(self) -> Image:
        return Image(tuple(map(_meant, self.pieces)), self.etag, self.modified, self.media_type)


class Drop(msgspec.Struct, frozen=True, tag=True):
    name: str


class Complete(msgspec.Struct, frozen=True, tag=True):
    """All images that are advertised were put."""


class Serve(msgspec.Struct, frozen=True, tag=True):
    """Begin to answer: at these sockets, with the certificate in these files (none without TLS), and log from this level on."""

    listeners: list[int]
    certificate: tuple[str, str, str] | None
    level: int


class Renewed(msgspec.Struct, frozen=True, tag=True):
    """There is another certificate in the files."""


class Mark(msgspec.Struct, frozen=True, tag=True):
    """Confirm that all before it was heard."""

    number: int


class Marked(msgspec.Struct, frozen=True, tag=True):
    number: int


class Logged(msgspec.Struct, frozen=True, tag=True):
    logger: str
    level: int
    text: str


Order = Put | Drop | Complete | Serve | Renewed | Mark
Report = Marked | Logged

_ENCODER: Final = msgspec.msgpack.Encoder()
_ORDERS: Final = msgspec.msgpack.Decoder(Order)
_REPORTS: Final = msgspec.msgpack.Decoder(Report)


def packed(message: Order | Report) -> bytes:
    body = _ENCODER.encode(message)
    return len(body).to_bytes(_LENGTH) + body


async def orders(reader: asyncio.StreamReader) -> AsyncIterator[Order]:
    """Until the other side is gone."""
    while (body := await _body(reader)) is not None:
        yield _ORDERS.decode(body)


async def reports(reader: asyncio.StreamReader) -> AsyncIterator[Report]:
    """Until the other side is gone."""
    while (body := await _body(reader)) is not None:
        yield _REPORTS.decode(body)


async def _body(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(_LENGTH)))
    except (asyncio.IncompleteReadError, ConnectionError):  # killed, perhaps in the middle of a message
        return None


def _told(piece: Piece) -> FilePart | Content | Zeros:
    if isinstance(piece, Region):
        return FilePart(str(piece.path), piece.offset, piece.length)
    # Blocks of zeros are shared by all images; sent as they are, each image would bring its own.
    return Zeros(len(piece)) if is_shared(piece) else Content(piece)


def _meant(piece: FilePart | Content | Zeros) -> Piece:
    match piece:
        case FilePart(path, offset, length):
            return Region(Path(path), offset, length)
        case Zeros(length):
            return zeros(length)
        case Content(content):
            return content
