"""The ledger: what all servers must still know after the farm was killed, in one SQLite file.

A record is changed in memory, and `save` returns when the change is on disk; whoever acknowledges something saves first. Saves
that wait at the same time become one transaction, so a thousand servers that boot together share their disk syncs. Labs that
were built with one file a server are read on: the file becomes a row and goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from ingot.lab.errors import LabError
from ingot.lab.record import Record

_BATCH: Final = 100
"""Records of one transaction: they are encoded in one go, and nothing else runs meanwhile."""
_PUT: Final = "INSERT INTO records VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET record = excluded.record"


class Ledger:
    """Open it, `close` it. One a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = folder / "servers.db"
        os.close(os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600))
        try:
            self._database = _opened(self._file)
            self._found: dict[str, bytes] = dict(self._database.execute("SELECT name, record FROM records"))
        except sqlite3.Error as error:
            raise LabError(
                f"{self._file} cannot be read ({error}); restore it, or remove it to have the servers as if they were new"
            ) from error
        self._unsaved: dict[str, tuple[Record, list[asyncio.Future[None]]]] = {}
        self._writing: asyncio.Task[None] | None = None
        # Of its own: in the common threads an acknowledgement would wait behind the images that are written.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")

    def record(self, name: str, *, once_in: Path) -> Record:
        """The server's record: as it was saved, as an older lab kept it in a file, or new."""
        if once_in.exists():
            if name not in self._found:
                self._found[name] = once_in.read_bytes()
                _decoded(self._found[name], str(once_in))
                self._put({name: self._found[name]})
            once_in.unlink()
        content = self._found.pop(name, None)
        return Record() if content is None else _decoded(content, f"the record of {name} in {self._file}")

    async def save(self, name: str, record: Record) -> None:
        """Return when what the record says now is on disk. A caller that is cancelled does not take the write with it."""
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unsaved.setdefault(name, (record, []))[1].append(saved)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="the lab's ledger")
        await saved

    async def close(self) -> None:
        while self._writing is not None:
            await asyncio.wait([self._writing])
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown()

    async def _write(self) -> None:
        try:
            while self._unsaved:
                rows, waiting = self._next_batch()
                try:
                    await asyncio.get_running_loop().run_in_executor(self._thread, self._put, rows)
                except OSError as error:
                    _settle(waiting, error)
                else:
                    _settle(waiting, None)
        finally:
            self._writing = None

    def _next_batch(self) -> tuple[dict[str, bytes], list[asyncio.Future[None]]]:
        rows: dict[str, bytes] = {}
        waiting: list[asyncio.Future[None]] = []
        for name in list(self._unsaved)[:_BATCH]:
            record, saved = self._unsaved.pop(name)
            try:
                rows[name] = msgspec.json.encode(record)
            except (
                Exception
            ) as error:  # a bug of whoever put it there, who hears of it; the others are not to suffer
                _settle(saved, error)
            else:
                waiting += saved
        return rows, waiting

    def _put(self, rows: dict[str, bytes]) -> None:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany(_PUT, rows.items())
                self._database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # a failed commit may have rolled back itself
                    self._database.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise OSError(f"{self._file} cannot be written: {error}") from error


def _opened(file: Path) -> sqlite3.Connection:
    # One thread at a time uses it, but not always the same one.
    database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(
        "CREATE TABLE IF NOT EXISTS records (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID"
    )
    return database


def _decoded(content: bytes, what: str) -> Record:
    try:
        return msgspec.json.decode(content, type=Record)
    except msgspec.DecodeError as error:
        raise LabError(
            f"{what} cannot be read ({error}); restore it, or remove it to have the server as if it were new"
        ) from error


def _settle(waiting: list[asyncio.Future[None]], error: Exception | None) -> None:
    for saved in waiting:
        if saved.done():  # its caller was cancelled
            continue
        if error is None:
            saved.set_result(None)
        else:
            saved.set_exception(error)
