"""Connections to SQLite wait for the disk at checkpoints only; other connections are left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from ingot_ironic import quick_sqlite


def test_a_connection_to_sqlite_is_relaxed() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        quick_sqlite.relax(connection, None)
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_connection_to_another_database_is_not_touched() -> None:
    class Connection:
        def execute(self, statement: str) -> None:
            raise AssertionError(statement)

    quick_sqlite.relax(Connection(), None)
