"""A collection: the objects of one kind, and the recent changes to them.

Nothing here knows the disk: `store` says what happened, in the order in which it did. What is remembered of the past is
bounded; whoever asks for what is forgotten is told so, and lists again.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ingot.api.meta import Key
from ingot.embedded.server.errors import expired
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.selectors import Selectable
from ingot.embedded.server.storage.bell import Bell
from ingot.embedded.server.storage.objects import Stored

# A collection remembers at least so many changes, and those of so many seconds, as long as they fit in so many bytes.
HISTORY_EVENTS: Final = 10_000
HISTORY_SECONDS: Final = 300.0
HISTORY_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One step of a collection.

    `was` is what selectors saw before; `before` is the object itself, None where that was before our start.
    """

    type: str
    kind: Kind
    now: Stored
    was: Selectable | None
    before: Stored | None

    @property
    def version(self) -> int:
        return self.now.version


class Collection:
    """The objects of one kind, sorted by key, and the recent changes to them.

    Nothing is known of the time before `since`.
    """

    def __init__(self, kind: Kind, *, since: int = 0) -> None:
        self.kind = kind
        # Counts up when the kind changes or goes: what was derived from it before no longer holds.
        self.era = 0
        self.items: dict[Key, Stored] = {}
        self._keys: list[Key] = []
        self._changes: list[Change] = []
        self._bytes = 0
        # Changes up to here are forgotten.
        self.floor = since
        # Objects as they were can be had for versions from here on.
        self.snapshot_floor = since
        # Rings when there is something new to see, or nothing more.
        self.bell = Bell()

    def apply(self, change: Change) -> None:
        key = change.now.key
        if change.type == "DELETED":
            self.drop(key)
        else:
            self.place(change.now)
        self.remember(change)
        self.bell.ring()

    def turn(self, kind: Kind) -> None:
        """The kind is defined anew: from now on objects are kept in the form of this one."""
        ending = kind.terminating and not self.kind.terminating
        self.kind = kind
        # A kind that begins to go looks as before, and its watchers want to see its objects go.
        if not ending:
            self.end_era()

    def end_era(self) -> None:
        self.era += 1
        self.bell.ring()

    def place(self, item: Stored) -> None:
        if item.key not in self.items:
            bisect.insort(self._keys, item.key)
        self.items[item.key] = item

    def drop(self, key: Key) -> None:
        if self.items.pop(key, None) is not None:
            del self._keys[bisect.bisect_left(self._keys, key)]

    def remember(self, change: Change) -> None:
        self._changes.append(change)
        self._bytes += len(change.now.body)
        if self._bytes > HISTORY_BYTES:
            # Large objects make room a quarter at a time. At least the newest change stays, however large it is.
            self._forget(max(len(self._changes) // 4, len(self._changes) - HISTORY_EVENTS))
        elif len(self._changes) > HISTORY_EVENTS + 1_000:
            horizon = change.now.at - HISTORY_SECONDS
            if self._changes[1_000].now.at < horizon:
                self._forget(1_000)

    def _forget(self, count: int) -> None:
        if (count := min(count, len(self._changes) - 1)) > 0:
            self.floor = self._changes[count - 1].version
            self._bytes -= sum(len(change.now.body) for change in self._changes[:count])
            del self._changes[:count]

    def after(self, version: int) -> Sequence[Change]:
        """What happened since then. Raises 410 when that is no longer known."""
        if version < self.floor:
            raise expired(f"too old resource version: {version} ({self.floor + 1})")
        return self._changes[bisect.bisect_right(self._changes, version, key=lambda change: change.version) :]

    def keys(self, namespace: str, after: Key | None = None) -> Iterable[Key]:
        """Keys in order: of one namespace, or of all; after a key, or from the start."""
        start = bisect.bisect_left(self._keys, Key(namespace, ""))
        if after is not None:
            start = max(start, bisect.bisect_right(self._keys, after))
        end = bisect.bisect_left(self._keys, Key(namespace + "\0", "")) if namespace else len(self._keys)
        return self._keys[start:end]

    def is_empty(self, namespace: str) -> bool:
        """Whether nothing is in this namespace."""
        start = bisect.bisect_left(self._keys, Key(namespace, ""))
        return start == len(self._keys) or self._keys[start].namespace != namespace

    def at(self, version: int) -> dict[Key, Stored]:
        """The objects as they were at that version. Raises 410 when that is no longer known."""
        if version < max(self.floor, self.snapshot_floor):
            raise expired(
                "The provided continue parameter is too old: the list has changed too much since; list again"
            )
        items = dict(self.items)
        for change in reversed(self.after(version)):
            if change.before is None:
                items.pop(change.now.key, None)
            else:
                items[change.now.key] = change.before
        return items
