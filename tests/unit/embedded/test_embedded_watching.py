"""Watches below HTTP: the order in which a slow watcher sees things, and what wakes a quiet one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from running_server import widget_crd

from ingot.embedded.server.face.rendering import View
from ingot.embedded.server.kinds.builtins import BUILT_IN
from ingot.embedded.server.kinds.definitions import family_of
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.reads.watching import WatchQuery, events
from ingot.embedded.server.storage.bell import Bell, Listener
from ingot.embedded.server.storage.store import Store

WIDGET = family_of(widget_crd()).home
REGISTRY = Registry((*BUILT_IN, WIDGET))


def large_widget(name: str) -> dict[str, Any]:
    annotations = {"large": "x" * 200_000}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations},
    }


async def test_what_changes_while_a_slow_watcher_reads_what_is_there_is_seen_in_order(tmp_path: Path) -> None:
    store = Store(tmp_path / "api.db", REGISTRY)
    try:
        for name in "abcdef":
            await store.put(WIDGET, large_widget(name))
        watch = events(store, WIDGET, WatchQuery(), View(WIDGET))
        seen = [await anext(watch)]
        await store.put(WIDGET, large_widget("f"))
        await store.put(WIDGET, large_widget("f"))
        store.end_watches()
        seen += [chunk async for chunk in watch]
    finally:
        await store.close()
    told = [json.loads(line) for line in b"".join(seen).splitlines()]
    of_the_last = [event for event in told if event["object"]["metadata"]["name"] == "f"]
    assert [event["type"] for event in of_the_last] == ["ADDED", "MODIFIED", "MODIFIED"]
    assert [event["object"]["metadata"]["resourceVersion"] for event in of_the_last] == ["6", "7", "8"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    made = Store(tmp_path / "api.db", REGISTRY)
    yield made
    await made.close()


@pytest.mark.looptime
async def test_a_quiet_watch_without_bookmarks_sleeps_until_its_time_is_up(store: Store) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    watch = events(store, WIDGET, WatchQuery(timeout=600), View(WIDGET))
    assert [chunk async for chunk in watch] == []
    assert loop.time() - begun == pytest.approx(600, abs=1)


@pytest.mark.looptime
async def test_a_quiet_watch_is_told_how_far_it_has_come_about_every_minute_and_at_its_end(
    store: Store,
) -> None:
    watch = events(store, WIDGET, WatchQuery(timeout=600, bookmarks=True), View(WIDGET))
    told = [json.loads(chunk) async for chunk in watch]
    assert {event["type"] for event in told} == {"BOOKMARK"}
    assert 10 <= len(told) <= 12


@pytest.mark.looptime
async def test_a_bell_wakes_all_who_wait_and_an_alarm_only_its_own() -> None:
    loop = asyncio.get_running_loop()
    bell = Bell()
    woken: list[tuple[str, float]] = []

    async def waits(name: str, until: float) -> None:
        with Listener(bell) as listener:
            for _ in range(2):
                await listener.wait(until)
                woken.append((name, round(loop.time() - begun)))

    begun = loop.time()
    waiting = [asyncio.create_task(waits("a", begun + 10)), asyncio.create_task(waits("b", begun + 100))]
    await asyncio.sleep(5)
    bell.ring()
    await asyncio.gather(*waiting)
    assert sorted(woken) == [("a", 5), ("a", 10), ("b", 5), ("b", 100)]
    assert not bell.waiting


async def test_those_who_are_woken_late_find_what_came_meanwhile_in_one_go() -> None:
    bell = Bell()
    written = 0
    found: list[int] = []

    async def waits() -> None:
        with Listener(bell) as listener:
            seen = 0
            while seen < 3:
                await listener.wait(asyncio.get_running_loop().time() + 100)
                found.append(written - seen)
                seen = written

    async with asyncio.TaskGroup() as tasks:
        for _ in range(1_000):
            tasks.create_task(waits())
        await asyncio.sleep(0)
        for _ in range(3):
            written += 1
            bell.ring()
            await asyncio.sleep(0)
            # The loop comes round while most of them are still asleep: whoever writes is not kept waiting.
            assert len(found) < 500
    assert sum(found) == 3 * 1_000
    assert found.count(3) > 500
    assert not bell.waiting
