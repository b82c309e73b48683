"""The admission rules of our kinds, asked by this server: their findings in the words of the API, and what they see of the rest.

The rules are pure and know no store. `Admission` shows them other objects as readers see them; a write under way in the same
millisecond is not among these, as it would not be on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ingot.api import admission
from ingot.api.admission import FieldError
from ingot.api.meta import Key, Resource
from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.store import Store


class Admission:
    def __init__(self, store: Store, registry: Registry) -> None:
        self._others = _Stored(store, registry)

    def written(self, kind: Kind, new: Document, old: Document | None) -> list[Cause]:
        """What is wrong with creating `new`, or with making `old` into `new`."""
        return _causes(admission.check(kind.group, kind.kind, new, old, self._others))

    def deleted(self, kind: Kind, old: Document) -> list[Cause]:
        """What is wrong with deleting `old`."""
        return _causes(admission.check_deletion(kind.group, kind.kind, old, self._others))


class _Stored:
    """Other objects, from the store of this server."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    def get(self, resource: Resource[Any], key: Key) -> Document | None:
        kind = self._kind(resource)
        found = self._store.get(kind, key) if kind is not None else None
        return found.document() if found is not None else None

    def mentioning(self, resource: Resource[Any], text: str) -> Iterator[Document]:
        kind = self._kind(resource)
        # Looking for the bytes first costs a hundredth of reading every object.
        wanted = encode(text)
        items = self._store.collection(kind).items.values() if kind is not None else ()
        return (item.document() for item in items if wanted in item.body)

    def _kind(self, resource: Resource[Any]) -> Kind | None:
        """None where the server was started without this kind."""
        return self._registry.at(resource.group, resource.version, resource.plural)


def _causes(errors: Iterable[FieldError]) -> list[Cause]:
    return [
        cause(
            error.kind.value,
            error.path,
            error.message,
            shown="" if error.value is None else encode(error.value).decode(),
        )
        for error in errors
    ]
