"""Watches below HTTP: the order in which a slow watcher sees things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from running_server import widget_crd

from ingot.embedded.server.face.rendering import View
from ingot.embedded.server.kinds.builtins import BUILT_IN
from ingot.embedded.server.kinds.definitions import family_of
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.reads.watching import WatchQuery, events
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
