"""The file itself: what is in it, which format it has, and whether it can be used.

Everything that opens the database does it here: the server, a backup, a restore. A file that cannot be used is left alone,
and the sentence says what to do.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ingot.embedded.server.errors import StateError

NAME: Final = "api.db"
FORMAT: Final = 1
_LOG_FILE_BYTES: Final = 64 * 1024 * 1024

_TABLES: Final = """
CREATE TABLE object (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, at REAL NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE log (
    version INTEGER PRIMARY KEY, type TEXT NOT NULL,
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    at REAL NOT NULL, body BLOB NOT NULL, was BLOB
);
"""


def opened(path: Path) -> sqlite3.Connection:
    """The database of a server, made if it is not there yet."""
    # The file holds Secrets; SQLite gives its companions the mode of the file itself.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise unusable(path, error) from error
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with _closed_on_failure(connection, unusable, path):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        # A long backup makes the log beside the file grow; afterwards its room is given back.
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_FILE_BYTES}")
        if _format(connection, path) == 0:
            connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
    return connection


def existing(path: Path) -> sqlite3.Connection:
    """A database that must be there and be ours, to read from; whoever else uses it is not disturbed."""
    if not path.is_file():
        raise StateError(f"{path} is not there, so there is nothing to read from it.")
    connection = sqlite3.connect(path, isolation_level=None)
    with _closed_on_failure(connection, damaged, path):
        if _format(connection, path) == 0:
            raise StateError(f"{path} holds no objects of this API: it is no database or backup of Ingot.")
    return connection


def damaged(path: Path, error: Exception | str) -> StateError:
    return StateError(f"{path} is damaged or no database ({error}). Nothing was changed; use another backup.")


def unusable(path: Path, error: Exception) -> StateError:
    return StateError(
        f"{path} cannot be used as the API's database ({error}). Put a backup in its place with "
        f"`ingot api-server restore FILE --state {path.parent.parent}`, or move it away to start empty."
    )


def size(path: Path) -> int:
    """Bytes on disk: the file, and the log beside it that SQLite has not yet moved into it."""
    found = 0
    for part in (path, path.with_name(f"{path.name}-wal")):
        with contextlib.suppress(FileNotFoundError):
            found += part.stat().st_size
    return found


def _format(connection: sqlite3.Connection, path: Path) -> int:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > FORMAT:
        raise StateError(
            f"{path} was written by a newer Ingot (format {found}, this one knows {FORMAT}). "
            "Use that version, or another state folder."
        )
    return int(found)


@contextlib.contextmanager
def _closed_on_failure(
    connection: sqlite3.Connection, refusal: Callable[[Path, sqlite3.Error], StateError], path: Path
) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        connection.close()
        raise refusal(path, error) from error
    except StateError:
        connection.close()
        raise
