"""Lists, page by page: decoding a page straight into the structs of its kind.

One object that does not fit must not hide the others: it is left out, and the log says which field is wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import msgspec

from ingot.api.meta import Object, PartialObjectMetadata, Resource
from ingot.kube.errors import UNDECODABLE, Unreadable
from ingot.kube.watching import named, unreadable

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects of a kind as of one version."""

    items: list[T]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of the objects. `next` is the token for the page after this one; "" on the last."""

    items: list[T]
    version: str
    next: str


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    next: str = msgspec.field(default="", name="continue")


class _Body(msgspec.Struct, Generic[Item]):
    metadata: _ListMeta
    # An empty list comes from Go as null.
    items: list[Item] | None = None


class PageReader(Generic[T]):
    """Decodes the pages of one kind's list."""

    def __init__(self, kind: Resource[T], *, doing: str) -> None:
        self._kind = kind
        self._doing = doing
        # The type is known at run time only, so the type checker is told what comes of it.
        self._typed = cast(
            "msgspec.json.Decoder[_Body[T]]", msgspec.json.Decoder(cast("Any", _Body)[kind.type])
        )

    def read(self, body: bytes) -> Page[T]:
        try:
            page = self._typed.decode(body)
        except UNDECODABLE:
            (page_of_fitting,) = self.parts(body, size=0)
            return page_of_fitting
        items = [named(self._kind, item) for item in page.items or []]
        return Page(items, page.metadata.resource_version, page.metadata.next)

    def parts(self, body: bytes, *, size: int) -> Iterator[Page[T]]:
        """The same, so many objects at a time (0: all) and each on its own: for a list that came in one piece."""
        try:
            page = msgspec.json.decode(body, type=_Body[msgspec.Raw])
        except UNDECODABLE as error:
            raise Unreadable(f"{self._doing}: the answer of the API is not a list ({error})") from error
        raws = page.items or []
        for start in range(0, len(raws) or 1, size or len(raws) or 1):
            part = raws[start : start + size] if size else raws
            items = [item for raw in part if (item := self._one(raw)) is not None]
            yield Page(items, page.metadata.resource_version, page.metadata.next)

    def _one(self, raw: msgspec.Raw) -> T | None:
        try:
            return named(self._kind, msgspec.json.decode(raw, type=self._kind.type))
        except UNDECODABLE as error:
            log.error("%s", self._story(raw, error))
            return None

    def _story(self, raw: msgspec.Raw, error: Exception) -> str:
        try:
            metadata = msgspec.json.decode(raw, type=PartialObjectMetadata)
        except UNDECODABLE:
            return f"{self._doing}: an object without readable metadata is left out ({error})"
        return str(unreadable(self._kind, metadata.key, error))
