"""The objects of one kind as we know them: pure bookkeeping, no I/O.

News comes from three sides, and each is believed in its own way:

- a **list** is the truth as of its version. What is in the cache and not in the list is gone. Only the answers to our own
  writes that came in while the list was under way can be newer than it. It comes in pages, or object by object on a watch that
  tells first what is there; on that one an object may also go again before the list is at its end.
- a **watch** tells every change in order. What is older than an entry is dropped: our own write was faster than its echo.
- the **answer to our own write** (`observe`) counts at once, unless the cache has seen later versions already: then an object
  that is not in the cache has been deleted since, and must not come back from the dead. The same holds for an object whose end
  our own write was, when older news of it come in after that.

After any sequence of lists, watches and own writes the cache equals what the API held at the last version seen, or is ahead
of it by our own writes. An entry holds no bytes but its own: a kind with undecoded parts says how to cut them out of the page or
the stretch of a watch that they came in (`compact`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from ingot.api.meta import Key, Object
from ingot.kube.versions import is_older

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
IndexFunction = Callable[[T], Iterable[str]]


class Change(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An entry that came (`old` is None), changed, or went (`new` is None). `initial`: part of the very first list."""

    key: Key
    old: T | None
    new: T | None
    initial: bool


class HistoryWentBack(Exception):
    """The API tells of versions before those it told of earlier: it was restored from a backup, or begun anew."""


class Cache(Generic[T]):
    """Entries by key and by index."""

    def __init__(
        self, indexes: Mapping[str, IndexFunction[T]], *, compact: Callable[[T], T] | None = None
    ) -> None:
        self._compact = compact
        self.version = ""
        """All changes up to this version are in; "" before the first list has ended."""
        self._entries: dict[Key, T] = {}
        self._index_functions = dict(indexes)
        self._indexes: dict[str, dict[str, set[Key]]] = {name: {} for name in indexes}
        self._listed: set[Key] | None = None
        self._written_meanwhile: set[Key] = set()
        self._ended: dict[Key, str] = {}
        """What our own writes ended, each with the version of the answer, until the end is told by the watch or a list."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> T | None:
        return self._entries.get(key)

    def items(self) -> list[T]:
        return list(self._entries.values())

    def by_index(self, name: str, value: str) -> list[T]:
        return [self._entries[key] for key in sorted(self._indexes[name].get(value, ()))]

    # A list

    def begin_list(self) -> None:
        self._listed, self._written_meanwhile = set(), set()

    def listed(self, found: T) -> Change[T] | None:
        assert self._listed is not None, "begin_list comes first"
        key = found.key
        self._listed.add(key)
        known = self._entries.get(key)
        if key in self._written_meanwhile and (
            self._is_from_before_its_end(key, found) if known is None else _older(found, known)
        ):
            return None
        return self._store(key, known, found)

    def unlisted(self, key: Key, version: str) -> Change[T] | None:
        """What the list showed, or did not show yet, went while it was under way."""
        assert self._listed is not None, "begin_list comes first"
        self._listed.discard(key)
        known = self._entries.get(key)
        if known is None or (key in self._written_meanwhile and _is_before(version, known)):
            return None
        return self._forget(key)

    def end_list(self, version: str) -> list[Change[T]]:
        """Forget what the list did not show, and stand at its version."""
        assert self._listed is not None, "begin_list comes first"
        missing = [
            key
            for key, entry in self._entries.items()
            if key not in self._listed and not (key in self._written_meanwhile and _is_before(version, entry))
        ]
        gone = [change for key in missing if (change := self._forget(key)) is not None]
        self.version = version
        self._listed = None
        self._ended = {
            key: ended
            for key, ended in self._ended.items()
            if key in self._written_meanwhile and not is_older(ended, version)
        }
        return gone

    # A watch

    def put(self, seen: T) -> Change[T] | None:
        self._advance(seen.metadata.resource_version)
        key = seen.key
        known = self._entries.get(key)
        if self._is_from_before_its_end(key, seen) or (known is not None and _older(seen, known)):
            return None
        return self._store(key, known, seen)

    def remove(self, key: Key, version: str) -> Change[T] | None:
        self._advance(version)
        if not is_older(version, self._ended.get(key, "")):
            self._ended.pop(key, None)
        known = self._entries.get(key)
        return None if known is None or _is_before(version, known) else self._forget(key)

    def bookmark(self, version: str) -> None:
        if not is_older(version, self.version):
            self.version = version

    # Our own writes

    def observe(self, written: T) -> Change[T] | None:
        key, version = written.key, written.metadata.resource_version
        known = self._entries.get(key)
        if self._is_from_before_its_end(key, written) or (known is not None and _older(written, known)):
            return None
        if known is None and not is_older(self.version, version) and _comparable(self.version, version):
            return None
        if self._listed is not None:
            self._written_meanwhile.add(key)
        if _was_its_end(written):
            self._ended[key] = version
            return self._forget(key)
        return self._store(key, known, written)

    def _is_from_before_its_end(self, key: Key, told: T) -> bool:
        if not self._ended or (ended := self._ended.get(key)) is None:
            return False
        version = told.metadata.resource_version
        return version == ended or is_older(version, ended)

    def _advance(self, version: str) -> None:
        if is_older(version, self.version):
            raise HistoryWentBack(f"version {version} was told after version {self.version}")
        self.version = version

    def _store(self, key: Key, old: T | None, new: T) -> Change[T] | None:
        if old is not None and _same(old, new):
            return None
        if self._compact is not None:
            new = self._compact(new)
        self._entries[key] = new
        if self._indexes:
            self._reindex(key, old, new)
        return Change(key, old, new, initial=not self.version)

    def _forget(self, key: Key) -> Change[T] | None:
        old = self._entries.pop(key, None)
        if old is None:
            return None
        self._reindex(key, old, None)
        return Change(key, old, None, initial=not self.version)

    def _reindex(self, key: Key, old: T | None, new: T | None) -> None:
        for name, index in self._indexes.items():
            before, after = self._values(name, old), self._values(name, new)
            for value in before - after:
                index[value].discard(key)
                if not index[value]:
                    del index[value]
            for value in after - before:
                index.setdefault(value, set()).add(key)

    def _values(self, name: str, entry: T | None) -> set[str]:
        return set() if entry is None else set(self._index_functions[name](entry))


def _older(one: Object, than: Object) -> bool:
    return is_older(one.metadata.resource_version, than.metadata.resource_version)


def _is_before(version: str, entry: Object) -> bool:
    return is_older(version, entry.metadata.resource_version)


def _comparable(one: str, other: str) -> bool:
    return one.isdecimal() and other.isdecimal()


def _same(one: Object, other: Object) -> bool:
    version = one.metadata.resource_version
    return (
        bool(version)
        and version == other.metadata.resource_version
        and one.metadata.uid == other.metadata.uid
    )


def _was_its_end(written: Object) -> bool:
    """Our write took the last finalizer off an object that was being deleted: the answer is its last picture."""
    metadata = written.metadata
    return (
        metadata.deletion_timestamp is not None
        and not metadata.finalizers
        and not metadata.deletion_grace_period_seconds
    )
