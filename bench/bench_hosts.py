"""Hosts by the thousand on a real kube-apiserver and on the embedded API: from created to available, and what it costs.

`python bench/bench_hosts.py [--on kubernetes|embedded] [--hosts 1000] [--growth]`. The operator is a process of its own with the
demo back end and the peer's delays: 5 s to register, 2 s to inspect. The clock starts with the first create request. Then, on the
same kind of server, begun anew, the floor: a bare client that issues the same writes with the same waits and does nothing else.
After that the fleet is left alone for a while: what idle hosts cost. `--growth` does it with 100, 1,000 and 10,000 hosts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from api import servers
from api.procfs import memory, processor_time
from hosts import fleet
from hosts.requests import Asked, writes
from hosts.running_operator import Operator, operator
from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.meta import Key
from ingot.kube import Client
from spine.tables import table

PEER = {
    "time to all available": "120 s tuned, 441 s as shipped",
    "writes a host": "29.7",
    "of them baremetalhosts/status": "9.3",
    "refused as conflicts, a host": "13.5",
    "operator, processor time": "26 s",
    "operator, memory": "146 MB",
}
IDLE = 60.0
SILENCE = 3.0
"""Seconds without an Event after which there is none left."""


@dataclass
class Figures:
    hosts: int
    server: str
    created_in: float = 0.0
    all_in: float = 0.0
    half_in: float = 0.0
    floor_in: float = 0.0
    all_written_in: float = 0.0
    floor_written_in: float = 0.0
    writes: Counter[Asked] = field(default_factory=Counter)
    operator_cpu: float = 0.0
    operator_memory: float = 0.0
    server_cpu: float = 0.0
    server_memory: float = 0.0
    idle: float = 0.0
    burst: tuple[float, float] = (0.0, 0.0)
    quiet: tuple[float, float] = (0.0, 0.0)
    missing: list[str] = field(default_factory=list)

    def per_host(self, wanted: str = "", *, conflicts: bool = False) -> float:
        return (
            sum(
                count
                for (kind, code), count in self.writes.items()
                if wanted in ("", kind) and (code == "409" or not conflicts)
            )
            / self.hosts
        )


def say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr, flush=True)


def kubeconfig_of(server: servers.Server, folder: Path) -> Path:
    config = {
        "clusters": [
            {"name": "c", "cluster": {"server": server.url, "certificate-authority": str(server.ca)}}
        ],
        "users": [{"name": "u", "user": {"token": server.token.read_text()}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "fleet"}}],
        "current-context": "x",
    }
    path = folder / "bench-kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


async def with_ingot(
    server: servers.Server, kubeconfig: Path, state: Path, found: Figures, *, idle: float
) -> None:
    async with Client.from_kubeconfig(kubeconfig) as client:
        with operator(kubeconfig, state) as running:
            before_it = writes(server.get("/metrics").decode())
            cpu, begun = processor_time(server.pids.values()), time.perf_counter()
            arriving = asyncio.create_task(
                fleet.until(client, "fleet", found.hosts, fleet.available, begun, 60 + found.hosts)
            )
            found.created_in = await fleet.create(client, "fleet", found.hosts)
            arrivals = await arriving
            found.all_in, found.half_in = max(arrivals.at.values()), arrivals.percentile(0.5)
            say(f"{found.hosts} hosts available after {found.all_in:.1f} s")
            found.all_written_in = await _all_events_written(running, found.hosts) - begun
            say(f"all Events written after {found.all_written_in:.1f} s")
            found.writes = writes(server.get("/metrics").decode()) - before_it - _by_the_user(found.hosts)
            found.operator_cpu, found.operator_memory = processor_time([running.pid]), memory([running.pid])
            found.server_cpu = processor_time(server.pids.values()) - cpu
            found.server_memory = memory(server.pids.values())
            found.burst = _percentiles(running.histogram("ingot_backend_event_to_status_seconds"))
            found.missing = await fleet.missing(client, "fleet", found.hosts)
            if idle:
                cpu, begun = processor_time([running.pid]), time.perf_counter()
                await asyncio.sleep(idle)
                found.idle = (processor_time([running.pid]) - cpu) / (time.perf_counter() - begun)
                before = running.histogram("ingot_backend_event_to_status_seconds")
                await _switch_some(client, min(found.hosts, 200))
                after = running.histogram("ingot_backend_event_to_status_seconds")
                found.quiet = _percentiles({bound: after[bound] - before[bound] for bound in after})


async def _all_events_written(running: Operator, hosts: int) -> float:
    """Events are sent behind what they speak of. When the last one was, on the clock of `perf_counter`."""
    count, since = 0.0, time.perf_counter()
    while time.perf_counter() - since < SILENCE:
        # The metrics of ten thousand hosts take a part of a second to write down, in which no Event is sent.
        await asyncio.sleep(0.5 + hosts / 2000)
        if (written := await asyncio.to_thread(running.events_written)) != count:
            count, since = written, time.perf_counter()
    return since


def _by_the_user(hosts: int) -> Counter[Asked]:
    """What was written to create the fleet."""
    return Counter({("baremetalhosts", "201"): hosts, ("secrets", "201"): hosts, ("namespaces", "201"): 1})


async def _switch_some(client: Client, count: int) -> None:
    """Machines switched off one after the other: what happens on a quiet day."""
    for name in fleet.names(count):
        await client.patch(BARE_METAL_HOSTS, Key("fleet", name), {"spec": {"online": False}})
        await asyncio.sleep(0.1)
    await asyncio.sleep(2)


def _percentiles(histogram: dict[float, float]) -> tuple[float, float]:
    """p50 and p99: the upper bounds of the buckets that they fall into."""
    total = max(histogram.values(), default=0.0)
    ordered = sorted(histogram.items())
    return (
        next((bound for bound, below in ordered if below >= total * 0.5), 0.0),
        next((bound for bound, below in ordered if below >= total * 0.99), 0.0),
    )


@contextlib.contextmanager
def bare_client(kubeconfig: Path, count: int) -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).parent / "floor_of_hosts.py"
    command = [sys.executable, str(script), str(kubeconfig), "fleet", str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.terminate()
        process.wait()


async def until_the_floor_is_reached(
    kubeconfig: Path, count: int, process: subprocess.Popen[str]
) -> tuple[float, float]:
    """Until all hosts are available, and until everything is written."""
    async with Client.from_kubeconfig(kubeconfig) as client:
        begun = time.perf_counter()
        arriving = asyncio.create_task(
            fleet.until(client, "fleet", count, fleet.available, begun, 60 + count)
        )
        await fleet.create(client, "fleet", count)
        arrivals = await arriving
        await asyncio.to_thread(process.wait)
        return max(arrivals.at.values()), time.perf_counter() - begun


def measured(name: str, count: int, *, idle: float) -> Figures:
    start = {"kubernetes": servers.kubernetes, "embedded": servers.embedded}[name]
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        found = Figures(count, name)
        for part in ("ingot", "floor"):
            place = Path(folder) / part
            place.mkdir()
            with start(place) as server:
                kubeconfig = kubeconfig_of(server, place)
                if part == "ingot":
                    asyncio.run(with_ingot(server, kubeconfig, place / "operator", found, idle=idle))
                else:
                    with bare_client(kubeconfig, count) as process:
                        found.floor_in, found.floor_written_in = asyncio.run(
                            until_the_floor_is_reached(kubeconfig, count, process)
                        )
                    say(f"the floor took {found.floor_in:.1f} s")
        return found


def rows(found: Figures) -> list[list[str]]:
    def peer(row: str) -> str:
        return PEER.get(row, "") if found.hosts == 1000 and found.server == "kubernetes" else ""

    made = [
        ("created in", f"{found.created_in:.1f} s"),
        ("time to all available", f"{found.all_in:.1f} s"),
        ("time to half of them", f"{found.half_in:.1f} s"),
        ("the floor: the same writes and waits", f"{found.floor_in:.1f} s"),
        ("times the floor", f"{found.all_in / found.floor_in:.2f}"),
        ("time to everything written, the last Event too", f"{found.all_written_in:.1f} s"),
        ("the floor of that", f"{found.floor_written_in:.1f} s"),
        ("times that floor", f"{found.all_written_in / found.floor_written_in:.2f}"),
        ("writes a host", f"{found.per_host():.2f}"),
        *(
            (f"of them {kind}", f"{found.per_host(kind):.2f}")
            for kind in sorted({kind for kind, _ in found.writes})
        ),
        ("refused as conflicts, a host", f"{found.per_host(conflicts=True):.3f}"),
        ("operator, processor time", f"{found.operator_cpu:.1f} s"),
        ("operator, memory", f"{found.operator_memory:.0f} MB"),
        ("API server, processor time", f"{found.server_cpu:.1f} s"),
        ("API server, memory", f"{found.server_memory:.0f} MB"),
        (
            "event to status, all at once: p50, p99",
            f"≤ {found.burst[0] * 1e3:g}, {found.burst[1] * 1e3:g} ms",
        ),
        (
            "event to status, ten a second: p50, p99",
            f"≤ {found.quiet[0] * 1e3:g}, {found.quiet[1] * 1e3:g} ms",
        ),
        ("idle operator, of one core", f"{found.idle:.2%}"),
        ("not found at the hosts", f"{len(found.missing)}"),
    ]
    return [[row, value, peer(row)] for row, value in made]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--on", choices=["kubernetes", "embedded"], action="append")
    parser.add_argument("--hosts", type=int, action="append")
    parser.add_argument("--growth", action="store_true", help="100, 1,000 and 10,000 hosts")
    parser.add_argument("--idle", type=float, default=IDLE, help="seconds to watch the idle fleet")
    options = parser.parse_args()
    print(f"load before it: {' '.join(f'{load:.2f}' for load in os.getloadavg())}", flush=True)
    sizes = [100, 1000, 10000] if options.growth else options.hosts
    runs = [
        (name, size) for name in options.on or ["kubernetes", "embedded"] for size in sizes or _usual(name)
    ]
    for name, size in runs:
        found = measured(name, size, idle=options.idle)
        print(f"\n{size:,} hosts, {name}:", flush=True)
        print(table(["", "Ingot", "peer"], rows(found)), flush=True)
        for line in found.missing[:10]:
            print(f"  not found: {line}")


def _usual(name: str) -> list[int]:
    return [1000] if name == "kubernetes" else [10000]


if __name__ == "__main__":
    main()
