"""Fleets through a real Ironic: from created to available and to provisioned, against a bare script on the same push events.

`python bench/bench_ironic.py [--hosts 100] [--to provisioned] [--rounds 1]`. Everything is real but the servers, which are the
farm's, each with a BMC address and a certificate of its own. First the script, then Ingot, each on a new installation; with more
rounds they take turns. `--hosts 1000 --to available` is the long one: most of an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial

from ingot.services.environment import ensure
from ironic import fleet
from ironic.fleet import Fleet
from spine.folders import run_folder
from spine.tables import table


async def measure(hosts: int, to: str, rounds: int, idle: float) -> tuple[list[Fleet], list[Fleet]]:
    ingot: list[Fleet] = []
    script: list[Fleet] = []
    patience = 600.0 + 6.0 * hosts
    for number in range(rounds):
        for ours in (False, True) if number % 2 == 0 else (True, False):
            with run_folder() as folder:
                if ours:
                    ingot.append(await fleet.by_ingot(folder, hosts, to=to, patience=patience, idle=idle))
                else:
                    script.append(await fleet.by_script(folder, hosts, to=to, patience=patience))
            done = (ingot if ours else script)[-1]
            print(
                f"  {'Ingot' if ours else 'script'}: {hosts} hosts {to} after {done.all_in(to):.1f} s; "
                f"load {os.getloadavg()[0]:.1f}",
                file=sys.stderr,
                flush=True,
            )
    return ingot, script


def rows(ingot: Sequence[Fleet], script: Sequence[Fleet], hosts: int, to: str) -> list[list[str]]:
    found = []
    for state in ("available", "provisioned") if to == "provisioned" else ("available",):
        found.append(_times(f"all {state}", [[f.all_in(state) for f in runs] for runs in (ingot, script)]))
        found.append(
            _times(
                f"half of them {state}",
                [[statistics.median(f.reached[state]) for f in runs] for runs in (ingot, script)],
            )
        )
    found += [
        _costs(f"{part}, processor time", "s", partial(_of, "processor", part), ingot, script)
        for part in ("operator", "API server", "script", "Ironic", "front", "farm")
    ]
    found += [
        _costs(f"{part}, memory", "MB", partial(_of, "resident", part), ingot, script)
        for part in ("operator", "API server", "Ironic", "front", "farm")
    ]
    found.append(_costs("requests to Ironic, a host", "", lambda f: f.requests / hosts, ingot, script))
    idle = statistics.median(run.idle_requests for run in ingot)
    found.append(["requests to Ironic in an idle minute", f"{idle:.1f}", "-", "", ""])
    return found


def _of(what: str, part: str, run: Fleet) -> float | None:
    return run.processor.get(part) if what == "processor" else run.resident.get(part)


def _times(name: str, both: list[list[float]]) -> list[str]:
    mine, other = (statistics.median(times) for times in both)
    return [name, f"{mine:.1f} s", f"{other:.1f} s", f"{mine - other:+.1f} s", f"{mine / other:.2f}"]


def _costs(
    name: str, unit: str, of: Callable[[Fleet], float | None], ingot: Sequence[Fleet], script: Sequence[Fleet]
) -> list[str]:
    both = [[value for f in runs if (value := of(f)) is not None] for runs in (ingot, script)]
    shown = [f"{statistics.median(values):.1f} {unit}".strip() if values else "-" for values in both]
    return [name, *shown, "", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--to", choices=("available", "provisioned"), default="provisioned")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--idle", type=float, default=fleet.IDLE, help="seconds in which idle requests are counted"
    )
    options = parser.parse_args()
    # Asked to end, it still stops what it started: every `finally` on the way runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ensure(progress=print)
    load = " ".join(f"{mean:.2f}" for mean in os.getloadavg())
    print(f"{options.hosts} hosts, median of {options.rounds}; load before it: {load}", flush=True)
    ingot, script = asyncio.run(measure(options.hosts, options.to, options.rounds, options.idle))
    print(
        table(("", "Ingot", "script", "difference", "ratio"), rows(ingot, script, options.hosts, options.to))
    )


if __name__ == "__main__":
    main()
