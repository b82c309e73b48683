"""Threads that write to a SQLite database one after the other do not fail of each other."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from types import SimpleNamespace

from ingot_ironic import sqlite_turns
from ingot_ironic.sqlite_turns import Turns

THREADS, ROUNDS = 8, 40


def database(path: Path) -> Callable[[], AbstractContextManager[sqlite3.Connection]]:
    """As Ironic has it: WAL, a session is a transaction, and what it reads first decides what it sees."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = WAL; CREATE TABLE t (n INT); INSERT INTO t VALUES (0)"
        )

    @contextlib.contextmanager
    def session() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    return session


def count_up(session: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> list[Exception]:
    """Many threads, each of which reads and then writes."""
    failures: list[Exception] = []

    def count() -> None:
        for _ in range(ROUNDS):
            try:
                with session() as connection:
                    (found,) = connection.execute("SELECT n FROM t").fetchone()
                    connection.execute("UPDATE t SET n = ?", (found + 1,))
            except sqlite3.OperationalError as error:
                failures.append(error)

    threads = [threading.Thread(target=count) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_writers_fail_of_each_other_and_in_turns_they_do_not(tmp_path: Path) -> None:
    session = database(tmp_path / "ironic.db")
    assert "database is locked" in {str(error) for error in count_up(session)}

    with session() as connection:
        connection.execute("UPDATE t SET n = 0")
    ironic = SimpleNamespace(_session_for_write=session)
    sqlite_turns.hook(ironic, lambda: True, Turns())
    assert count_up(ironic._session_for_write) == []
    with session() as connection:
        assert connection.execute("SELECT n FROM t").fetchone() == (THREADS * ROUNDS,)


def test_a_session_within_a_session_does_not_wait_for_itself() -> None:
    session = contextlib.nullcontext("session")
    ironic = SimpleNamespace(_session_for_write=lambda: session)
    sqlite_turns.hook(ironic, lambda: True, Turns())
    with ironic._session_for_write() as outer, ironic._session_for_write() as inner:
        assert outer == inner == "session"


def test_with_another_database_nobody_waits() -> None:
    session = contextlib.nullcontext("session")
    ironic = SimpleNamespace(_session_for_write=lambda: session)
    sqlite_turns.hook(ironic, lambda: False, Turns())
    assert ironic._session_for_write() is session


def test_a_process_that_was_forked_in_somebodys_turn_can_write() -> None:
    turns, forked, over = Turns(), threading.Event(), threading.Event()

    def write() -> None:
        with turns.taking(contextlib.nullcontext()):
            forked.set()
            over.wait()

    writer = threading.Thread(target=write)
    writer.start()
    forked.wait()
    child = os.fork()
    if not child:
        done = threading.Event()

        def write_too() -> None:
            with turns.taking(contextlib.nullcontext()):
                done.set()

        threading.Thread(target=write_too, daemon=True).start()
        os._exit(0 if done.wait(60) else 1)
    _, status = os.waitpid(child, 0)
    over.set()
    writer.join()
    assert os.waitstatus_to_exitcode(status) == 0
