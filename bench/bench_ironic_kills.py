"""Hosts in every moment of their lives on real Ironic, and kill -9 of the operator, of Ironic, or of both, again and again.

`python bench/bench_ironic_kills.py [--rounds 5] [--kills 6] [--seed 1]`: in each round one new host is parked in each moment, and
whoever the dice say is killed. Some hosts are let go between the kills, so that they are hit while they move. Then all have to
arrive, and no server may be deployed or wiped twice; a promise that is not kept ends it with an error. The same seed kills the
same ones in the same order. The tests do the same with three kills.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import time
from pathlib import Path

from ingot.services.environment import ensure
from spine.folders import run_folder
from spine.tables import table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "integration"))

from ironic_kills import KILLS, MOMENTS, Campaign
from ironic_room import Room

MOST_APART = 6.0
"""Seconds between two kills, at most."""


async def one_round(room: Room, dice: random.Random, kills: int) -> list[str]:
    """The row of the table: who was killed how often, and the times."""
    campaign = Campaign(room)
    begun = time.perf_counter()
    await campaign.park()
    parked = time.perf_counter()
    killed: dict[str, int] = {}
    waiting = [host for _, host in campaign.parked]
    dice.shuffle(waiting)
    for number in range(kills):
        who = dice.choice(KILLS)
        await campaign.kill(*who)
        killed[" and ".join(who)] = killed.get(" and ".join(who), 0) + 1
        # Half of those that are left go on, and are on their way when the next one is killed.
        let_go = waiting[: len(waiting) // 2 if number + 1 < kills else len(waiting)]
        waiting = waiting[len(let_go) :]
        await campaign.release(let_go)
        await asyncio.sleep(dice.uniform(0, MOST_APART))
    await campaign.arrive()
    if complaints := await campaign.complaints():
        raise SystemExit("\n".join(complaints))
    arrived = time.perf_counter()
    counts = ", ".join(f"{name} {count}" for name, count in sorted(killed.items()))
    last = max(campaign.took, key=lambda name: campaign.took[name])
    return [counts, f"{parked - begun:.0f} s", f"{arrived - parked:.0f} s", last]


async def run(rounds: int, kills: int, seed: int) -> list[list[str]]:
    dice = random.Random(seed)
    rows = []
    with run_folder() as folder:
        async with Room.open(folder, servers=rounds * len(MOMENTS)) as room:
            room.kill("ironic")
            room.start_ironic(patient=True)
            await room.ironic_ready()
            for number in range(rounds):
                row = await one_round(room, dice, kills)
                rows.append([str(number + 1), *row])
                print(f"  round {number + 1}: {row[0]}; all {len(MOMENTS)} hosts arrived", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=6, help="in each round")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # Asked to end, it still stops what it started: every `finally` on the way runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    ensure(progress=print)
    rows = asyncio.run(run(options.rounds, options.kills, options.seed))
    print(table([f"seed {options.seed}", "killed", "parked after", "arrived after", "last one"], rows))
    print("  no server was deployed or wiped twice")


if __name__ == "__main__":
    main()
