"""All objects in memory, every change in order, and a file that remembers both.

The rules that everything else rests on:

- A version is the place of a change in the one order of all changes; it never goes back, not even over a restart.
- A write is decided on `head`, which knows the writes under way; it becomes visible, to readers and watchers alike,
  when it is on disk. Between reading `head` and calling `put` or `remove` there must be no `await`: that is what
  makes a decision atomic.
- A collection remembers its changes for a while. Whoever asks for what is forgotten is told so, and lists again.
- There is one collection for each home of a kind, and it holds objects in the form of that home as it is now, or as it
  was when they were made: `Stored.kind` says which. A collection that is opened later knows nothing of what was before;
  watchers of a collection that changes its kind or closes are told by its `era`.
- What is on disk of a kind that nobody opened, or that was closed before it was empty, stays there, for the day when
  somebody opens it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from ingot.api.meta import Key
from ingot.embedded.server import unforeseen
from ingot.embedded.server.documents import Document, decode, encode
from ingot.embedded.server.errors import definition_ends, internal, unknown_path
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.kinds.selectors import Selectable
from ingot.embedded.server.storage.collection import Change, Collection
from ingot.embedded.server.storage.database import Database, ObjectRow, Overtaken, Row
from ingot.embedded.server.storage.objects import Stored, stored

log = logging.getLogger(__name__)


class Store:
    """Every collection of a server, on one file."""

    def __init__(self, path: Path, registry: Registry, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._collections = {kind.resource: Collection(kind) for kind in registry.homes()}
        # What was found on disk of kinds that nobody opened yet.
        self._unclaimed: dict[str, list[ObjectRow]] = {}
        self._unclaimed_log: dict[str, list[Row]] = {}
        # Collections that were closed with objects in them.
        self._left: dict[str, Collection] = {}
        self._log_floor = 0
        self._starting = True
        self._waiting: dict[int, tuple[Change, asyncio.Future[Stored]]] = {}
        self._head: dict[tuple[str, Key], tuple[int, Stored | None]] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self._epoch = 0
        # The version of the last change that is on disk, and of the last one that was handed out.
        self.version = 0
        self._last = 0
        self.trouble = ""
        self.closing = False
        # Called from the writing thread after every transaction: the seconds it took, the writes it held.
        self.on_commit: Callable[[float, int], None] = _nobody_counts
        self._path = path
        self._database = Database(path, self._on_done)
        self._restore()
        self._database.start()

    async def close(self) -> None:
        self.end_watches()
        await asyncio.to_thread(self._database.close)
        # Let the last acknowledgements through.
        await asyncio.sleep(0)

    def end_watches(self) -> None:
        """The server is about to stop: whoever watches is let go."""
        self.closing = True
        for collection in self._collections.values():
            collection.bell.ring()

    def size(self) -> int:
        """What the file and its companions take on disk, in bytes."""
        return self._database.size()

    def collection(self, kind: Kind) -> Collection:
        """The collection of this kind's objects. Raises 404 when the kind went while somebody was asking for it."""
        found = self._collections.get(kind.home.resource)
        if found is None:
            raise unknown_path()
        return found

    def collections(self) -> Sequence[Collection]:
        return tuple(self._collections.values())

    def open(self, kind: Kind, *, changed_at: int = 0) -> None:
        """Keep objects of this kind, from now on in its form; those that are on disk from earlier are there at once.

        The kind is as it is since `changed_at`: objects that were written before are brought into its form.
        """
        there = self._collections.get(kind.resource)
        if there is not None:
            there.turn(kind)
            return
        collection = self._collections[kind.resource] = Collection(kind, since=self.version)
        for row in self._unclaimed.pop(kind.resource, ()):
            collection.place(_restored(kind, row, in_shape=row.version >= changed_at))
        if (left := self._left.pop(kind.resource, None)) is not None:
            for item in left.items.values():
                collection.place(stored(kind, item.document(kind), version=item.version, at=item.at))
        if self._starting:
            collection.floor = self._log_floor
            for change in self._unclaimed_log.pop(kind.resource, ()):
                self._restore_change(change)
        for item in collection.items.values():
            self._tell(Change("ADDED", kind, item, None, None))

    def started(self) -> None:
        """All kinds that are known at the start are open: the past of others cannot be asked for any more."""
        self._starting = False
        self._unclaimed_log.clear()
        for resource, rows in self._unclaimed.items():
            log.warning(
                "%d objects of %s are on disk, but nothing defines that kind; they are kept and not served",
                len(rows),
                resource,
            )

    def close_collection(self, kind: Kind) -> None:
        """The kind is gone. Who still watches its objects is told by the end of the era."""
        resource = kind.home.resource
        if (collection := self._collections.get(resource)) is None:
            return
        if not self.is_empty(kind):
            # Somebody let the definition go before its objects.
            log.warning("%s is no longer defined; %d objects stay on disk", resource, len(collection.items))
            self._left[resource] = collection
        del self._collections[resource]
        collection.end_era()

    def is_empty(self, kind: Kind) -> bool:
        """Whether there are no objects, and none under way."""
        resource = kind.home.resource
        return not self.collection(kind).items and not any(place[0] == resource for place in self._head)

    def reshape(self, kind: Kind, keys: Iterable[Key]) -> None:
        """Bring these objects into the form their collection has now. Readers see no difference; it is faster for them."""
        collection = self.collection(kind)
        for key in keys:
            item = collection.items.get(key)
            if item is not None and item.kind is not collection.kind:
                document = item.document(collection.kind)
                collection.place(stored(collection.kind, document, version=item.version, at=item.at))

    def subscribe(self, listener: Callable[[Change], None]) -> None:
        """Call this, on the loop, for every change that is on disk. It must not block."""
        self._listeners.append(listener)

    def get(self, kind: Kind, key: Key) -> Stored | None:
        """What is on disk: what a reader may see."""
        return self.collection(kind).items.get(key)

    def head(self, kind: Kind, key: Key) -> Stored | None:
        """What will be, once all writes under way are on disk: what a write is decided on."""
        pending = self._head.get((kind.home.resource, key))
        return pending[1] if pending else self.get(kind, key)

    async def settled(self, item: Stored) -> None:
        """Return when this object, read from `head`, is on disk."""
        if pending := self._waiting.get(item.version):
            await asyncio.shield(pending[1])

    def put(self, kind: Kind, document: Document) -> asyncio.Future[Stored]:
        """Write the object as new or changed. The future is done when it is on disk. Takes the document over."""
        now, before = self._decided(kind, document)
        if before is None and now.kind.terminating:
            # Checked here, where nothing can come in between: what is being emptied must not fill up again.
            raise definition_ends(now.kind, now.key.name)
        self._head[now.kind.resource, now.key] = (now.version, now)
        return self._submit(_change("MODIFIED" if before else "ADDED", now.kind, now, before))

    def remove(self, kind: Kind, document: Document) -> asyncio.Future[Stored]:
        """Remove the object; the document is its last state, and is taken over."""
        now, before = self._decided(kind, document)
        self._head[now.kind.resource, now.key] = (now.version, None)
        return self._submit(_change("DELETED", now.kind, now, before))

    def _decided(self, kind: Kind, document: Document) -> tuple[Stored, Stored | None]:
        """The object as it will be kept, with its version, and what is there before it."""
        home = self.collection(kind).kind
        if kind is not home:
            document = home.shaped(kind.kept(document))
        now = stored(home, document, version=self._next_version(document), at=self._clock())
        return now, self.head(home, now.key)

    def _next_version(self, document: Document) -> int:
        self._last += 1
        document["metadata"]["resourceVersion"] = str(self._last)
        return self._last

    def _submit(self, change: Change) -> asyncio.Future[Stored]:
        future: asyncio.Future[Stored] = self._loop.create_future()
        self._waiting[change.version] = (change, future)
        was = encode(change.was) if change.was is not None else None
        now = change.now
        row = Row(now.version, change.type, change.kind.resource, *now.key, now.at, now.body, was)
        self._database.submit(self._epoch, row)
        # A client that goes away gives up waiting, and others wait for the same write: `settled`.
        return asyncio.shield(future)

    def _on_done(self, rows: Sequence[Row], error: Exception | None, seconds: float) -> None:
        if error is None and rows:
            self.on_commit(seconds, len(rows))
        self._loop.call_soon_threadsafe(self._finish, rows, error)

    def _finish(self, rows: Sequence[Row], error: Exception | None) -> None:
        if error is None:
            self.trouble = ""
            for row in rows:
                self._make_visible(row.version)
        else:
            self._fail(rows, error)

    def _make_visible(self, version: int) -> None:
        change, future = self._waiting.pop(version)
        self.version = version
        place = (change.kind.resource, change.now.key)
        if self._head.get(place, (0, None))[0] == version:
            del self._head[place]
        resource = change.kind.resource
        (self._collections.get(resource) or self._left[resource]).apply(change)
        self._tell(change)
        future.set_result(change.now)

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            try:
                listener(change)
            except Exception as error:  # the write is on disk: its writer, and everybody else, must be told
                unforeseen.tell(log, f"following version {change.version} of {change.kind.resource}", error)

    def _fail(self, rows: Sequence[Row], error: Exception) -> None:
        if not isinstance(error, Overtaken):
            log.error("the API's database refused %d writes: %s", len(rows), error)
            self.trouble = (
                f"the database {self._path} refuses writes ({error}); reading goes on. "
                "If its disk is full, make room: it is tried again every second"
            )
            # What was decided on top of a failed write never was; the writer refuses the rest of this epoch by itself.
            self._head.clear()
            self._epoch += 1
        for row in rows:
            _, future = self._waiting.pop(row.version)
            future.set_exception(internal(f"{self.trouble}; nothing was changed"))

    def _restore(self) -> None:
        for row in self._database.objects():
            self._last = max(self._last, row.version)
            if (collection := self._collections.get(row.resource)) is not None:
                collection.place(_restored(collection.kind, row, in_shape=True))
            else:
                self._unclaimed.setdefault(row.resource, []).append(row)
        first = None
        for entry in self._database.log():
            self._last = max(self._last, entry.version)
            if first is None:
                first = entry.version
                self._log_floor = first - 1
                for collection in self._collections.values():
                    collection.floor = self._log_floor
            if entry.resource in self._collections:
                self._restore_change(entry)
            else:
                self._unclaimed_log.setdefault(entry.resource, []).append(entry)
        self.version = self._last
        for collection in self._collections.values():
            collection.snapshot_floor = self._last

    def _restore_change(self, row: Row) -> None:
        collection = self._collections[row.resource]
        current = collection.items.get(Key(row.namespace, row.name))
        if current is not None and current.version == row.version:
            now = current
        else:
            now = _restored(collection.kind, row, in_shape=True)
        was = Selectable(*_decode_pair(row.was)) if row.was is not None else None
        collection.remember(Change(row.type, collection.kind, now, was, None))


def _restored(kind: Kind, row: ObjectRow | Row, *, in_shape: bool) -> Stored:
    """A row of the file as an object of its kind; one that was written in another form is brought into this one."""
    document = decode(row.body)
    if in_shape and document.get("apiVersion") == kind.api_version:
        return stored(kind, document, version=row.version, at=row.at, body=row.body)
    return stored(kind, kind.shaped(document), version=row.version, at=row.at)


def _nobody_counts(seconds: float, writes: int) -> None:
    """Until somebody does."""


def _change(type_: str, kind: Kind, now: Stored, before: Stored | None) -> Change:
    return Change(type_, kind, now, before.selectable if before else None, before)


def _decode_pair(body: bytes) -> tuple[dict[str, str], dict[str, str]]:
    return msgspec.json.decode(body, type=tuple[dict[str, str], dict[str, str]])
