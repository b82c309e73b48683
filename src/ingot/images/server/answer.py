"""What a request is answered with: a status, a head, and the pieces to send. Pure.

Owns conditions, ranges and headers, as RFC 9110 has them. The entity tag is strong and `Last-Modified` never moves while the
image stays, so a BMC that goes on with a transfer, or a cache that asks whether it has the newest, is told the truth.
A name that is not there and a path that could never be one get the same answer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate, parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from ingot.images.server.names import NAME
from ingot.images.server.pieces import Image, Piece, between, length_of
from ingot.images.server.ranges import Part, Unsatisfiable, parts_wanted
from ingot.images.server.request import Request

RETRY_AFTER: Final = 5
_TARGET: Final = re.compile(rf"(?:https?://[^/?#]+)?/images/({NAME.pattern})(?:/[^/?#]*)?(?:\?[^#]*)?")
_TAGS: Final = re.compile(r'(W/)?"([^"]*)"')
_READING: Final = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Answer:
    """`size` is what all the pieces have together."""

    status: int
    head: bytes
    pieces: tuple[Piece, ...] = ()
    size: int = 0


def name_in(target: str) -> str | None:
    """The name that is asked for; None where no image can be meant."""
    matched = _TARGET.fullmatch(target)
    return matched[1] if matched else None


def answer(request: Request, image: Image | None, *, ready: bool) -> Answer:
    """What this request gets of this image, which is None when there is none."""
    if request.method not in _READING:
        return refusal(request, 405, "Only GET and HEAD are known here.", {"Allow": ", ".join(_READING)})
    if not ready:
        why = "The images are not ready yet; try again."
        return refusal(request, 503, why, {"Retry-After": str(RETRY_AFTER)})
    if image is None:
        return refusal(request, 404, "There is nothing here.")
    if not _may_proceed(request.fields, image):
        return refusal(request, 412, "It is another image by now.")
    if _has_it_already(request.fields, image):
        return Answer(304, _head(request, 304, _about(image)))
    try:
        parts = _parts(request, image)
    except Unsatisfiable:
        why = f"The image has {image.size} bytes."
        return refusal(request, 416, why, {"Content-Range": f"bytes */{image.size}"})
    if parts is None:
        return _whole(request, image)
    return _one(request, image, parts[0]) if len(parts) == 1 else _several(request, image, parts)


def refusal(request: Request | None, status: int, why: str, more: Mapping[str, str] | None = None) -> Answer:
    """A sentence instead of an image. `request` is None where it was not understood; the connection then ends."""
    body = f"{why}\n".encode()
    fields = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body)), **(more or {})}
    silent = request is not None and request.method == "HEAD"
    return Answer(
        status, _head(request, status, fields), () if silent else (body,), 0 if silent else len(body)
    )


def _whole(request: Request, image: Image) -> Answer:
    fields = _about(image) | {"Content-Type": image.media_type, "Content-Length": str(image.size)}
    head = _head(request, 200, fields)
    return Answer(200, head) if request.method == "HEAD" else Answer(200, head, image.pieces, image.size)


def _one(request: Request, image: Image, part: Part) -> Answer:
    fields = _about(image) | {
        "Content-Type": image.media_type,
        "Content-Length": str(part.length),
        "Content-Range": _content_range(part, image),
    }
    pieces = tuple(between(image.pieces, part.start, part.length))
    return Answer(206, _head(request, 206, fields), pieces, part.length)


def _several(request: Request, image: Image, parts: tuple[Part, ...]) -> Answer:
    # The boundary is as good as any: who wrote the image could not know the tag of what was written.
    boundary = f"part-{image.etag}"
    pieces: list[Piece] = []
    for part in parts:
        lead = f"--{boundary}\r\nContent-Type: {image.media_type}\r\nContent-Range: {_content_range(part, image)}\r\n\r\n"
        pieces += [lead.encode(), *between(image.pieces, part.start, part.length), b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    size = sum(map(length_of, pieces))
    fields = _about(image) | {
        "Content-Type": f"multipart/byteranges; boundary={boundary}",
        "Content-Length": str(size),
    }
    return Answer(206, _head(request, 206, fields), tuple(pieces), size)


def _parts(request: Request, image: Image) -> tuple[Part, ...] | None:
    wanted = request.fields.get("range")
    if wanted is None or request.method != "GET":
        return None
    only_if = request.fields.get("if-range")
    if only_if is not None and only_if not in (f'"{image.etag}"', _http_date(image.modified)):
        return None
    return parts_wanted(wanted, image.size)


def _may_proceed(fields: Mapping[str, str], image: Image) -> bool:
    if (tags := fields.get("if-match")) is not None:
        return tags == "*" or any(not weak and tag == image.etag for weak, tag in _TAGS.findall(tags))
    until = _moment(fields.get("if-unmodified-since"))
    return until is None or image.modified <= until


def _has_it_already(fields: Mapping[str, str], image: Image) -> bool:
    if (tags := fields.get("if-none-match")) is not None:
        return tags == "*" or any(tag == image.etag for _, tag in _TAGS.findall(tags))
    since = _moment(fields.get("if-modified-since"))
    return since is not None and image.modified <= since


def _moment(text: str | None) -> datetime | None:
    """A date in a header; what is none counts as not said."""
    if text is None:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _about(image: Image) -> dict[str, str]:
    return {
        "Accept-Ranges": "bytes",
        "ETag": f'"{image.etag}"',
        "Last-Modified": _http_date(image.modified),
        # What is in an image may be secret: nobody between us and the machine keeps it.
        "Cache-Control": "private, no-transform",
    }


def _content_range(part: Part, image: Image) -> str:
    return f"bytes {part.start}-{part.start + part.length - 1}/{image.size}"


def _head(request: Request | None, status: int, fields: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    stays = "keep-alive" if request is not None and request.stays else "close"
    return (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nServer: ingot\r\nDate: {_now(int(time.time()))}\r\n"
        f"Connection: {stays}\r\n{lines}\r\n"
    ).encode("latin-1")


@lru_cache(maxsize=1)
def _now(second: int) -> str:
    return formatdate(second, usegmt=True)


@lru_cache(maxsize=64)
def _http_date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)
