"""What the server does by itself: it goes on, whatever one object does to it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from running_server import SECRETS, served

from ingot.embedded.server.errors import internal
from ingot.embedded.server.kinds.builtins import BUILT_IN, NAMESPACES
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.collection import Change
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.chores import Chores


@contextlib.asynccontextmanager
async def doing(chores: Chores[str]) -> AsyncIterator[None]:
    task = asyncio.create_task(chores.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.looptime
async def test_a_chore_that_is_refused_is_tried_once_a_second_however_often_it_was_asked_for() -> None:
    tries: list[float] = []

    async def refuse(chore: str) -> None:
        tries.append(asyncio.get_running_loop().time())
        raise internal("the disk is full")

    chores = Chores("chore", refuse)
    async with doing(chores):
        for _ in range(5):
            chores.add("one")
            await asyncio.sleep(0.3)
        asked = len(tries)
        await asyncio.sleep(10)
        assert asked == 5
        assert len(tries) - asked == 10


@pytest.mark.looptime
async def test_a_chore_that_meets_a_bug_is_logged_without_values_and_done_again_and_others_are_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []
    value = "-".join(("a", "secret", "value"))

    async def stumble(chore: str) -> None:
        done.append(chore)
        if done == ["bad"]:
            raise KeyError(value)

    chores = Chores("chore", stumble)
    chores.add("bad")
    chores.add("good")
    async with doing(chores):
        await asyncio.sleep(1)
        assert done == ["bad", "good"]
        await asyncio.sleep(100)
        assert done == ["bad", "good", "bad"]
    assert "chore of bad failed with KeyError" in caplog.text
    assert value not in caplog.text


async def test_an_object_that_garbage_collection_cannot_make_sense_of_does_not_end_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as api:
        owner = {"apiVersion": "v1", "kind": "Secret", "name": "gone", "uid": "of-nobody"}
        await api.call("POST", SECRETS, {"metadata": {"name": "holder"}})
        _, holder = await api.call("GET", f"{SECRETS}/holder")
        owner |= {"name": "holder", "uid": holder["metadata"]["uid"]}
        await api.call("POST", SECRETS, {"metadata": {"name": "odd", "ownerReferences": [owner]}})
    with contextlib.closing(sqlite3.connect(tmp_path / "api" / "api.db")) as database:
        # Nobody can store this; a file that was mended by hand can hold it.
        database.execute(
            'UPDATE object SET body = CAST(replace(body, \'"apiVersion":"v1","kind":"Secret","name":"holder",\', \'\')'
            " AS BLOB) WHERE name = 'odd'"
        )
        assert database.execute("SELECT changes()").fetchone() == (1,)
        database.commit()
    async with served(tmp_path) as api:
        async with asyncio.timeout(60):
            while "failed with KeyError" not in caplog.text:  # noqa: ASYNC110 (what is logged has no event)
                await asyncio.sleep(0.02)
        await api.call("POST", SECRETS, {"metadata": {"name": "child", "ownerReferences": [owner]}})
        assert (await api.call("DELETE", f"{SECRETS}/holder"))[0] == 200
        await api.gone(f"{SECRETS}/child")


async def test_a_follower_that_fails_keeps_nobody_from_hearing_that_the_write_is_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Change] = []

    def fail(change: Change) -> None:
        raise ZeroDivisionError

    store = Store(tmp_path / "api.db", Registry(BUILT_IN))
    try:
        store.subscribe(fail)
        store.subscribe(heard.append)
        writes = [store.put(NAMESPACES, {"metadata": {"name": name}}) for name in ("one", "two")]
        async with asyncio.timeout(60):
            done = await asyncio.gather(*writes)
        assert [change.now for change in heard] == done
        assert "failed with ZeroDivisionError" in caplog.text
    finally:
        await store.close()
