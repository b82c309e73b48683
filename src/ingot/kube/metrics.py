"""What the runtime counts, as Prometheus collectors, and the measuring of the event loop's lag.

What controller-runtime and client-go count too has their names, labels and values here, so that dashboards and alerts made for
any operator work for this one. What they have no name for begins with `ingot_`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from ingot.kube.meters import Spreads, Tallies

# The time at which each counter was made doubles what is served, and nobody asks for it. (The function has no types.)
cast("Callable[[], None]", disable_created_metrics)()

API_REQUESTS: Final = Counter(
    "rest_client_requests",
    "Requests to the Kubernetes API by HTTP status (<error>: no answer), server, method and kind.",
    ["code", "host", "method", "kind"],
)
WATCH_RESTARTS: Final = Counter(
    "ingot_watch_restarts", "Watches that broke and were taken up again.", ["kind"]
)
CACHED_OBJECTS: Final = Gauge("ingot_cached_objects", "Objects in an informer's cache.", ["kind"])
QUEUE_LENGTH: Final = Gauge("workqueue_depth", "Keys that are due and wait for a worker.", ["name"])
QUEUE_ADDS: Final = Tallies(
    "workqueue_adds", "Keys that somebody woke and that were not due already.", ["name"]
)
QUEUE_RETRIES: Final = Counter("workqueue_retries", "Keys that were put off to a later time.", ["name"])
QUEUE_WAIT: Final = Spreads(
    "workqueue_queue_duration_seconds",
    "Time from the moment a key is due until a worker takes it.",
    ["name"],
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
)
RECONCILES: Final = Tallies(
    "controller_runtime_reconcile",
    "Reconciles by how they ended: success, requeue_after (look again later), requeue (conflict), error.",
    ["controller", "result"],
)
RECONCILE_ERRORS: Final = Counter(
    "controller_runtime_reconcile_errors", "Reconciles that ended by an error.", ["controller"]
)
ACTIVE_WORKERS: Final = Gauge(
    "controller_runtime_active_workers", "Keys that are being reconciled.", ["controller"]
)
MOST_WORKERS: Final = Gauge(
    "controller_runtime_max_concurrent_reconciles", "Keys that can be reconciled at a time.", ["controller"]
)
RECONCILE_TIME: Final = Spreads(
    "controller_runtime_reconcile_time_seconds",
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


class ControllerMeters:
    """What one controller counts for every key. Looked up once: finding a meter by its labels costs more than counting."""

    def __init__(self, name: str) -> None:
        self.added: Final = QUEUE_ADDS.labels(name)
        self.put_off: Final = QUEUE_RETRIES.labels(name)
        self.waited: Final = QUEUE_WAIT.labels(name)
        self.took: Final = RECONCILE_TIME.labels(name)
        self.succeeded: Final = RECONCILES.labels(name, "success")
        self.again: Final = RECONCILES.labels(name, "requeue_after")


async def measure_loop_lag() -> None:
    """Runs until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_INTERVAL
        await asyncio.sleep(LAG_INTERVAL)
        LOOP_LAG.observe(max(0.0, loop.time() - due))
