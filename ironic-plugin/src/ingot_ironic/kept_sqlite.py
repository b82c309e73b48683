"""Connections to SQLite are kept, instead of opened anew for each of Ironic's questions.

oslo.db keeps connections to a database server only. Opening an SQLite database means reading and parsing the schema of all its
tables: a quarter of what a read of a node costs. A connection belongs to one thread at a time, and one that was opened before a
fork is thrown away in the child (oslo.db sees to that).
"""

from __future__ import annotations

from typing import Any, Final

KEPT: Final = 64
"""As many are open at the same time when it is busy. Nobody waits for one: more are opened, and closed after use."""


def install() -> None:
    """Have engines that are made from now on keep their connections. Raises when oslo.db makes them in another way."""
    from oslo_db.sqlalchemy import enginefacade, engines
    from sqlalchemy import pool
    from sqlalchemy.engine import make_url

    if enginefacade._context_manager._factory._started:
        raise AttributeError("the database was opened before connections could be kept")
    before = engines.pool
    engines.pool = Pools(pool, keeping(pool.QueuePool))
    arguments: dict[str, Any] = {"connect_args": {}}
    engines._init_connection_args(make_url("sqlite:///a-file.sqlite"), arguments, {})
    if arguments.get("poolclass") is not engines.pool.NullPool:
        engines.pool = before
        raise AttributeError(
            "oslo.db does not choose how connections to SQLite are kept in the way that is known here"
        )


def keeping(queue_pool: Any) -> Any:
    """A pool that needs no settings, as the one it stands for."""

    class KeptConnections(queue_pool):
        def __init__(self, creator: Any, **settings: Any) -> None:
            super().__init__(creator, **settings, pool_size=KEPT, max_overflow=-1, use_lifo=True)

    return KeptConnections


class Pools:
    """SQLAlchemy's pools, but for the one that keeps nothing."""

    def __init__(self, pools: Any, kept: Any) -> None:
        self._pools = pools
        self.NullPool = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pools, name)
