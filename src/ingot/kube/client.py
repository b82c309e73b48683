"""The verbs of a Kubernetes API, typed by kind.

Owns what a request for a kind looks like and what its answer decodes into. Objects are read into the struct of their kind and
written as merge patches of the fields that changed: structs leave out what they do not know, so a whole object is never put
back. A kind whose struct is `PartialObjectMetadata` is asked for by its metadata alone (`metadata_of`): what a Secret holds
then never reaches this process. Names are checked before they become part of a URL.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, cast

import msgspec

from ingot.api.meta import Key, Object, PartialObjectMetadata, Resource
from ingot.kube import config
from ingot.kube.access import Access
from ingot.kube.errors import Gone, NotFound, Unreadable
from ingot.kube.pages import Listing, Page, PageReader
from ingot.kube.transport import Call, Guard, Transport, anybody
from ingot.kube.watching import Bookmark, EventReader, Lines, News, named, unreadable

T = TypeVar("T", bound=Object)
Propagation = Literal["Background", "Foreground", "Orphan"]

PAGE_SIZE: Final = 500
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
_JSON: Final = "application/json"
_PARTIAL: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
_MERGE_PATCH: Final = "application/merge-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_EVERYTHING_FIRST: Final = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


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
        self._write_params = {"fieldManager": field_manager}
        self.server: Final = access.server

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

    async def get(self, kind: Resource[T], key: Key) -> T:
        doing = f"get {kind.kind} {key}"
        path = _path(kind, key, doing=doing)
        body = await self._transport.request(
            Call(method="GET", path=path, doing=doing, kind=kind.kind, accept=_accept(kind))
        )
        return _decode(kind, body, key)

    async def list(
        self, kind: Resource[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        """All objects of a kind, fetched page by page; consistent as of the listing's version."""
        listing: Listing[T] = Listing([], "")
        page_size = PAGE_SIZE
        while True:
            try:
                async for page in self.pages(
                    kind, namespace=namespace, labels=labels, fields=fields, page_size=page_size
                ):
                    listing = Listing([*listing.items, *page.items], page.version)
                return listing
            except Gone:
                if not page_size:
                    raise
                # The server forgot the version of the first page before we had the last one: take it all at once.
                page_size, listing = 0, Listing([], "")

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
        doing = f"list {kind.kind}s" + (f" in {namespace}" if namespace else "")
        reader = PageReader(kind, doing=doing)
        params = _selection(labels, fields) | ({"limit": str(page_size)} if page_size else {})
        call = Call(
            method="GET",
            path=_collection(kind, namespace, doing=doing),
            doing=doing,
            kind=kind.kind,
            params=params,
            accept=_accept(kind, "List"),
        )
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
            call = dataclasses.replace(call, params={**params, "continue": page.next})

    async def latest_version(self, kind: Resource[Any], *, namespace: str = "") -> str:
        """The version at which a list of this kind would stand now."""
        pages = self.pages(metadata_of(kind), namespace=namespace, page_size=1)
        async with aclosing(pages) as only_the_first:
            return (await anext(only_the_first)).version

    async def create(self, kind: Resource[T], body: T | Mapping[str, object], *, namespace: str = "") -> T:
        """Make an object. Its namespace is the one given, else the one in the body."""
        content, key = _whole(kind, body, namespace)
        doing = f"create {kind.kind} {key}"
        answer = await self._transport.request(
            Call(
                method="POST",
                path=_collection(kind, key.namespace, doing=doing),
                doing=doing,
                kind=kind.kind,
                params=self._write_params,
                accept=_accept(kind),
                body=msgspec.json.encode(content),
            )
        )
        return _decode(kind, answer, key)

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
        content, key = _whole(kind, body, namespace)
        doing = f"apply {kind.kind} {key}" + (f" ({subresource})" if subresource else "")
        params = {"fieldManager": field_manager} if field_manager else self._write_params
        answer = await self._transport.request(
            Call(
                method="PATCH",
                path=_path(kind, key, subresource, doing=doing),
                doing=doing,
                kind=kind.kind,
                params={**params, "force": "true"} if force else params,
                accept=_accept(kind),
                # JSON is YAML.
                body=msgspec.json.encode(content),
                content_type=_APPLY_PATCH,
            )
        )
        return _decode(kind, answer, key)

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
        doing = f"patch {kind.kind} {key}" + (f" ({subresource})" if subresource else "")
        answer = await self._transport.request(
            Call(
                method="PATCH",
                path=_path(kind, key, subresource, doing=doing),
                doing=doing,
                kind=kind.kind,
                params=self._write_params,
                accept=_accept(kind),
                body=msgspec.json.encode(_based_on(patch, resource_version)),
                content_type=_MERGE_PATCH,
            )
        )
        return _decode(kind, answer, key)

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
        doing = f"delete {kind.kind} {key}"
        preconditions = {"uid": uid} if uid else {}
        if resource_version:
            preconditions["resourceVersion"] = resource_version
        options: dict[str, object] = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if preconditions:
            options["preconditions"] = preconditions
        await self._transport.request(
            Call(
                method="DELETE",
                path=_path(kind, key, doing=doing),
                doing=doing,
                kind=kind.kind,
                accept=_JSON,
                body=msgspec.json.encode(options),
            )
        )

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
        doing = f"read the log of {kind.kind} {key}"
        params = {"container": container, "tailLines": str(last_lines or ""), "previous": "true" * previous}
        answer = await self._transport.request(
            Call(
                method="GET",
                path=_path(kind, key, "log", doing=doing),
                doing=doing,
                kind=kind.kind,
                params={name: value for name, value in params.items() if value},
                accept="text/plain, */*",
            )
        )
        return answer.decode(errors="replace")

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
        doing = f"watch {kind.kind}s" + (f" in {namespace}" if namespace else "")
        reader, lines = EventReader(kind, doing=doing), Lines()
        call = Call(
            method="GET",
            path=_collection(kind, namespace, doing=doing),
            doing=doing,
            kind=kind.kind,
            params=_selection(labels, fields)
            | {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
            | (_EVERYTHING_FIRST if resource_version is None else {"resourceVersion": resource_version}),
            accept=_accept(kind),
        )
        async with self._transport.stream(call) as content:
            if resource_version is not None:
                # The stream is open: from here on nothing after this version is kept from the reader.
                yield Bookmark(resource_version)
            async for chunk in content.iter_any():
                for news in reader.read(lines.feed(chunk)):
                    yield news


def _whole(kind: Resource[T], body: T | Mapping[str, object], namespace: str) -> tuple[dict[str, Any], Key]:
    """The body with its kind's name in it, and where it belongs."""
    content: dict[str, Any] = dict(msgspec.to_builtins(body, str_keys=True))
    content |= {"apiVersion": kind.api_version, "kind": kind.kind}
    metadata = content.get("metadata", {})
    name = metadata.get("name") or f"{metadata.get('generateName', '')}…"
    return content, Key(namespace or metadata.get("namespace", ""), name)


def _accept(kind: Resource[Any], suffix: str = "") -> str:
    return _PARTIAL.format(suffix) if kind.type is PartialObjectMetadata else _JSON


def _selection(labels: str, fields: str) -> dict[str, str]:
    params = {"labelSelector": labels, "fieldSelector": fields}
    return {name: value for name, value in params.items() if value}


def _based_on(patch: Mapping[str, object], resource_version: str) -> Mapping[str, object]:
    if not resource_version:
        return patch
    metadata = patch.get("metadata", {})
    assert isinstance(metadata, Mapping)
    return {**patch, "metadata": {**metadata, "resourceVersion": resource_version}}


def _collection(kind: Resource[Any], namespace: str, *, doing: str) -> str:
    if namespace:
        _check_name(namespace, doing)
    return kind.path(namespace)


def _path(kind: Resource[Any], key: Key, subresource: str = "", *, doing: str) -> str:
    if kind.namespaced:
        _check_name(key.namespace, doing)
    _check_name(key.name, doing)
    return kind.path(key.namespace, key.name, subresource)


def _check_name(name: str, doing: str) -> None:
    """Names come from users: one with a slash in it would be the path of another object."""
    if not _NAME.fullmatch(name):
        raise NotFound(404, "NotFound", f"{name!r} is not a name that an object can have", doing=doing)


def _decode(kind: Resource[T], body: bytes, key: Key) -> T:
    try:
        return named(kind, msgspec.json.decode(body, type=kind.type))
    except msgspec.ValidationError as error:
        raise unreadable(kind, key, error) from error
    except msgspec.DecodeError as error:
        raise Unreadable(f"{kind.kind} {key}: the answer of the API is not JSON ({error})") from error
