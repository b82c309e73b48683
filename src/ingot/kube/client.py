"""The verbs of a Kubernetes API, typed by kind.

Owns what an answer decodes into; what a request looks like is in `calls`. Objects are read into the struct of their kind and
written as merge patches of the fields that changed, or applied with the fields that are ours: structs leave out what they do
not know, so a whole object is never put back.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import msgspec

from ingot.api.meta import Key, Object, PartialObjectMetadata, Resource
from ingot.kube import calls, config
from ingot.kube.access import Access
from ingot.kube.calls import Propagation
from ingot.kube.errors import UNDECODABLE, Gone, Unreadable
from ingot.kube.pages import Listing, Page, PageReader
from ingot.kube.transport import Guard, Transport, anybody
from ingot.kube.watching import Bookmark, EventReader, Lines, News, named, unreadable

T = TypeVar("T", bound=Object)

PAGE_SIZE: Final = 500


def metadata_of(kind: Resource[Any]) -> Resource[PartialObjectMetadata]:
    """The same kind, of which only the metadata is read."""
    return cast("Resource[PartialObjectMetadata]", dataclasses.replace(kind, type=PartialObjectMetadata))


class Client:
    """One API server and the right to talk to it. Use it with `async with`, or call `close`."""

    def __init__(self, access: Access, *, field_manager: str = "ingot", guard: Guard = anybody) -> None:
        """`guard` is asked right before anything that is not a read is sent, and raises where that is not allowed."""
        self._transport = Transport(access, user_agent=field_manager, guard=guard)
        self.check_leave: Final = guard
        """Raises where nothing may be changed now: for those who are about to change something elsewhere."""
        self._manager = field_manager
        self.server: Final = access.server
        self.namespace: Final = access.namespace
        """The namespace that the kubeconfig names for whoever uses it; "" where it names none."""

    @classmethod
    def from_kubeconfig(
        cls, path: Path | str | None = None, *, context: str | None = None, guard: Guard = anybody
    ) -> Self:
        """The cluster of the file given, else of KUBECONFIG, else the one we are a pod of, else of ~/.kube/config."""
        return cls(config.load(path, context=context), guard=guard)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    @property
    def under_way(self) -> int:
        """How many requests are not answered yet; watches do not count."""
        return self._transport.under_way

    # Reading

    async def get(self, kind: Resource[T], key: Key) -> T:
        return _decode(kind, await self._transport.request(calls.get(kind, key)), key)

    async def list(
        self, kind: Resource[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        """All objects of a kind, fetched page by page; consistent as of the listing's version."""
        items: list[T] = []
        version, page_size = "", PAGE_SIZE
        while True:
            try:
                async for page in self.pages(
                    kind, namespace=namespace, labels=labels, fields=fields, page_size=page_size
                ):
                    items += page.items
                    version = page.version
                return Listing(items, version)
            except Gone:
                if not page_size:
                    raise
                # The server forgot the version of the first page before we had the last one: take it all at once.
                page_size, items = 0, []

    async def pages(
        self,
        kind: Resource[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        page_size: int = PAGE_SIZE,
    ) -> AsyncGenerator[Page[T], None]:
        """The pages of a list as they come. `Gone` in the middle: start anew, with `page_size=0` to ask for one piece.

        What comes in one piece is handed out in pages all the same: a long list must not hold up the event loop.
        """
        call = calls.listing(kind, namespace=namespace, labels=labels, fields=fields, limit=page_size)
        reader = PageReader(kind, doing=call.doing)
        if not page_size:
            for page in reader.parts(await self._transport.request(call), size=PAGE_SIZE):
                yield page
                await asyncio.sleep(0)
            return
        while True:
            page = reader.read(await self._transport.request(call))
            yield page
            if not page.next:
                return
            call = dataclasses.replace(call, params={**call.params, "continue": page.next})

    async def latest_version(
        self, kind: Resource[Any], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> str:
        """The version at which such a list would stand now."""
        pages = self.pages(metadata_of(kind), namespace=namespace, labels=labels, fields=fields, page_size=1)
        async with aclosing(pages) as only_the_first:
            return (await anext(only_the_first)).version

    async def watch(
        self,
        kind: Resource[T],
        *,
        resource_version: str | None,
        seconds: int,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[News[T], None]:
        """What happens after this version, for about so many seconds. Close it with `contextlib.aclosing`.

        Without a version: first all that is there, then `Listed`, then what happens; a server that cannot do that refuses it.
        Ends when the server ends it; raises `Gone` when the version is too old, `Unavailable` when the stream breaks.
        """
        call = calls.watch(
            kind,
            version=resource_version,
            seconds=seconds,
            namespace=namespace,
            labels=labels,
            fields=fields,
        )
        reader, lines = EventReader(kind, doing=call.doing), Lines()
        async with self._transport.stream(call) as content:
            if resource_version is not None:
                # The stream is open: from here on nothing after this version is kept from the reader.
                yield Bookmark(resource_version)
            async for chunk in content.iter_any():
                for news in reader.read(lines.feed(chunk)):
                    yield news

    async def logs(
        self,
        kind: Resource[Any],
        key: Key,
        *,
        container: str = "",
        last_lines: int = 0,
        previous: bool = False,
    ) -> str:
        """What a container of a pod printed: all of it or its last lines, of this run or of the one before."""
        call = calls.logs(kind, key, container=container, last_lines=last_lines, previous=previous)
        return (await self._transport.request(call)).decode(errors="replace")

    # Writing

    async def create(self, kind: Resource[T], body: T | Mapping[str, object], *, namespace: str = "") -> T:
        """Make an object. Its namespace is the one given, else the one in the body."""
        content, key = calls.whole(kind, body, namespace)
        call = calls.create(kind, content, key, manager=self._manager)
        return _decode(kind, await self._transport.request(call), key)

    async def apply(
        self,
        kind: Resource[T],
        body: T | Mapping[str, object],
        *,
        namespace: str = "",
        field_manager: str = "",
        force: bool = False,
        subresource: str = "",
    ) -> T:
        """Make an object be as the body says, and own those fields; what we owned and the body leaves out, goes.

        `Contested` where another manager owns one of the fields with another value, unless `force` takes it over. The field
        manager is the client's, or another one where several parts of us own different fields.
        """
        content, key = calls.whole(kind, body, namespace)
        call = calls.apply(
            kind,
            content,
            key,
            manager=field_manager or self._manager,
            force=force,
            subresource=subresource,
        )
        return _decode(kind, await self._transport.request(call), key)

    async def patch(
        self,
        kind: Resource[T],
        key: Key,
        patch: Mapping[str, object],
        *,
        subresource: str = "",
        resource_version: str = "",
    ) -> T:
        """Change the fields in a merge patch. With a version: `Conflict` if the object has changed since."""
        call = calls.patch(
            kind,
            key,
            patch,
            manager=self._manager,
            subresource=subresource,
            version=resource_version,
        )
        return _decode(kind, await self._transport.request(call), key)

    async def delete(
        self,
        kind: Resource[T],
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation = "Background",
    ) -> None:
        """Ask for the object to be deleted; `Conflict` if it is not the one that was meant."""
        call = calls.delete(kind, key, uid=uid, version=resource_version, propagation=propagation)
        await self._transport.request(call)


def _decode(kind: Resource[T], body: bytes, key: Key) -> T:
    try:
        return named(kind, msgspec.json.decode(body, type=kind.type))
    except msgspec.ValidationError as error:
        raise unreadable(kind, key, error) from error
    except UNDECODABLE as error:
        raise Unreadable(f"{kind.kind} {key}: the answer of the API is not JSON ({error})") from error
