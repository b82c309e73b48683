"""Machines and claims by the thousand on a real kube-apiserver: until each has its host, and what that costs.

`python bench/bench_machines.py [--kind machines|claims] [--hosts stopped|running|together] [--count 1000] [--givers 2]`. As many
hosts as claimants are available. Then the claimants are created, which starts the clock, and `ingot operator --controllers
machines`, a process of its own, gives each a host. Before that, on another server, the floor: a bare client that makes the writes
of a claim, with as many at once, and does nothing else. `--hosts running`: Ingot looks after hosts, with the demo back end
without delays, and provisions them meanwhile; `together`: in the process that gives them away, as `ingot up` has it; `stopped`:
nobody does, and all that is written is the claims. `--givers 2`: two processes that know nothing of each other give hosts away
at once. What was written, and what was refused, is in the API server's own log.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from api import servers
from api.procfs import processor_time
from hosts import fleet
from hosts.running_operator import operator
from ingot.kube import Client
from machines import hall
from machines.audit import Asked, Log
from machines.identities import accounts
from spine.tables import table

HostsAre = Literal["stopped", "running", "together"]
SCRIPT = {"default": {"inventory": "small", "others": {"seconds": 0}}}
SILENCE = 3.0
"""Seconds without a write of the one who is measured, after which there is none left."""
QUIET = 0.1
"""Of one processor: a server that spends less than that has nothing of its own left to do."""


@dataclass
class Round:
    """What one of the two, Ingot or the floor, took."""

    created_in: float = 0.0
    claimed_in: float = 0.0
    half_in: float = 0.0
    linked_in: float = 0.0
    provisioned_in: float = 0.0
    asked: Asked = field(default_factory=Asked)
    """Until everything was written."""
    asked_by_then: Asked = field(default_factory=Asked)
    """Until each claimant named its host as its own."""
    own_cpu: float = 0.0
    server_cpu: float = 0.0
    etcd_cpu: float = 0.0
    hosts_cpu: float = 0.0
    wrong: list[str] = field(default_factory=list)


def say(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def giving(
    who: str, kubeconfig: Path, folder: Path, kind: hall.Kind, count: int, givers: int
) -> Iterator[list[int]]:
    """Who gives hosts away, ready to; the processes."""
    if who == "ingot":
        with contextlib.ExitStack() as stack:
            options = ("--controllers", "machines")
            yield [
                stack.enter_context(operator(kubeconfig, folder / f"giver-{number}", *options)).pid
                for number in range(givers)
            ]
        return
    script = Path(__file__).parent / "floor_of_claims.py"
    command = [sys.executable, str(script), str(kubeconfig), kind, str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield [process.pid]
    finally:
        process.terminate()
        process.wait()


async def settled(server: servers.Server) -> None:
    while True:
        before = processor_time(server.pids.values())
        await asyncio.sleep(SILENCE)
        if processor_time(server.pids.values()) - before < SILENCE * QUIET:
            return


async def no_more(written: Callable[[], Asked]) -> Asked:
    """All that was written, once nothing has been for a while."""
    found = written()
    while True:
        await asyncio.sleep(SILENCE)
        before, found = found, written()
        if found == before:
            return found


async def measured(
    who: str, kind: hall.Kind, count: int, *, hosts: HostsAre, givers: int, folder: Path
) -> Round:
    log, found = Log(folder), Round()
    hosts_running, together = hosts != "stopped", hosts == "together" and who == "ingot"
    async with contextlib.AsyncExitStack() as stack:
        server = stack.enter_context(servers.kubernetes(folder, *log.options))
        users = accounts(server, folder, "user", "hosts", who)
        client = await stack.enter_async_context(Client.from_kubeconfig(users["user"]))
        begun = time.perf_counter()
        if hosts_running:
            options = ("--controllers", "hosts,machines") if together else ()
            keeper = stack.enter_context(
                operator(users[who if together else "hosts"], folder / "hosts", *options, script=SCRIPT)
            )
            arriving = asyncio.create_task(
                fleet.until(client, hall.HOSTS, count, fleet.available, begun, 60 + count)
            )
            await fleet.create(client, hall.HOSTS, count)
            await arriving
        else:
            await hall.have_hosts(client, count)
        say(f"{count} hosts are available after {time.perf_counter() - begun:.0f} s")
        if kind == "claims":
            await hall.open_to_tenants(client)
        alone = contextlib.nullcontext([keeper.pid]) if together else None
        own = stack.enter_context(alone or giving(who, users[who], folder, kind, count, givers))
        await settled(server)
        pids = {"own": own, "etcd": [server.pids["etcd"]], "server": [server.pids["kube-apiserver"]]}
        if hosts_running and not together:
            pids["hosts"] = [keeper.pid]
        written = partial(log.since, log.size, who, hosts_too=together)
        before = {part: processor_time(ones) for part, ones in pids.items()}
        async with hall.followed(client, kind, count) as seen:
            found.created_in = await hall.create(client, kind, count)
            found.claimed_in = await seen.claimed.wait("claimed", 60 + count)
            found.half_in = seen.claimed.percentile(0.5)
            found.linked_in = await seen.linked.wait("linked", 60 + count)
            found.asked_by_then = written()
            spent = {part: processor_time(ones) - before[part] for part, ones in pids.items()}
            say(f"{who}: all claimed after {found.claimed_in:.1f} s, linked after {found.linked_in:.1f} s")
            if hosts_running:
                found.provisioned_in = await seen.provisioned.wait("provisioned", 120 + count)
                say(f"{who}: all provisioned after {found.provisioned_in:.1f} s")
        found.asked = await no_more(written)
        found.own_cpu, found.server_cpu, found.etcd_cpu = (spent[part] for part in ("own", "server", "etcd"))
        found.hosts_cpu = spent.get("hosts", 0.0)
        found.wrong = await hall.wrong(client, kind, count)
    return found


def rows(ingot: Round, floor: Round, count: int, *, hosts_running: bool) -> list[list[str]]:
    def seconds(title: str, of_ingot: float, of_floor: float) -> list[str]:
        return [
            title,
            f"{of_ingot:.1f} s",
            f"{of_floor:.1f} s",
            f"{of_ingot / of_floor:.2f}" if of_floor else "",
        ]

    def each(title: str, of_ingot: float, of_floor: float) -> list[str]:
        return [title, f"{of_ingot / count:.2f}", f"{of_floor / count:.2f}", ""]

    kinds = sorted({*ingot.asked.writes, *floor.asked.writes})
    made = [
        seconds("created in", ingot.created_in, floor.created_in),
        seconds("until half of them have a host", ingot.half_in, floor.half_in),
        seconds("until all have a host", ingot.claimed_in, floor.claimed_in),
        seconds("until all say which", ingot.linked_in, floor.linked_in),
        each("writes a claim, until then", *(r.asked_by_then.writes.total() for r in (ingot, floor))),
        *(
            each(f"of them {kind}", ingot.asked_by_then.writes[kind], floor.asked_by_then.writes[kind])
            for kind in kinds
        ),
        each("writes a claim, with all that follows", *(r.asked.writes.total() for r in (ingot, floor))),
        *(
            [title, str(of_ingot), str(of_floor), ""]
            for title, of_ingot, of_floor in (
                ("refused as conflicts", ingot.asked.conflicts.total(), floor.asked.conflicts.total()),
                ("most conflicts of one claimant", ingot.asked.most_retries, floor.asked.most_retries),
                ("refused otherwise", ingot.asked.refused.total(), floor.asked.refused.total()),
                ("not exactly one host", len(ingot.wrong), len(floor.wrong)),
            )
        ),
        seconds("processor time: who gives hosts away", ingot.own_cpu, floor.own_cpu),
        seconds("processor time: API server", ingot.server_cpu, floor.server_cpu),
        seconds("processor time: etcd", ingot.etcd_cpu, floor.etcd_cpu),
    ]
    if hosts_running:
        made += [
            seconds("processor time: who looks after hosts", ingot.hosts_cpu, floor.hosts_cpu),
            seconds("until all are provisioned", ingot.provisioned_in, floor.provisioned_in),
        ]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", choices=["machines", "claims"], action="append")
    parser.add_argument("--hosts", choices=["stopped", "running", "together"], action="append")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--givers", type=int, default=1)
    options = parser.parse_args()
    print(f"load before it: {' '.join(f'{load:.2f}' for load in os.getloadavg())}", flush=True)
    for kind in options.kind or ["machines", "claims"]:
        for hosts in options.hosts or ["stopped", "running"]:
            rounds = {}
            for who in ("floor", "ingot"):
                with tempfile.TemporaryDirectory(prefix="ingot-bench-") as folder:
                    rounds[who] = asyncio.run(
                        measured(
                            who,
                            kind,
                            options.count,
                            hosts=hosts,
                            givers=options.givers,
                            folder=Path(folder),
                        )
                    )
            ingot, floor = rounds["ingot"], rounds["floor"]
            print(f"\n{options.count:,} {kind}, hosts {hosts}:", flush=True)
            body = rows(ingot, floor, options.count, hosts_running=hosts != "stopped")
            print(table(["", "Ingot", "floor", "ratio"], body), flush=True)
            for line in [*ingot.wrong, *floor.wrong][:10]:
                print(f"  wrong: {line}")


if __name__ == "__main__":
    main()
