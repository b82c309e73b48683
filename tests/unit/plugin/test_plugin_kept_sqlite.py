"""Connections to SQLite are kept between two questions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ingot_ironic import kept_sqlite


class QueuePool:
    def __init__(self, creator: Any, **settings: Any) -> None:
        self.made = creator, settings


def test_the_pool_that_keeps_nothing_is_replaced_and_the_others_are_not() -> None:
    pools = SimpleNamespace(NullPool="keeps nothing", StaticPool="one for all", QueuePool=QueuePool)
    seen = kept_sqlite.Pools(pools, kept_sqlite.keeping(QueuePool))
    assert seen.StaticPool == "one for all"
    assert issubclass(seen.NullPool, QueuePool)


def test_a_kept_connection_is_never_waited_for() -> None:
    creator, settings = kept_sqlite.keeping(QueuePool)("connect", echo=False).made
    assert creator == "connect"
    assert settings == {
        "echo": False,
        "pool_size": kept_sqlite.KEPT,
        "max_overflow": -1,
        "use_lifo": True,
    }
