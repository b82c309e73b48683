"""Ingot against a bare script: the same Ironic, the same kind of server, the same work, in turns.

One uncounted run by the script comes first, so that both find an Ironic that has done everything once. Then they take turns, and
who begins changes with each round, so that whatever drifts hits both. Each run has a server of its own. At the end the servers
and Ironic's records are compared: a difference in what was done would make the difference in time worthless, and ends the
measurement.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ingot.lab.client import Lab
from ingot.lab.labfile import Plate
from ingot.lab.manifests import manifests
from spine.by_script import IMAGE_FORMAT, by_script
from spine.records import compare
from spine.room import Room, open_room
from spine.run import PHASES, Run
from spine.with_ingot import by_ingot

HEADER: Final = ("", "Ingot", "script", "difference", "ratio", "Ingot: each run", "script: each run")
COST_HEADER: Final = ("", "Ingot", "script")
_SPENDERS: Final = {"operator": "operator", "API": "API server", "script": "the script", "Ironic": "Ironic"}


async def measure(folder: Path, rounds: int) -> tuple[list[Run], list[Run]]:
    """The runs by Ingot, and the runs by the script."""
    ingot: list[Run] = []
    script: list[Run] = []
    async with open_room(folder, servers=2 * rounds + 1) as room, Lab.open(room.state.path) as lab:
        warming, *plates = lab.file.servers
        await by_script(room, lab, warming)
        for number in range(rounds):
            pair = plates[2 * number], plates[2 * number + 1]
            if number % 2 == 0:
                ingot.append(await _by_ingot(room, lab, pair[0]))
                script.append(await by_script(room, lab, pair[1]))
            else:
                script.append(await by_script(room, lab, pair[1]))
                ingot.append(await _by_ingot(room, lab, pair[0]))
        await compare(room, ingot, script)
    return ingot, script


async def _by_ingot(room: Room, lab: Lab, plate: Plate) -> Run:
    made = manifests(lab.file, names=[plate.name], provision=1, image_format=IMAGE_FORMAT)
    return await by_ingot(room, lab, plate.name, made)


def work(run: Run) -> str:
    return run.work()


def time_rows(ingot: Sequence[Run], script: Sequence[Run]) -> list[list[str]]:
    rows = []
    for phase in PHASES:
        ours, theirs = ([run.phases()[phase] for run in runs] for runs in (ingot, script))
        mine, other = statistics.median(ours), statistics.median(theirs)
        each = [" ".join(f"{seconds:.1f}" for seconds in times) for times in (ours, theirs)]
        rows.append(
            [phase, f"{mine:.2f} s", f"{other:.2f} s", f"{mine - other:+.2f} s", f"{mine / other:.2f}", *each]
        )
    return rows


def cost_rows(ingot: Sequence[Run], script: Sequence[Run]) -> list[list[str]]:
    rows = [
        [
            f"processor time, {words}",
            *(_median([run.processor.get(who) for run in runs], " s") for runs in (ingot, script)),
        ]
        for who, words in _SPENDERS.items()
    ]
    kinds = list(ingot[0].writes)
    totals = _median([sum(run.writes.values()) for run in ingot])
    rows.append(["writes to the API, without the order", totals, "-"])
    rows += [[f"    {kind}", _median([run.writes[kind] for run in ingot]), "-"] for kind in kinds]
    return rows


def _median(values: Sequence[float | None], unit: str = "") -> str:
    found = [value for value in values if value is not None]
    if not found:
        return "-"
    return f"{statistics.median(found):.2f}{unit}" if unit else f"{statistics.median(found):g}"
