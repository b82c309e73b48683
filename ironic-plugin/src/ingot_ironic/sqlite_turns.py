"""Threads that write to SQLite take turns.

Ironic's threads all write at once. A transaction that reads before it writes, as most do, is refused by SQLite on the spot when
another one was committed in between ("database is locked"; no time to wait helps). Ironic tries again up to a second later, and
gives up after a while: with a hundred busy hosts, inspections fail of it. They all live in one process, so a lock is enough, and
nobody has to try twice. Reading goes on beside it, as always in WAL mode.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

Session = contextlib.AbstractContextManager[Any]


class Turns:
    """Whose turn it is to write. A thread that has it may begin again within."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # What another thread held when the process was forked, nobody would ever give back.
        os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def taking(self, session: Session) -> Iterator[Any]:
        """The session, from its beginning to its end in our turn."""
        with self._lock, session as opened:
            yield opened


_turns: Final = Turns()


def install() -> None:
    """Have every session that writes wait for its turn. Raises when Ironic opens them in another way."""
    from ironic.common import utils
    from ironic.db.sqlalchemy import api

    hook(api, utils.is_ironic_using_sqlite, _turns)


def hook(api: Any, is_sqlite: Callable[[], bool], turns: Turns) -> None:
    original = api._session_for_write

    def _session_for_write() -> Session:
        session: Session = original()
        return turns.taking(session) if is_sqlite() else session

    api._session_for_write = _session_for_write
