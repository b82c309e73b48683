"""What the runtime counts, as Prometheus collectors, and the measuring of the event loop's lag."""

from __future__ import annotations

import asyncio
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

API_REQUESTS: Final = Counter(
    "ingot_api_requests",
    "Requests to the Kubernetes API by method, kind and HTTP status (none: no answer).",
    ["method", "kind", "code"],
)
WATCH_RESTARTS: Final = Counter(
    "ingot_watch_restarts", "Watches that broke and were taken up again.", ["kind"]
)
CACHED_OBJECTS: Final = Gauge("ingot_cached_objects", "Objects in an informer's cache.", ["kind"])
QUEUE_LENGTH: Final = Gauge("ingot_queue_length", "Keys that are due and wait for a worker.", ["controller"])
QUEUE_WAIT: Final = Histogram(
    "ingot_queue_wait_seconds",
    "Time from the moment a key is due until a worker takes it.",
    ["controller"],
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
)
RECONCILES: Final = Counter(
    "ingot_reconciles",
    "Reconciles by how they ended: done, again, conflict, error.",
    ["controller", "result"],
)
RECONCILE_TIME: Final = Histogram(
    "ingot_reconcile_seconds",
    "Time one reconcile took.",
    ["controller"],
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
)
EVENTS: Final = Counter(
    "ingot_recorded_events",
    "Kubernetes Events by what became of them: created, repeated, dropped.",
    ["outcome"],
)
LEADING: Final = Gauge(
    "leader_election_master_status", "Whether this process holds the Lease of that name.", ["name"]
)
LOOP_LAG: Final = Histogram(
    "ingot_event_loop_lag_seconds",
    "How much later than asked the event loop woke a sleeper: time that something held it up.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
)
LAG_INTERVAL: Final = 0.5


async def measure_loop_lag() -> None:
    """Runs until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_INTERVAL
        await asyncio.sleep(LAG_INTERVAL)
        LOOP_LAG.observe(max(0.0, loop.time() - due))
