"""One server from its start to 10,000 hosts: every figure of the table, in the order in which it is taken."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from api import hosts, load
from api.load import Outcome
from api.procfs import memory, processor_time
from api.servers import Server

_SETTLE_WITHIN: Final = 120.0
_LOOK_FOR: Final = 3.0
_QUIET: Final = 0.1


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    hosts: int = 10_000
    clients: int = 16
    gets: int = 5_000
    lists: int = 5
    watchers: int = 1_000
    events: int = 20


@dataclass(frozen=True, slots=True)
class Figure:
    """One cell: the value, whether less is better, and the seconds of processor that one of these cost the server."""

    title: str
    value: float
    unit: str
    less_is_better: bool
    cpu: float = 0.0
    note: str = ""


def figures(server: Server, size: Size, say: Callable[[str], None]) -> list[Figure]:
    found: list[Figure] = []

    def add(figure: Figure) -> None:
        say(
            f"{server.name}: {figure.title}: {figure.value:,.6g} {figure.unit} ({figure.cpu * 1e6:,.0f} µs) {figure.note}"
        )
        found.append(figure)

    add(Figure("start to ready", server.started_in, "s", True))
    _settle(server)
    add(Figure("memory at start", memory(server.pids.values()), "MB", True))
    for figure in _rates(server, size):
        add(figure)
    add(Figure(f"memory with {size.hosts:,} hosts", memory(server.pids.values()), "MB", True))
    for title, accept in (("JSON", "application/json"), ("table", hosts.TABLE)):
        add(_list(server, size, title, accept))
    for figure in _watches(server, size):
        add(figure)
    return found


def _settle(server: Server) -> None:
    """Wait until the server has nothing more to do of its own: after a start, kube-apiserver is busy with the definitions for
    a good while, and what it is then asked would be charged with that."""
    give_up = time.monotonic() + _SETTLE_WITHIN
    while time.monotonic() < give_up:
        before = processor_time(server.pids.values())
        time.sleep(_LOOK_FOR)
        if processor_time(server.pids.values()) - before < _LOOK_FOR * _QUIET:
            return


def _rates(server: Server, size: Size) -> list[Figure]:
    """Creating makes the hosts that the next ones change and read."""
    many = size.clients
    gets, one_by_one = min(size.gets, size.hosts), max(size.hosts // 50, 1)
    made = [
        _rate(
            server,
            f"creates, {many} clients",
            lambda: load.requests(
                server, "POST", hosts.PATH, count=size.hosts, clients=many, body=hosts.manifest()
            ),
        ),
        _rate(
            server,
            f"status patches, {many} clients",
            lambda: load.requests(
                server,
                "PATCH",
                f"{hosts.PATH}/h-@N@/status",
                count=size.hosts,
                clients=many,
                body=hosts.status(),
                type=hosts.MERGE_PATCH,
            ),
        ),
        _rate(
            server,
            f"gets, {many} clients",
            lambda: load.requests(server, "GET", f"{hosts.PATH}/h-@N@", count=gets, clients=many),
        ),
        _rate(
            server,
            "status patches, 1 client",
            lambda: load.requests(
                server,
                "PATCH",
                f"{hosts.PATH}/h-@N@/status",
                count=one_by_one,
                clients=1,
                body=json.dumps({"status": {"poweredOn": False}}),
                type=hosts.MERGE_PATCH,
            ),
        ),
    ]
    return made


def _rate(server: Server, title: str, run: Callable[[], Outcome]) -> Figure:
    before = processor_time(server.pids.values())
    outcome = run()
    spent = processor_time(server.pids.values()) - before
    return Figure(title, outcome.rate, "/s", False, spent / outcome.count, _latency(outcome))


def _list(server: Server, size: Size, title: str, accept: str) -> Figure:
    before = processor_time(server.pids.values())
    outcomes = [
        load.requests(server, "GET", hosts.PATH, count=1, clients=1, accept=accept) for _ in range(size.lists)
    ]
    spent = (processor_time(server.pids.values()) - before) / size.lists
    middle = statistics.median(outcome.seconds for outcome in outcomes) * 1e3
    return Figure(
        f"list of {size.hosts:,} hosts, {title}",
        middle,
        "ms",
        True,
        spent,
        f"{outcomes[0].bytes / 1e6:.1f} MB",
    )


def _watches(server: Server, size: Size) -> Iterator[Figure]:
    version = json.loads(server.get(f"{hosts.PATH}?limit=1"))["metadata"]["resourceVersion"]
    before = processor_time(server.pids.values())
    with load.watches(
        server,
        f"{hosts.PATH}?watch=true&resourceVersion={version}",
        watchers=size.watchers,
        method="PATCH",
        write_path=f"{hosts.PATH}/h-@N@",
        body=hosts.change(),
        count=size.events,
        type=hosts.MERGE_PATCH,
    ) as (opened, deliver):
        between = processor_time(server.pids.values())
        cpu = (between - before) / opened.count
        yield Figure(f"{size.watchers:,} watches opened", opened.rate, "/s", False, cpu)
        yield Figure(f"memory with {size.watchers:,} watches", memory(server.pids.values()), "MB", True)
        between = processor_time(server.pids.values())
        outcome = deliver()
    spent = processor_time(server.pids.values()) - between
    title = f"deliveries, {size.watchers:,} watchers, {size.events} events"
    yield Figure(title, outcome.rate, "/s", False, spent / outcome.count, _latency(outcome))


def _latency(outcome: Outcome) -> str:
    return f"p50 {outcome.latency_ms['p50']:.1f} ms, p99 {outcome.latency_ms['p99']:.1f} ms"
