"""Answers: JSON with the headers that the API gives it, refusals, and lists that are too long for one piece of memory.

A short list is sent with its length, as any object. A long one is sent while it is made: nobody else waits for it, and it is
never in memory as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from aiohttp import web

from ingot.embedded.server.documents import Document, encode, in_pieces
from ingot.embedded.server.errors import Refused
from ingot.embedded.server.face import yamls
from ingot.embedded.server.face.rendering import READABLE, media_types

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_NOT_CACHED: Final = "no-cache, private"
_WARNINGS_LIMIT: Final = 4096
_WARNING_LIMIT: Final = 256

R = TypeVar("R", bound=web.StreamResponse)


def of_json(document: Document, *, status: int = 200) -> web.Response:
    return of_bytes(encode(document), status=status)


def of_bytes(body: bytes, *, status: int = 200) -> web.Response:
    return web.Response(
        status=status, body=body, headers={"Content-Type": JSON, "Cache-Control": _NOT_CACHED}
    )


def refusing(refusal: Refused) -> web.Response:
    response = of_json(refusal.status(), status=refusal.code)
    if refusal.code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return warn(response, refusal.warnings)


async def in_wanted_form(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """The answer as YAML for those who asked for that, objects and refusals alike."""
    if not isinstance(response, web.Response) or response.content_type != JSON or not _prefers_yaml(request):
        return response
    if isinstance(body := response.body, bytes):
        response.body = await asyncio.to_thread(yamls.written, body)
        response.headers["Content-Type"] = YAML
    return response


def _prefers_yaml(request: web.BaseRequest) -> bool:
    if "yaml" not in (accept := request.headers.get("Accept", "")):
        return False
    first = next((wanted.name for wanted in media_types(accept) if wanted.name in READABLE), JSON)
    return first == YAML


def warn(response: R, sentences: Iterable[str]) -> R:
    """Tell each once. Where they are too many to be read, as Kubernetes: the beginnings of the first of them."""
    told = list(dict.fromkeys(sentence for sentence in sentences if sentence))
    shortened = sum(map(len, told)) > _WARNINGS_LIMIT
    written = 0
    for sentence in told:
        if written >= _WARNINGS_LIMIT:
            break
        shown = sentence[:_WARNING_LIMIT] if shortened else sentence
        written += len(shown)
        response.headers.add("Warning", f'299 - "{_header_text(shown)}"')
    return response


@contextlib.contextmanager
def warning(sentences: Sequence[str]) -> Iterator[None]:
    """What there is to say about a write is said beside its refusal, too."""
    try:
        yield
    except Refused as refusal:
        refusal.warnings = sentences
        raise


def endless() -> web.StreamResponse:
    """The start of an answer whose end is not known."""
    return web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": _NOT_CACHED})


async def of_parts(
    request: web.BaseRequest, parts: Iterable[bytes], warnings: Sequence[str] = ()
) -> web.StreamResponse:
    """One document, made and sent part by part."""
    pieces = in_pieces(parts)
    first = next(pieces)
    second = next(pieces, None)
    if second is None:
        return warn(of_bytes(first), warnings)
    if _prefers_yaml(request):
        return warn(of_bytes(b"".join((first, second, *pieces))), warnings)
    response = warn(endless(), warnings)
    await response.prepare(request)
    try:
        await response.write(first)
        while second is not None:
            await response.write(second)
            # Writing waits only for a slow reader; a fast one must not keep everybody else waiting.
            await asyncio.sleep(0)
            second = next(pieces, None)
        await response.write_eof()
    except (
        Exception
    ):  # whatever it is, an answer that has begun cannot become another one: it is cut, and seen to be cut
        if request.transport is not None:
            request.transport.abort()
        raise
    return response


def _header_text(text: str) -> str:
    """Text from a client as part of a header: printable ASCII, quotes escaped."""
    printable = text.encode("ascii", "backslashreplace").decode()
    cleaned = "".join(character if character.isprintable() else "?" for character in printable)
    return cleaned.replace("\\", "\\\\").replace('"', '\\"')
