"""Backup and restore: all objects as one file, taken while the server runs, and put back while it does not.

A backup is the state of one moment: every write that was acknowledged before it began is in it, none is there by half. It
holds Secrets, so only its owner may read it. Keys and tokens of the installation are not in it; they stay in the state
folder.

A restored API has forgotten versions that it gave out before. They must never mean something else: counting goes on a
billion further than anything that is known, and everything before is beyond what watches can ask for, so that every client
is told to list again. (etcd's restore can do the same.) The file that was replaced is kept beside the new one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingot.embedded.server.errors import StateError
from ingot.embedded.server.storage import file
from ingot.embedded.server.storage.lock import locked

# Further than anybody can have counted since the backup was made.
FURTHER: Final = 1_000_000_000
# What SQLite keeps beside a file that is in use, or was when its user died.
_COMPANIONS: Final = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Saved:
    path: Path
    objects: int
    version: int


@dataclass(frozen=True, slots=True)
class Restored:
    objects: int
    # Counting goes on from here.
    version: int
    # Where the file that was in its place is now; None when there was none.
    kept: Path | None


def backup(state: Path, target: Path) -> Saved:
    """Write all objects of this state folder to a file. The server may run meanwhile, and is not held up."""
    source = state / "api" / file.NAME
    if target.resolve().is_relative_to(source.parent.resolve()):
        raise StateError(
            f"{target} is where the API keeps its own files. Choose a place outside {source.parent}."
        )
    new = _beside(target)
    try:
        saved = Saved(target, *_copied(source, new))
        _sync(new)
        new.replace(target)
        _sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise StateError(
            f"the backup {target} was not written ({error}); whatever was there before is untouched."
        ) from error
    finally:
        new.unlink(missing_ok=True)
    return saved


def restore(source: Path, state: Path) -> Restored:
    """Put the objects of a backup in the place of those in this state folder, whose server must not run."""
    folder = state / "api"
    with locked(folder):
        path = folder / file.NAME
        new = _beside(path)
        with contextlib.ExitStack() as undo:
            undo.callback(_remove, new, *(new.with_name(new.name + name) for name in _COMPANIONS))
            try:
                objects, newest = _copied(source, new)
                # Before anything opens the old file: SQLite clears away what it cannot make sense of.
                kept = _second_name(path, undo)
                version = max(newest, _newest_of(path)) + FURTHER
                _forget_the_past(new, version)
                _sync(new)
                undo.pop_all()
                # From here on nothing can fail but the disk itself.
                _remove(*(path.with_name(path.name + name) for name in _COMPANIONS))
                new.replace(path)
                _sync(folder)
            except (OSError, sqlite3.Error) as error:
                raise StateError(
                    f"{source} was not restored to {state} ({error}); the objects that were there still are."
                ) from error
    return Restored(objects, version, kept)


def _copied(source: Path, new: Path) -> tuple[int, int]:
    """Copy one moment of a database, whoever writes to it meanwhile. Objects and newest version of the copy, which is whole."""
    with contextlib.closing(file.existing(source)) as connection:
        _create(new)
        try:
            with contextlib.closing(sqlite3.connect(new)) as copy:
                connection.backup(copy)
                # One file that needs no other: whoever copies it away copies all of it.
                copy.execute("PRAGMA journal_mode = DELETE")
                (found,) = copy.execute("PRAGMA integrity_check").fetchone()
                if found != "ok":
                    raise file.damaged(source, found)
                return _counted(copy)
        except sqlite3.DatabaseError as error:
            # A full disk is no damage, and has its own sentence.
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise file.damaged(source, error) from error


def _counted(connection: sqlite3.Connection) -> tuple[int, int]:
    (objects, newest) = connection.execute(
        "SELECT count(*), coalesce(max(version), 0) FROM object"
    ).fetchone()
    (logged,) = connection.execute("SELECT coalesce(max(version), 0) FROM log").fetchone()
    return int(objects), max(int(newest), int(logged))


def _newest_of(path: Path) -> int:
    """The newest version in a file that is about to be replaced, as far as it can still be read."""
    try:
        with contextlib.closing(file.existing(path)) as connection:
            _, newest = _counted(connection)
            # All of it in one file: what is in the log beside it must not meet the new file.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return newest
    except (StateError, sqlite3.Error):
        return 0


def _forget_the_past(path: Path, version: int) -> None:
    """A log that begins at this version: whoever asks for anything older is told to list again."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM log")
        connection.execute(
            "INSERT INTO log VALUES (?, 'RESTORED', '', '', '', ?, x'', NULL)", (version, time.time())
        )
        connection.execute("COMMIT")


def _second_name(path: Path, undo: contextlib.ExitStack) -> Path | None:
    """Give the file, and the log beside it, a second name under which they stay. They also stay in their place for now."""
    if not path.exists():
        return None
    kept = path.with_name(f"{path.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    for name in ("", "-wal"):
        there = path.with_name(path.name + name)
        if there.exists():
            aside = kept.with_name(kept.name + name)
            aside.hardlink_to(there)
            undo.callback(_remove, aside)
    return kept


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _create(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
