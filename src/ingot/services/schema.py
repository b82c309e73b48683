"""Bringing Ironic's database to the schema that this Ironic needs, at every start.

A database without a schema gets one; one that has a schema is upgraded. Two things are special to the SQLite file in our own
state folder. A process killed while it made the schema leaves tables without a revision, on which neither command works: such
a file is thrown away, which is safe exactly as long as it holds no node. And when the same environment already brought the
file to its revision, nothing is run at all, because these commands take three seconds that a restart can do without.

What an older Ironic wrote is rewritten as this one writes it, after an upgrade of the file: the one after next does not read it
any more. In a database that others may use with an older Ironic, that is for whoever upgrades them all.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.services.environment import IronicEnvironment, Progress, without_ours
from ingot.services.errors import SchemaError
from ingot.services.settings import IronicSettings
from ingot.trust import redact, write_public

_LINES_SHOWN: Final = 8
_MORE_THAN_THERE_ARE: Final = "100000000"


@dataclass(frozen=True, slots=True)
class SqliteState:
    """What a SQLite file holds: its revision if it has one, whether it has tables, how many nodes."""

    revision: str | None
    has_tables: bool
    nodes: int

    @property
    def half_made(self) -> bool:
        return self.has_tables and self.revision is None


@dataclass(frozen=True, slots=True)
class DatabaseSync:
    """Ironic's own command for its schema. Its processes hold the service's lock, so none is left to work behind our back."""

    settings: IronicSettings
    environment: IronicEnvironment
    lock: int

    def __call__(self, verb: str, *options: str) -> str:
        done = subprocess.run(
            [
                str(self.environment.program("ironic-dbsync")),
                *("--config-file", str(self.settings.paths.config_file), verb, *options),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=without_ours(os.environ),
            pass_fds=(self.lock,),
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            last = redact(
                "\n  ".join(done.stderr.strip().splitlines()[-_LINES_SHOWN:]), self.settings.database
            )
            raise SchemaError(
                f"`ironic-dbsync {verb}` ended with {done.returncode}. {self._advice()} Its last lines:\n  {last}"
            )
        return done.stdout

    def _advice(self) -> str:
        if self.settings.uses_sqlite_file:
            return _move_away(self.settings.paths.database_file)
        return "See that the database in INGOT_IRONIC_DATABASE_URL is there and lets Ironic in, then start again."


def _move_away(file: Path) -> str:
    return (
        f"Ironic's database is disposable: move {file} away and start again; "
        "every host is registered again from its object."
    )


def bring_up_to_date(sync: DatabaseSync, progress: Progress) -> None:
    """Create or upgrade the schema. Blocks."""
    if sync.settings.uses_sqlite_file:
        _bring_file_up_to_date(sync, progress)
    else:
        _create_or_upgrade(sync, progress, empty=sync("version").strip().endswith("None"))


def _create_or_upgrade(sync: DatabaseSync, progress: Progress, *, empty: bool) -> None:
    progress("creating the database schema" if empty else "upgrading the database schema")
    sync("create_schema" if empty else "upgrade")


def look(file: Path) -> SqliteState:
    """What is in this SQLite file; one that is not there is empty."""
    if not file.exists():
        return SqliteState(None, has_tables=False, nodes=0)
    try:
        with closing(sqlite3.connect(file, timeout=30)) as database:
            tables = {
                name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            revision = (
                _one(database, "SELECT version_num FROM alembic_version")
                if "alembic_version" in tables
                else None
            )
            nodes = _one(database, "SELECT count(*) FROM nodes") if "nodes" in tables else 0
    except sqlite3.DatabaseError as error:
        raise SchemaError(
            f"{file} is not a SQLite database that can be read ({error}). {_move_away(file)}"
        ) from error
    return SqliteState(str(revision) if revision else None, bool(tables), int(str(nodes)))


def _one(database: sqlite3.Connection, query: str) -> object:
    row = database.execute(query).fetchone()
    return row[0] if row else None


def _bring_file_up_to_date(sync: DatabaseSync, progress: Progress) -> None:
    file = sync.settings.paths.database_file
    found = look(file)
    if found.revision and _stamp(sync) == found.revision:
        return
    if found.half_made:
        _discard(file, found, progress)
    _create_or_upgrade(sync, progress, empty=not found.revision)
    if found.revision:
        progress("rewriting what an older Ironic wrote")
        # All at once: by itself it takes fifty at a time, and counts all that there are each time.
        sync("online_data_migrations", "--max-count", _MORE_THAN_THERE_ARE)
    write_public(_stamp_file(file), f"{sync.environment.folder.name} {look(file).revision}\n".encode())


def _discard(file: Path, found: SqliteState, progress: Progress) -> None:
    if found.nodes:
        raise SchemaError(
            f"{file} has tables and {found.nodes} nodes but no schema revision; Ingot does not touch it. {_move_away(file)}"
        )
    progress("the database was left half made; making it again")
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm", f"{file.name}-journal"):
        file.with_name(name).unlink(missing_ok=True)


def _stamp_file(database: Path) -> Path:
    return database.with_suffix(".schema")


def _stamp(sync: DatabaseSync) -> str | None:
    """The revision that this very environment left in the file, if it was the last one to do so."""
    file = _stamp_file(sync.settings.paths.database_file)
    words = file.read_text().split() if file.exists() else []
    return words[1] if len(words) == 2 and words[0] == sync.environment.folder.name else None
