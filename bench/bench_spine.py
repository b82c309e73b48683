"""How long `ingot up` takes to a provisioned host, and what Ingot adds to a bare script that drives the same Ironic.

`python bench/bench_spine.py [--rounds 3] [--only up|host]` prints one table for each; there are no thresholds. Everything is real
but the servers, which are the lab's, and everything listens on 127.0.0.1. Each installation lives in a temporary folder.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

from ingot.services.environment import ensure
from spine import coming_up, one_host
from spine.tables import table


def load() -> str:
    """What else the machine has to do: the means over 1, 5 and 15 minutes."""
    return " ".join(f"{mean:.2f}" for mean in os.getloadavg())


def show_coming_up(rounds: int) -> None:
    print(f"`ingot up --detach` on an empty folder, median of {rounds}; load before it: {load()}", flush=True)
    seen = [coming_up.measure() for _ in range(rounds)]
    print(table(coming_up.HEADER, coming_up.rows(seen)), flush=True)


def show_one_host(rounds: int) -> None:
    print(
        f"one host, from nothing to provisioned, median of {rounds} each, alternating; load before it: {load()}",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
        ingot, script = asyncio.run(one_host.measure(Path(folder), rounds))
    print(table(one_host.HEADER, one_host.time_rows(ingot, script)))
    print("\nwhat it cost, for one host\n" + table(one_host.COST_HEADER, one_host.cost_rows(ingot, script)))
    print(f"\nwhat the server saw, the same in every run: {one_host.work(ingot[0])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("up", "host"))
    options = parser.parse_args()
    # Asked to end, it still stops what it started: every `finally` on the way runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ensure(progress=print)
    if options.only in (None, "up"):
        show_coming_up(options.rounds)
        print()
    if options.only in (None, "host"):
        show_one_host(options.rounds)


if __name__ == "__main__":
    main()
