"""What the server counts about itself, in the format of Prometheus; names that kube-apiserver has too mean the same here.

A registry for each server: several can live in one process. What is already known elsewhere (objects, the size of the file)
is read when somebody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.storage.store import Store

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# What permissions call create and update, metrics call by their method.
_WORDS: Final = {"create": "POST", "update": "PUT"}
_LAG_EVERY: Final = 0.5
_DURATIONS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_COMMITS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0)
_LAGS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metrics:
    def __init__(self, store: Store) -> None:
        self._registry = CollectorRegistry()
        place = ["verb", "group", "version", "resource", "subresource"]
        self._requests = Counter(
            "apiserver_request_total",
            "Requests that were answered.",
            [*place, "code"],
            registry=self._registry,
        )
        self._durations = Histogram(
            "apiserver_request_duration_seconds",
            "How long an answer took; watches are not counted.",
            place,
            buckets=_DURATIONS,
            registry=self._registry,
        )
        self._watchers = Gauge(
            "apiserver_longrunning_requests",
            "Watches that are open.",
            ["verb", "group", "version", "resource"],
            registry=self._registry,
        )
        self._commits = Histogram(
            "ingot_api_commit_duration_seconds",
            "How long a transaction took, its sync to disk included.",
            buckets=_COMMITS,
            registry=self._registry,
        )
        self._committed = Counter(
            "ingot_api_committed_writes_total", "Writes that are on disk.", registry=self._registry
        )
        self._lag = Histogram(
            "ingot_api_event_loop_lag_seconds",
            "How much later than asked the event loop woke a task.",
            buckets=_LAGS,
            registry=self._registry,
        )
        self._registry.register(_Storage(store))
        store.on_commit = self._commit_seen

    def answered(self, verb: str, kind: Kind | None, subresource: str, code: int, seconds: float) -> None:
        word = _WORDS.get(verb, verb.upper())
        place = (word, kind.group, kind.version, kind.plural, subresource) if kind else (word, "", "", "", "")
        self._requests.labels(*place, str(code)).inc()
        if verb != "watch":
            self._durations.labels(*place).observe(seconds)

    def watching(self, kind: Kind) -> AbstractContextManager[object]:
        """One more watch of this kind, while the block lasts."""
        return self._watchers.labels("WATCH", kind.group, kind.version, kind.plural).track_inprogress()

    def text(self) -> bytes:
        return generate_latest(self._registry)

    async def watch_the_loop(self) -> None:
        """The clock of an event loop that is kept busy runs late; by how much is what everybody's requests wait."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_EVERY
            await asyncio.sleep(_LAG_EVERY)
            self._lag.observe(max(loop.time() - due, 0))

    def _commit_seen(self, seconds: float, writes: int) -> None:
        self._commits.observe(seconds)
        self._committed.inc(writes)


class _Storage(Collector):
    """What the store holds, counted when it is asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        objects = GaugeMetricFamily(
            "apiserver_storage_objects", "Objects that are stored.", labels=["resource"]
        )
        for collection in self._store.collections():
            objects.add_metric([collection.kind.resource], len(collection.items))
        yield objects
        size = GaugeMetricFamily(
            "apiserver_storage_size_bytes", "Size of the database and its log.", labels=["storage_cluster_id"]
        )
        size.add_metric(["sqlite"], self._store.size())
        yield size
