"""API objects as they travel: JSON documents, read and written without a model.

The server serves kinds it knows only by their schema, so a document is a plain dictionary; its shape is checked by
`schema` and `metadata`, at the edge, once. Encoding is deterministic for equal documents, which is what "nothing
changed" rests on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

# A JSON value of any kind has no better static type; everything that leaves this package is checked against a schema first.
Document: TypeAlias = dict[str, Any]

_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}([.,][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")

# Enough for a system call to be worth it, little enough for others to have their turn.
_PIECE: Final = 128 * 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode(document: object) -> bytes:
    return _encode(document)


def decode(body: bytes) -> Document:
    """The document in these bytes, which must be an object. Raises ValueError otherwise."""
    value = _decode(body)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {type(value).__name__}")
    return value


def in_pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Parts of a long answer, joined into pieces of a size that is worth a system call."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def dig(document: object, *path: str) -> Any:
    """The value at this path of keys, or None where any part of the way is missing."""
    for part in path:
        if not isinstance(document, dict):
            return None
        document = document.get(part)
    return document


def is_count(text: str) -> bool:
    """Whether a client wrote a number that is not negative and not beyond 64 bits."""
    return text.isascii() and text.isdecimal() and len(text) <= 18


def is_time(text: str) -> bool:
    """Whether a client wrote a moment: date, time and offset, as RFC 3339 writes them."""
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def timestamp() -> str:
    """The time now, as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
