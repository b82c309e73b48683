"""Watches: a collection's changes, as they happen, to whoever keeps a connection open.

A watcher holds no queue, only its place in the collection's history; however slow it is, it costs nothing but its
connection, and when the history has moved past it, it is told to list again (410). With a selector, an object that
begins to match is ADDED and one that ceases to match is DELETED. Bookmarks tell a quiet watcher how far it has come.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ingot.embedded.server.documents import Document, encode, in_pieces
from ingot.embedded.server.errors import Refused, expired
from ingot.embedded.server.face.rendering import View
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.selectors import EVERYTHING, Selector
from ingot.embedded.server.reads.reading import parsed_version
from ingot.embedded.server.storage.bell import Listener
from ingot.embedded.server.storage.collection import Change, Collection
from ingot.embedded.server.storage.objects import Stored
from ingot.embedded.server.storage.store import Store

BOOKMARK_EVERY: Final = 60.0
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchQuery:
    namespace: str = ""
    selector: Selector = EVERYTHING
    version: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: float = 0.0


def events(store: Store, kind: Kind, query: WatchQuery, view: View) -> AsyncIterator[bytes]:
    """JSON lines, in chunks that are ready to be sent, until the time is up, the kind changes or goes, or the server stops.

    A query that cannot be answered is refused here and now, before anything is sent.
    """
    collection = store.collection(kind)
    return _stream(store, collection, collection.era, query, view, _first_version(store, query))


async def _stream(
    store: Store, collection: Collection, era: int, query: WatchQuery, view: View, cursor: int | None
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    patience = query.timeout or random.uniform(1800, 3600)  # noqa: S311 (spreads reconnects; no secret)
    deadline = loop.time() + patience
    if cursor is None:
        cursor = store.version
        # All of it is taken now: what changes while it is sent comes afterwards, as a change.
        there = _initial(collection, query)
        for chunk in in_pieces(_line("ADDED", view.event(item)) for item in there):
            yield chunk
            # Sending waits only for a slow reader; a fast one must not keep everybody else waiting.
            await asyncio.sleep(0)
        if query.initial_events and query.bookmarks:
            yield _bookmark(view, cursor, annotations={_INITIAL_EVENTS_END: "true"})
    next_bookmark = loop.time() + BOOKMARK_EVERY * random.uniform(0.5, 1)  # noqa: S311 (spreads load; no secret)
    if not query.bookmarks:
        next_bookmark = deadline
    now = loop.time()
    with Listener(collection.bell) as listener:
        while True:
            try:
                changes = collection.after(cursor)
            except Refused as gone:
                yield _line("ERROR", encode(gone.status()))
                return
            cursor = store.version
            for chunk in in_pieces(_relevant(changes, query, view)):
                yield chunk
            if query.bookmarks and now >= min(next_bookmark, deadline):
                yield _bookmark(view, cursor)
                next_bookmark = now + BOOKMARK_EVERY
            if now >= deadline or store.closing or collection.era != era:
                return
            # What came while we sent has rung already; only when there is nothing new is it time to wait.
            is_up_to_date = cursor == store.version
            now = await listener.wait(min(next_bookmark, deadline)) if is_up_to_date else loop.time()


def _first_version(store: Store, query: WatchQuery) -> int | None:
    """The version to go on from, or None for: first all that is there."""
    if query.initial_events is False and query.version in ("", "0"):
        return store.version
    if query.initial_events or query.version in ("", "0"):
        return None
    asked = parsed_version(query.version)
    if asked > store.version:
        # We never forget what we gave out, so this number is from another life of the database. Waiting would be for ever.
        raise expired(f"resource version {asked} is not from this API (current: {store.version}); list again")
    return asked


def _initial(collection: Collection, query: WatchQuery) -> list[Stored]:
    items = (collection.items[key] for key in collection.keys(query.namespace))
    return [item for item in items if query.selector.matches(item.selectable)]


def _relevant(changes: Sequence[Change], query: WatchQuery, view: View) -> Iterator[bytes]:
    for change in changes:
        if query.namespace and change.now.key.namespace != query.namespace:
            continue
        if (type_ := seen_as(change, query.selector)) is not None:
            yield _line(type_, view.event(change.now))


def seen_as(change: Change, selector: Selector) -> str | None:
    """What a change means to somebody who sees only what the selector selects."""
    if selector.everything:
        return change.type
    did = change.was is not None and selector.matches(change.was)
    does = change.type != "DELETED" and selector.matches(change.now.selectable)
    match did, does:
        case False, True:
            return "ADDED"
        case True, True:
            return "MODIFIED"
        case True, False:
            return "DELETED"
        case _:
            return None


def _line(type_: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), body)


def _bookmark(view: View, version: int, *, annotations: Document | None = None) -> bytes:
    metadata: Document = {"resourceVersion": str(version)}
    if annotations:
        metadata["annotations"] = annotations
    return _line("BOOKMARK", view.bookmark(metadata))
