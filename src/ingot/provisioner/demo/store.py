"""The file that the machines survive in.

One SQLite file in WAL mode. A change is answered for once it is committed, so `kill -9` at any moment loses nothing that
anybody was told: a commit has left the process when it returns. It is not synced to the disk each time; a power cut may take the
last moments, never the file. One thread writes, and commits in one transaction everything that waits: a thousand changes share
the price of one.

Whoever opens the file owns it. An earlier owner that comes back to life (stopped, swapped out, without its Lease) finds at its
next write that it was overtaken, and writes no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from ingot.api.meta import Key
from ingot.provisioner.demo.errors import DemoStateError, NotWritten, Overtaken

log = logging.getLogger(__name__)

FORMAT: Final = 1
RETRY: Final = 1.0
"""Seconds until a file that could not be written is tried again."""
AT_A_TIME: Final = 1_000
"""Machines that are encoded without letting others run in between."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS machine (
    namespace TEXT, name TEXT, body BLOB NOT NULL, PRIMARY KEY (namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO fact VALUES ('owner', 0);
"""

T = TypeVar("T")
Row = tuple[str, str, bytes]


@dataclass(frozen=True, slots=True)
class Kept:
    """What was in the file."""

    machines: dict[Key, bytes]
    facts: dict[str, bytes]


class Store:
    """`note` what changed, and wait for `written` before you speak of it. Without a path nothing outlives the process."""

    def __init__(self, path: Path | None, encode: Callable[[Key], bytes]) -> None:
        self._path = path
        self._encode = encode
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="demo machines")
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        self._noted: dict[Key, None] = {}
        self._facts: dict[str, bytes] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self.trouble: NotWritten | Overtaken | None = None
        """Why nothing is written at the moment."""

    async def open(self) -> Kept:
        """Take the file over. Raises `DemoStateError` when it cannot be used."""
        if self._path is None:
            return Kept({}, {})
        try:
            kept = await self._in_thread(self._opened, self._path)
        except DemoStateError:
            self._thread.shutdown(wait=False)
            raise
        self._writing = asyncio.create_task(self._write_until_cancelled(), name="write the demo machines")
        return kept

    def note(self, key: Key) -> None:
        """This machine changed."""
        if self._writing is not None:
            self._noted[key] = None
            self._wake.set()

    def note_fact(self, name: str, value: bytes) -> None:
        if self._writing is not None:
            self._facts[name] = value
            self._wake.set()

    async def written(self) -> None:
        """Wait until everything that was noted so far is in the file. Raises `BackendUnavailable` when it cannot be."""
        if self.trouble is not None:
            raise self.trouble
        if self._writing is not None and (self._noted or self._facts):
            done = asyncio.get_running_loop().create_future()
            self._waiting.append(done)
            await done

    async def close(self) -> None:
        """Write what is left, and let go of the file."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
            self._writing = None
            with contextlib.suppress(NotWritten, Overtaken):
                await self._write()
        if self._connection is not None:
            await self._in_thread(self._connection.close)
        self._thread.shutdown(wait=False)

    async def _write_until_cancelled(self) -> None:
        while True:
            await self._wake.wait()
            try:
                await self._write()
                self.trouble = None
            except Overtaken as error:
                self.trouble = error
                log.error("%s", error)
                _tell(self._waiting, error)
                return
            except NotWritten as error:
                if self.trouble is None:
                    log.error("%s", error)
                self.trouble = error
                await asyncio.sleep(RETRY)

    async def _write(self) -> None:
        self._wake.clear()
        noted, self._noted = self._noted, {}
        facts, self._facts = self._facts, {}
        waiting, self._waiting = self._waiting, []
        try:
            rows = await self._encoded(list(noted))
            await self._in_thread(self._commit, rows, facts)
        except BaseException as error:
            # Cancelled or failed: it is still to be written, unless it has changed once more.
            self._noted = noted | self._noted
            self._facts = facts | self._facts
            self._wake.set()
            unavailable = isinstance(error, NotWritten | Overtaken)
            _tell(waiting, error if unavailable else NotWritten("the demo back end is closing"))
            raise
        for done in waiting:
            if not done.done():
                done.set_result(None)

    async def _encoded(self, keys: Sequence[Key]) -> list[Row]:
        rows: list[Row] = []
        for start in range(0, len(keys), AT_A_TIME):
            if start:
                await asyncio.sleep(0)
            rows += [(*key, self._encode(key)) for key in keys[start : start + AT_A_TIME]]
        return rows

    async def _in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    # In the thread

    def _opened(self, path: Path) -> Kept:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error
        try:
            self._owner, kept = _taken_over(connection)
        except (sqlite3.Error, DemoStateError) as error:
            connection.close()
            raise _unusable(path, error) from error
        self._connection = connection
        return kept

    def _commit(self, rows: Sequence[Row], facts: dict[str, bytes]) -> None:
        assert self._connection is not None
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if _owner(connection) != self._owner:
                    raise Overtaken(
                        f"another operator has opened {self._path} since: this one does not touch the demo machines any more"
                    )
                connection.executemany("INSERT OR REPLACE INTO machine VALUES (?, ?, ?)", rows)
                connection.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", list(facts.items()))
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise NotWritten(
                f"the demo machines' file {self._path} cannot be written: {error}. It is tried again."
            ) from error


def _tell(waiting: Sequence[asyncio.Future[None]], error: BaseException) -> None:
    """Tells those who wait, but for those who gave up."""
    for done in waiting:
        if not done.done():
            done.set_exception(error)


def _taken_over(connection: sqlite3.Connection) -> tuple[int, Kept]:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    if version not in (0, FORMAT):
        raise DemoStateError(f"it has format {version}, and this version of Ingot knows format {FORMAT}")
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.strip().split(";\n"):
        connection.execute(statement)
    connection.execute("UPDATE fact SET value = value + 1 WHERE name = 'owner'")
    owner = _owner(connection)
    machines = {
        Key(namespace, name): body
        for namespace, name, body in connection.execute("SELECT namespace, name, body FROM machine")
    }
    facts = dict(connection.execute("SELECT name, value FROM fact WHERE name != 'owner'").fetchall())
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")
    return owner, Kept(machines, facts)


def _owner(connection: sqlite3.Connection) -> int:
    ((owner,),) = connection.execute("SELECT value FROM fact WHERE name = 'owner'").fetchall()
    return int(owner)


def _unusable(path: Path, error: Exception) -> DemoStateError:
    return DemoStateError(
        f"the demo machines' file {path} cannot be used: {error}. Repair it, or remove it to start with new machines."
    )
