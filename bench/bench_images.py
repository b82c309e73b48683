"""What a host's image costs, made and read: beside coreos-installer's copy, and beside nginx with a plain file.

`python bench/bench_images.py [--seconds 4] [--rounds 3] [--hosts 1000]`, all on 127.0.0.1; there are no thresholds. Where it
goes as fast as it can, the server has one processor and the client another; paced, the server may use all. The client throws
away what it reads without looking at it, so it costs less than any server.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from images import making
from images.live import SIZE, make_iso
from images.reading import Reading, read
from images.servers import ALL, SERVER_ON, Server, ingot, nginx
from ingot.trust import Authority
from spine.tables import table

STREAMS = (1, 8, 50)
RANGES = 16
READERS, PACE, LENGTH = 200, 2_000_000, 65_536


def said(text: str) -> None:
    print(text, flush=True)


def one_image(iso: Path, folder: Path, rounds: int, hosts: int) -> None:
    first, many = making.ours_alone(iso, folder, hosts)
    copy = making.theirs(iso, folder, rounds)
    rows = [["Ingot", f"{first.seconds * 1e3:.1f} ms", f"{first.disk:,}"]]
    if copy is None:
        said("coreos-installer is not built, so it is not compared with; `make test-coreos` builds it")
    else:
        rows.append(
            ["coreos-installer iso ignition embed -o", f"{copy.seconds * 1e3:,.0f} ms", f"{copy.disk:,}"]
        )
    said(f"\none host's image of {SIZE / 1e9:.1f} GB\n" + table(["", "time", "bytes written"], rows))
    figures = [
        ["time", f"{many.seconds:.2f} s", f"{many.seconds / hosts * 1e3:.2f} ms"],
        ["memory", f"{many.memory:.1f} MB", f"{many.memory / hosts * 1e3:.1f} KB"],
        ["disk", f"{many.disk:,} bytes", f"{many.disk / hosts:.0f} bytes"],
        ["until it is synced", f"{many.settling:.2f} s", f"{many.settling / hosts * 1e3:.2f} ms"],
    ]
    said(f"\n{hosts:,} hosts' images\n" + table(["", "all", "each"], figures))


@contextmanager
def both(iso: Path, folder: Path, *, tls: bool, on: set[int], without_nginx: bool) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(ingot(iso, folder, tls=tls, on=on))]
        if not without_nginx:
            servers.append(stack.enter_context(nginx(iso, folder, tls=tls, on=on)))
        yield servers


def loads(seconds: float) -> Iterator[tuple[str, str, dict[str, str | int]]]:
    for clients in STREAMS:
        yield f"streams, {clients} clients", "stream", {"clients": clients, "for": f"{seconds}s"}
    yield f"ranges of 64 KB, {RANGES} clients", "ranges", {"clients": RANGES, "for": f"{seconds}s"}


def saturated(servers: Sequence[Server], ca: Path, seconds: float, rounds: int) -> None:
    """Every load on every server in turn, again and again; the medians."""
    rows = []
    for title, what, options in loads(seconds):
        found: dict[str, list[Reading]] = {server.name: [] for server in servers}
        for _ in range(rounds):
            for server in servers:
                found[server.name].append(read(server, what, ca, **options))
        rates = {name: median(reading.rate for reading in readings) for name, readings in found.items()}
        costs = {
            name: median(reading.cpu_each_gigabyte for reading in readings)
            for name, readings in found.items()
        }
        client = max(
            reading.client_cpu / reading.seconds for readings in found.values() for reading in readings
        )
        row = [
            title,
            *(f"{rate:,.0f} MB/s" for rate in rates.values()),
            *(f"{cost:.2f} s" for cost in costs.values()),
        ]
        ratio = f"{rates['Ingot'] / rates['nginx']:.2f}" if "nginx" in rates else "-"
        rows.append([*row, ratio, f"{client:.0%}"])
    names = [server.name for server in servers]
    said(table(["", *names, *(f"{name}: CPU a GB" for name in names), "ratio", "client's CPU"], rows))


def paced(servers: Sequence[Server], ca: Path, seconds: float) -> None:
    """One after the other."""
    rows = []
    for server in servers:
        found = read(server, "paced", ca, clients=READERS, length=LENGTH, rate=PACE, **{"for": f"{seconds}s"})
        late = f"{READERS - found.behind} of {READERS}"
        times = (f"{value:.1f} ms" for value in (found.p50, found.p99, found.slowest))
        rows.append(
            [
                server.name,
                late,
                f"{found.rate:.0f} MB/s",
                *times,
                f"{found.cpu / found.seconds:.0%}",
                f"{server.memory:.0f} MB",
            ]
        )
    said(table(["", "on pace", "together", "p50", "p99", "slowest", "CPU", "memory"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--without-nginx", action="store_true")
    options = parser.parse_args()
    said("load before it: " + " ".join(f"{mean:.2f}" for mean in os.getloadavg()))
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as name:
        folder = Path(name)
        iso = folder / "served" / "live.iso"
        iso.parent.mkdir()
        make_iso(iso)
        (state := folder / "state").mkdir()
        ca = Authority(state / "ca").ca_file
        one_image(iso, state, options.rounds, options.hosts)
        for tls in (False, True):
            how, others = "TLS" if tls else "without TLS", options.without_nginx
            with both(iso, state, tls=tls, on=SERVER_ON, without_nginx=others) as servers:
                said(f"\nas fast as it goes, {how}")
                saturated(servers, ca, options.seconds, options.rounds)
            with both(iso, state, tls=tls, on=ALL, without_nginx=others) as servers:
                said(f"\n{READERS} readers at {PACE / 1e6:.0f} MB/s each, in ranges of 64 KB, {how}")
                paced(servers, ca, 4 * options.seconds)


if __name__ == "__main__":
    main()
