"""The embedded API against kube-apiserver with etcd, in one run: rates, lists, watches, memory, processor time.

`python bench/bench_api.py [--hosts 10000] [--clients 16] [--only embedded]` prints one table; there are no thresholds. Each
server runs alone, as processes of its own, with TLS; the load comes from a Go program. Beside each rate stands the processor time
that all processes of the server spent on one operation, which says more than the rate when the machine has other work.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from api import servers
from api.load import built
from api.measure import Figure, Size, figures
from spine.tables import table

_SERVERS = {"embedded": servers.embedded, "kubernetes": servers.kubernetes}


def say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr, flush=True)


def measured(name: str, size: Size) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder, _SERVERS[name](Path(folder)) as server:
        return figures(server, size, say)


def shown(figure: Figure) -> list[str]:
    digits = 0 if figure.value >= 100 else 2
    return [f"{figure.value:,.{digits}f} {figure.unit}".replace(" /s", "/s"), spent(figure)]


def spent(figure: Figure) -> str:
    if not figure.cpu:
        return ""
    return f"{figure.cpu * 1e3:,.0f} ms" if figure.cpu > 0.02 else f"{figure.cpu * 1e6:,.0f} µs"


def ahead(ours: Figure, theirs: Figure) -> str:
    """How many times better ours is: above 1 is ahead, whichever way the figure counts."""
    better = theirs.value / ours.value if ours.less_is_better else ours.value / theirs.value
    return f"{better:.1f}"


def cheaper(ours: Figure, theirs: Figure) -> str:
    """How many times less processor ours takes."""
    return f"{theirs.cpu / ours.cpu:.1f}" if ours.cpu and theirs.cpu else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    usual = Size()
    parser.add_argument("--hosts", type=int, default=usual.hosts)
    parser.add_argument("--clients", type=int, default=usual.clients)
    parser.add_argument("--watchers", type=int, default=usual.watchers)
    parser.add_argument("--only", choices=tuple(_SERVERS))
    options = parser.parse_args()
    size = Size(hosts=options.hosts, clients=options.clients, watchers=options.watchers)
    # Asked to end, it still stops what it started: every `finally` on the way runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    built()
    print(f"load before it: {' '.join(f'{mean:.2f}' for mean in os.getloadavg())}", flush=True)
    if options.only:
        alone = measured(options.only, size)
        rows = [[figure.title, *shown(figure), figure.note] for figure in alone]
        print(table(["", options.only, "CPU each", ""], rows))
        return
    ours, theirs = measured("embedded", size), measured("kubernetes", size)
    rows = [
        [mine.title, *shown(mine), *shown(other), ahead(mine, other), cheaper(mine, other)]
        for mine, other in zip(ours, theirs, strict=True)
    ]
    names = [
        "",
        "embedded",
        "CPU each",
        "kube-apiserver + etcd",
        "CPU each",
        "times better",
        "times less CPU",
    ]
    print(table(names, rows))


if __name__ == "__main__":
    main()
