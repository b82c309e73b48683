"""The store's own promises, below HTTP: order, visibility, snapshots, bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from running_server import widget_crd

from ingot.api.meta import Key
from ingot.embedded.server.errors import Refused
from ingot.embedded.server.kinds.builtins import BUILT_IN
from ingot.embedded.server.kinds.definitions import family_of
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.collection import HISTORY_EVENTS
from ingot.embedded.server.storage.database import LOG_ROWS, Database, Row
from ingot.embedded.server.storage.store import Store

WIDGET = family_of(widget_crd()).home
REGISTRY = Registry((*BUILT_IN, WIDGET))


@contextlib.asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[Store]:
    store = Store(folder / "api.db", REGISTRY, **options)
    try:
        yield store
    finally:
        await store.close()


def widget(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels},
    }


def key(name: str) -> Key:
    return Key("default", name)


async def test_a_writer_that_goes_away_takes_nobody_along_who_waits_for_its_write(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        writing = store.put(WIDGET, widget("a"))
        item = store.head(WIDGET, key("a"))
        assert item is not None
        waiting = asyncio.create_task(store.settled(item))
        await asyncio.sleep(0)
        writing.cancel()
        async with asyncio.timeout(60):
            await waiting
        assert store.get(WIDGET, key("a")) is item


async def test_a_write_is_seen_by_the_next_decision_at_once_and_by_readers_when_it_is_on_disk(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        writing = store.put(WIDGET, widget("a"))
        assert store.head(WIDGET, key("a")) is not None
        assert store.get(WIDGET, key("a")) is None
        item = await writing
        assert store.get(WIDGET, key("a")) is item
        removing = store.remove(WIDGET, item.document())
        assert store.head(WIDGET, key("a")) is None
        assert store.get(WIDGET, key("a")) is item
        await removing
        assert store.get(WIDGET, key("a")) is None


async def test_settled_waits_for_the_write_an_answer_rests_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        store.put(WIDGET, widget("a"))
        pending = store.head(WIDGET, key("a"))
        assert pending is not None
        await store.settled(pending)
        assert store.get(WIDGET, key("a")) is pending


async def test_a_caller_that_goes_away_does_not_take_its_write_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        store.put(WIDGET, widget("a")).cancel()
        await store.put(WIDGET, widget("b"))
        assert store.get(WIDGET, key("a")) is not None


async def test_versions_are_the_order_of_changes_and_go_on_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        written = await asyncio.gather(*(store.put(WIDGET, widget(f"w{n}")) for n in range(300)))
        assert [item.version for item in written] == list(range(1, 301))
    async with opened(tmp_path) as store:
        assert store.version == 300
        assert len(store.collection(WIDGET).items) == 300
        assert (await store.put(WIDGET, widget("next"))).version == 301


async def test_a_deleted_newest_version_is_not_given_out_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        item = await store.put(WIDGET, widget("a"))
        last = await store.remove(WIDGET, item.document())
    async with opened(tmp_path) as store:
        assert (await store.put(WIDGET, widget("b"))).version == last.version + 1


async def test_a_snapshot_undoes_what_came_later(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for name in "abc":
            await store.put(WIDGET, widget(name, n="1"))
        then = store.version
        await store.put(WIDGET, widget("a", n="2"))
        await store.put(WIDGET, widget("d"))
        b = store.get(WIDGET, key("b"))
        assert b is not None
        await store.remove(WIDGET, b.document())
        items = store.collection(WIDGET).at(then)
        assert sorted(found.name for found in items) == ["a", "b", "c"]
        assert items[key("a")].selectable.labels == {"n": "1"}


async def written(store: Store, count: int) -> None:
    for start in range(0, count, 200):
        await asyncio.gather(*(store.put(WIDGET, widget(f"w{n % 5}", n=str(start + n))) for n in range(200)))


async def test_the_last_five_minutes_are_remembered_however_many_changes_they_had(tmp_path: Path) -> None:
    async with opened(tmp_path, clock=lambda: 1_000.0) as store:
        await written(store, 14_000)
        assert len(store.collection(WIDGET).after(0)) == 14_000
    async with opened(tmp_path) as store:
        assert store.version == 14_000
        assert len(store.collection(WIDGET).after(0)) == 14_000


async def test_history_is_bounded_in_memory_and_on_disk_and_says_what_it_forgot(tmp_path: Path) -> None:
    times = itertools.count(1_000, 0.1)
    async with opened(tmp_path, clock=lambda: next(times)) as store:
        await written(store, 14_000)
        collection = store.collection(WIDGET)
        kept = collection.after(collection.floor)
        assert HISTORY_EVENTS <= len(kept) <= HISTORY_EVENTS + 1_000
        assert len(collection.items) == 5
        with pytest.raises(Refused) as refused:
            collection.after(collection.floor - 1)
        assert refused.value.code == 410
    with contextlib.closing(sqlite3.connect(tmp_path / "api.db")) as database:
        (rows,) = database.execute("SELECT count(*) FROM log").fetchone()
        assert LOG_ROWS <= rows <= LOG_ROWS + 2_000
    async with opened(tmp_path) as store:
        assert store.version == 14_000
        assert store.collection(WIDGET).floor > 0


async def test_large_objects_are_forgotten_sooner_but_the_newest_change_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        big = {"annotations": {"a": "x" * (2 * 1024 * 1024)}}
        for number in range(40):
            document = widget("a", n=str(number))
            document["metadata"] |= big
            await store.put(WIDGET, document)
        collection = store.collection(WIDGET)
        assert len(collection.after(collection.floor)) < 40
        assert collection.after(collection.floor)[-1].version == store.version


async def test_writes_decided_on_a_failed_one_fail_with_it_and_later_ones_do_not(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "api.db")) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON object WHEN NEW.name = 'poison'"
            " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
        database.commit()
    async with opened(tmp_path) as store:
        await store.put(WIDGET, widget("kept", n="1"))
        doomed = [
            store.put(WIDGET, widget("poison")),
            *(store.put(WIDGET, widget("kept", n="2")) for _ in range(600)),
        ]
        outcomes = await asyncio.gather(*doomed, return_exceptions=True)
        assert all(isinstance(outcome, Refused) and outcome.code == 500 for outcome in outcomes)
        head = store.head(WIDGET, key("kept"))
        assert head is not None
        assert head.selectable.labels == {"n": "1"}
        assert store.trouble
        await store.put(WIDGET, widget("kept", n="3"))
        assert store.trouble == ""
    async with opened(tmp_path) as store:
        kept = store.get(WIDGET, key("kept"))
        assert kept is not None
        assert kept.selectable.labels == {"n": "3"}


async def test_objects_of_a_kind_that_is_no_longer_served_are_kept_for_when_it_is_again(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as store:
        await store.put(WIDGET, widget("a"))
    without = Store(tmp_path / "api.db", Registry(BUILT_IN))
    await without.close()
    async with opened(tmp_path) as store:
        assert store.get(WIDGET, key("a")) is not None


def test_a_write_that_fails_in_no_foreseen_way_is_answered_and_the_next_one_works(tmp_path: Path) -> None:
    answers: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    database = Database(tmp_path / "api.db", lambda rows, error, seconds: answers.put(error))
    database.start()
    try:
        database.submit(0, Row(1, "ADDED", "widgets", "default", "no text: \ud800", 0.0, b"{}", None))
        assert isinstance(answers.get(timeout=60), UnicodeEncodeError)
        database.submit(1, Row(2, "ADDED", "widgets", "default", "text", 0.0, b"{}", None))
        assert answers.get(timeout=60) is None
    finally:
        database.close()
