"""What a request is answered with: a status, a head, and the pieces to send. Pure.

Owns conditions, ranges and headers, as RFC 9110 has them. The entity tag is strong and `Last-Modified` never moves while the
image stays, so a BMC that goes on with a transfer, or a cache that asks whether it has the newest, is told the truth.
A name that is not there and a path that could never be one get the same answer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime, formatdate, parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple

from ingot.images.server.names import NAME
from ingot.images.server.pieces import Image, Piece, length_of
from ingot.images.server.ranges import Part, Unsatisfiable, parts_wanted
from ingot.images.server.request import Request

RETRY_AFTER: Final = 5
_TARGET: Final = re.compile(rf"(?:https?://[^/?#]+)?/images/({NAME.pattern})(?:/[^/?#]*)?(?:\?[^#]*)?")
_TAGS: Final = re.compile(r'(W/)?"([^"]*)"')
_READING: Final = ("GET", "HEAD")
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


class Answer(NamedTuple):
    status: int
    head: bytes
    pieces: Sequence[Piece] = ()


def name_in(target: str) -> str | None:
    """The name that is asked for; None where no image can be meant."""
    matched = _TARGET.fullmatch(target)
    return matched[1] if matched else None


def answer(request: Request, image: Image | None, *, ready: bool) -> Answer:
    """What this request gets of this image, which is None when there is none; unless all are `ready`, there may be one soon."""
    if request.method not in _READING:
        return refusal(request, 405, "Only GET and HEAD are known here.", f"Allow: {', '.join(_READING)}\r\n")
    if image is None and not ready:
        why = "The images are not ready yet; try again."
        return refusal(request, 503, why, f"Retry-After: {RETRY_AFTER}\r\n")
    if image is None:
        return refusal(request, 404, "There is nothing here.")
    if not _may_proceed(request.fields, image):
        return refusal(request, 412, "It is another image by now.")
    if _has_it_already(request.fields, image):
        return Answer(304, _head(request, 304, _about(image.etag, image.modified)))
    try:
        parts = _parts(request, image)
    except Unsatisfiable:
        why = f"The image has {image.size} bytes."
        return refusal(request, 416, why, f"Content-Range: bytes */{image.size}\r\n")
    if parts is None:
        return _whole(request, image)
    return _one(request, image, parts[0]) if len(parts) == 1 else _several(request, image, parts)


def refusal(request: Request | None, status: int, why: str, more: str = "") -> Answer:
    """A sentence instead of an image. `request` is None where it was not understood; the connection then ends."""
    body = f"{why}\n".encode()
    fields = f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n{more}"
    silent = request is not None and request.method == "HEAD"
    return Answer(status, _head(request, status, fields), () if silent else (body,))


def _whole(request: Request, image: Image) -> Answer:
    head = _head(request, 200, _of(image, image.size, image.media_type))
    return Answer(200, head) if request.method == "HEAD" else Answer(200, head, image.pieces)


def _one(request: Request, image: Image, part: Part) -> Answer:
    fields = f"{_of(image, part.length, image.media_type)}{_content_range(part, image)}"
    return Answer(206, _head(request, 206, fields), image.part(*part))


def _several(request: Request, image: Image, parts: list[Part]) -> Answer:
    # The boundary is as good as any: who wrote the image could not know the tag of what was written.
    boundary = f"part-{image.etag}"
    pieces: list[Piece] = []
    for part in parts:
        lead = f"--{boundary}\r\nContent-Type: {image.media_type}\r\n{_content_range(part, image)}\r\n"
        pieces += [lead.encode(), *image.part(*part), b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    size = sum(map(length_of, pieces))
    fields = _of(image, size, f"multipart/byteranges; boundary={boundary}")
    return Answer(206, _head(request, 206, fields), pieces)


def _parts(request: Request, image: Image) -> list[Part] | None:
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


def _of(image: Image, length: int, media_type: str) -> str:
    about = _about(image.etag, image.modified)
    return f"{about}Content-Type: {media_type}\r\nContent-Length: {length}\r\n"


@lru_cache(maxsize=1024)
def _about(etag: str, modified: datetime) -> str:
    # What is in an image may be secret: nobody between us and the machine keeps it.
    return (
        f'Accept-Ranges: bytes\r\nETag: "{etag}"\r\nLast-Modified: {_http_date(modified)}\r\n'
        "Cache-Control: private, no-transform\r\n"
    )


def _content_range(part: Part, image: Image) -> str:
    return f"Content-Range: bytes {part.start}-{part.start + part.length - 1}/{image.size}\r\n"


def _head(request: Request | None, status: int, fields: str) -> bytes:
    stays = "keep-alive" if request is not None and request.stays else "close"
    return (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\nServer: ingot\r\nDate: {_now(int(time.time()))}\r\n"
        f"Connection: {stays}\r\n{fields}\r\n"
    ).encode("latin-1")


@lru_cache(maxsize=1)
def _now(second: int) -> str:
    return formatdate(second, usegmt=True)


@lru_cache(maxsize=64)
def _http_date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)
