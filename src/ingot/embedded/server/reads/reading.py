"""Getting and listing, a page at a time.

A list is a snapshot: the pages that follow the first show the collection as it was then, whatever happened since. The
continue token holds that version and the last key shown; nothing is kept for it on the server, so it cannot leak or
be lost.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, is_count
from ingot.embedded.server.errors import bad_request, not_found, version_too_new
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.selectors import EVERYTHING, Selector
from ingot.embedded.server.storage.collection import Collection
from ingot.embedded.server.storage.objects import Stored
from ingot.embedded.server.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a client wants to see of a collection."""

    namespace: str = ""
    selector: Selector = EVERYTHING
    limit: int = 0
    token: str = ""
    version: str = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    items: list[Stored]
    metadata: Document


class _Token(msgspec.Struct, frozen=True):
    version: int
    namespace: str
    name: str


def get(store: Store, kind: Kind, key: Key, version: str = "") -> Stored:
    """The object as it is. `version` is what the client has seen already."""
    if version not in ("", "0"):
        _seen(store, version)
    found = store.get(kind, key)
    if found is None:
        raise not_found(kind, key.name)
    return found


def page(store: Store, kind: Kind, query: Query) -> Page:
    collection = store.collection(kind)
    version, after = _starting_point(store, query)
    matching = _matching(collection, store.version, version, query, after)
    items: list[Stored] = []
    metadata: Document = {"resourceVersion": str(version)}
    for item in matching:
        if query.limit and len(items) == query.limit:
            last = items[-1].key
            metadata["continue"] = _encoded(_Token(version, last.namespace, last.name))
            if query.selector.everything:
                metadata["remainingItemCount"] = 1 + sum(1 for _ in matching)
            break
        items.append(item)
    return Page(items, metadata)


def parsed_version(text: str) -> int:
    if not is_count(text):
        raise bad_request(
            f'resourceVersion: Invalid value: "{text[:40]}": must be a number that this API gave out'
        )
    return int(text)


def _starting_point(store: Store, query: Query) -> tuple[int, Key | None]:
    if query.token:
        token = _decoded(query.token)
        if token.version > store.version:
            raise bad_request("the continue token is not valid: this API has not given it out")
        return token.version, Key(token.namespace, token.name)
    if query.version not in ("", "0"):
        asked = _seen(store, query.version)
        if query.exact:
            return asked, None
    return store.version, None


def _seen(store: Store, text: str) -> int:
    """A version that a client says it has seen, which then must have been."""
    asked = parsed_version(text)
    if asked > store.version:
        raise version_too_new(asked, store.version)
    return asked


def _matching(
    collection: Collection, current: int, version: int, query: Query, after: Key | None
) -> Iterable[Stored]:
    def selected(items: Iterable[Stored]) -> Iterable[Stored]:
        return (item for item in items if query.selector.matches(item.selectable))

    if version == current or not collection.after(version):
        if query.namespace and (name := query.selector.name()) is not None:
            only = collection.items.get(Key(query.namespace, name))
            return iter(selected([only] if only and (after is None or only.key > after) else []))
        return iter(selected(collection.items[key] for key in collection.keys(query.namespace, after)))
    items = collection.at(version)
    keys = sorted(
        key
        for key in items
        if (not query.namespace or key.namespace == query.namespace) and (after is None or key > after)
    )
    return iter(selected(items[key] for key in keys))


def _encoded(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _decoded(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise bad_request(
            "the continue token is not valid: pass on the one from the last page, unchanged"
        ) from None
