"""The SQLite file: objects as they are, and a bounded log of how they came to be so.

One thread writes. It takes everything that waits and commits it as one transaction, synced to disk before anybody is
told: an acknowledged write survives `kill -9` and a power cut, and a hundred writers share the price of one sync.
Reading happens once, at the start; afterwards the memory of `store` answers.

A transaction that fails takes with it every write that was decided on top of it: those carry the same epoch.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ingot.embedded.server.errors import ServerError
from ingot.embedded.server.storage import file

# The log holds at least so much: whoever comes back after a short while need not list again …
LOG_ROWS: Final = 10_000
LOG_SECONDS: Final = 300.0
# … and at most so many bytes, unless one write alone is larger.
LOG_BYTES: Final = 256 * 1024 * 1024
_BATCH: Final = 256
_TRIM_BATCH: Final = 1_000
_TRIM_AGAIN_AFTER: Final = 5.0
# While writes are refused, this often it is tried whether they still are.
_PROBE_EVERY: Final = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """One change: the object as it is now (or as it last was), and what selectors saw of it before."""

    version: int
    type: str
    resource: str
    namespace: str
    name: str
    at: float
    body: bytes
    was: bytes | None


@dataclass(frozen=True, slots=True)
class ObjectRow:
    resource: str
    namespace: str
    name: str
    version: int
    at: float
    body: bytes


class Overtaken(ServerError):
    """A write that was decided on top of one that failed."""


class Database:
    """An open file and the thread that writes to it. `on_done` is called from that thread, once a batch."""

    def __init__(self, path: Path, on_done: Callable[[Sequence[Row], Exception | None, float], None]) -> None:
        self._path = path
        self._on_done = on_done
        self._queue: queue.SimpleQueue[tuple[int, Row] | None] = queue.SimpleQueue()
        self._failed_epoch = -1
        self._connection = file.opened(path)
        self._refused = False
        self._trim_from = 0.0
        ((self._log_rows, self._log_bytes),) = self._read(
            "SELECT count(*), coalesce(sum(length(body)), 0) FROM log"
        )
        self._thread = threading.Thread(target=self._write_until_closed, name="api-database", daemon=True)

    def objects(self) -> Iterator[ObjectRow]:
        rows = self._read("SELECT resource, namespace, name, version, at, body FROM object")
        return (ObjectRow(*row) for row in rows)

    def log(self) -> Iterator[Row]:
        rows = self._read(
            "SELECT version, type, resource, namespace, name, at, body, was FROM log ORDER BY version"
        )
        return (Row(*row) for row in rows)

    def _read(self, query: str) -> Iterator[Any]:
        """The rows of a query. A file can be damaged anywhere, so each of them may be the one that cannot be read."""
        try:
            yield from self._connection.execute(query)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise file.unusable(self._path, error) from error

    def start(self) -> None:
        """From here on only the writing thread touches the file."""
        self._thread.start()

    def submit(self, epoch: int, row: Row) -> None:
        self._queue.put((epoch, row))

    def size(self) -> int:
        return file.size(self._path)

    def close(self) -> None:
        """Write what is waiting, then let go of the file."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._connection.close()

    def _write_until_closed(self) -> None:
        while True:
            try:
                first = self._queue.get(timeout=_PROBE_EVERY if self._refused else None)
            except queue.Empty:
                self._probe()
                continue
            if first is None:
                return
            batch, closing = self._drained(first)
            self._write(batch)
            if closing:
                return

    def _probe(self) -> None:
        """Whether the disk takes writes again, found out by one that changes nothing."""
        try:
            self._connection.execute(f"PRAGMA user_version = {file.FORMAT}")
        except sqlite3.Error:
            return
        self._refused = False
        self._on_done([], None, 0)

    def _drained(self, first: tuple[int, Row]) -> tuple[list[tuple[int, Row]], bool]:
        batch = [first]
        while len(batch) < _BATCH:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                break
            if item is None:
                return batch, True
            batch.append(item)
        return batch, False

    def _write(self, batch: Sequence[tuple[int, Row]]) -> None:
        doomed = [row for epoch, row in batch if epoch <= self._failed_epoch]
        if doomed:
            self._on_done(doomed, Overtaken("a write that this one was based on failed"), 0)
        rows = [row for epoch, row in batch if epoch > self._failed_epoch]
        if not rows:
            return
        begun = time.perf_counter()
        try:
            self._commit(rows)
        except Exception as error:  # the edge of the thread: without it no write would ever be answered again
            self._failed_epoch = max(epoch for epoch, _ in batch)
            self._refused = True
            self._on_done(rows, error, time.perf_counter() - begun)
        else:
            self._refused = False
            self._on_done(rows, None, time.perf_counter() - begun)

    def _commit(self, rows: Sequence[Row]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                _apply(connection, row)
            trimmed_rows, trimmed_bytes = self._trim(rows)
            connection.execute("COMMIT")
        except Exception:  # whatever it is, no half of a batch may stay
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._log_rows += len(rows) - trimmed_rows
        self._log_bytes += sum(len(row.body) for row in rows) - trimmed_bytes

    def _trim(self, rows: Sequence[Row]) -> tuple[int, int]:
        """Drop the oldest of the log, a slice at a time so that no commit is slow."""
        too_large = self._log_bytes >= LOG_BYTES
        # The clock is that of the writes: what is young is decided by when it was written, not by when that is looked at.
        now = rows[-1].at
        if not too_large and (self._log_rows < LOG_ROWS + _TRIM_BATCH or now < self._trim_from):
            return 0, 0
        dropped = self._connection.execute(
            "DELETE FROM log WHERE version IN"
            " (SELECT version FROM log WHERE version < ? ORDER BY version LIMIT ?) AND at < ?"
            " RETURNING length(body)",
            (rows[0].version, _TRIM_BATCH, now if too_large else now - LOG_SECONDS),
        ).fetchall()
        if not dropped:
            # All of it is young: not worth a question with every commit.
            self._trim_from = now + _TRIM_AGAIN_AFTER
        return len(dropped), sum(size for (size,) in dropped)


def _apply(connection: sqlite3.Connection, row: Row) -> None:
    connection.execute(
        "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (row.version, row.type, row.resource, row.namespace, row.name, row.at, row.body, row.was),
    )
    if row.type == "DELETED":
        connection.execute(
            "DELETE FROM object WHERE resource = ? AND namespace = ? AND name = ?",
            (row.resource, row.namespace, row.name),
        )
    else:
        connection.execute(
            "INSERT INTO object VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (resource, namespace, name)"
            " DO UPDATE SET version = excluded.version, at = excluded.at, body = excluded.body",
            (row.resource, row.namespace, row.name, row.version, row.at, row.body),
        )
