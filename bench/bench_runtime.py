"""How fast the runtime lists, follows and reconciles 10,000 hosts, and in how much memory, beside two other clients.

`python bench/bench_runtime.py [--hosts 10000] [--events 30000] [--rounds 3]` prints one table; there are no thresholds. A server
process replays prepared bytes over TLS; each contender runs in a process of its own, one after the other, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from runtime.bytes import template
from spine.tables import table

FOLDER = Path(__file__).parent
CONTENDERS = {
    "Ingot": ("by_ingot.py", {}),
    "Ingot, in pages": ("by_ingot.py", {"PAGES": "1"}),
    "lightkube": ("by_lightkube.py", {}),
    "kubernetes": ("by_kubernetes.py", {}),
}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(FOLDER)}


def run(name: str, folder: str, hosts: int, events: int) -> dict[str, Any]:
    script, more = CONTENDERS[name]
    command = [sys.executable, str(FOLDER / "runtime" / script), folder, str(hosts), str(events)]
    done = subprocess.run(command, env=ENVIRONMENT | more, stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure(hosts: int, events: int, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Every contender, `rounds` times."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        command = [sys.executable, str(FOLDER / "runtime" / "replay.py"), folder, str(hosts), str(events)]
        server = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            server.stdout.readline()
            for _ in range(rounds):
                for name in CONTENDERS:
                    results[name].append(run(name, folder, hosts, events))
        finally:
            server.terminate()
            server.wait()
    return results


def rows(results: dict[str, list[dict[str, Any]]], hosts: int, events: int) -> list[list[str]]:
    """One row a figure: the medians, and how many times as much the peers need."""
    figures: list[tuple[str, str, Callable[[dict[str, Any]], float]]] = [
        ("listed and reconciled once, s", "{:.2f}", lambda r: r["listed"]["wall"]),
        ("  processor time a host, µs", "{:.0f}", lambda r: r["listed"]["cpu"] / hosts * 1e6),
        ("events/s", "{:,.0f}", lambda r: events / r["watched"]["wall"]),
        ("  a second of processor time", "{:,.0f}", lambda r: events / r["watched"]["cpu"]),
        ("  processor time an event, µs", "{:.0f}", lambda r: r["watched"]["cpu"] / events * 1e6),
        ("memory at the start, MB", "{:.0f}", lambda r: r["base"]),
        ("memory at the end, MB", "{:.0f}", lambda r: r["memory"]),
        ("most memory at any time, MB", "{:.0f}", lambda r: r["peak"]),
        ("import, s", "{:.2f}", lambda r: r["imported"]),
    ]
    made = []
    for label, form, figure in figures:
        values = {name: median(figure(result) for result in found) for name, found in results.items()}
        ratio = f"{values['lightkube'] / values['Ingot']:.2f}"
        made.append([label, *(form.format(value) for value in values.values()), ratio])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    load = " ".join(f"{mean:.2f}" for mean in os.getloadavg())
    print(
        f"{options.hosts:,} hosts of {len(template()) / 1000:.1f} KB, {options.events:,} changes, "
        f"medians of {options.rounds}; load before it: {load}",
        flush=True,
    )
    results = measure(options.hosts, options.events, options.rounds)
    print(table(["", *CONTENDERS, "lightkube/Ingot"], rows(results, options.hosts, options.events)))
    held_up = median(result["held_up"] for result in results["Ingot"]) * 1e3
    print(f"  the longest time for which Ingot held up its event loop: {held_up:.0f} ms")


if __name__ == "__main__":
    main()
