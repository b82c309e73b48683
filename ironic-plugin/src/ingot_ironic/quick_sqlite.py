"""SQLite waits for the disk at checkpoints, not at each write.

Ironic keeps its database in WAL mode and leaves SQLite's default, which waits for the disk at every commit; and there is one
writer at a time, so a thousand hosts wait for each other. With `synchronous = NORMAL` a database in WAL mode is as safe from
corruption; what a power cut may cost is the last moments, and a killed process costs nothing. The database is disposable anyway.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Final

_NORMAL: Final = 1


def install() -> None:
    """Have every connection to SQLite from now on begin this way. Raises when SQLAlchemy tells nobody of connections."""
    import sqlalchemy
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    event.listen(Engine, "connect", relax)
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        found = connection.exec_driver_sql("PRAGMA synchronous").scalar()
    if found != _NORMAL:
        event.remove(Engine, "connect", relax)
        raise AttributeError(f"a new connection to SQLite has synchronous = {found}, not {_NORMAL}")


def relax(connection: Any, _: object) -> None:
    """Other databases have connections of another kind; they are left alone."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute(f"PRAGMA synchronous = {_NORMAL}").close()
