"""Faults in time, faults with a count, and what holds when several say something."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from ingot.lab import labfile
from ingot.lab.chassis import Chassis
from ingot.lab.faults import Faults, Plan, Planned, in_force, spend
from ingot.lab.ledger import Ledger
from ingot.lab.planner import Planner

START = datetime(2026, 1, 1, tzinfo=UTC)


def plan(*steps: Planned) -> Plan:
    return Plan(set_at=START, steps=list(steps))


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_planned_faults_hold_from_their_beginning_to_their_end() -> None:
    planned = plan(Planned(after=10, lasts=5, faults=Faults(bmc_down=True)))
    held = [in_force(Faults(), planned, after(seconds)).bmc_down for seconds in (0, 9.9, 10, 14.9, 15, 99)]
    assert held == [False, False, True, True, False, False]


def test_planned_faults_without_an_end_stay() -> None:
    assert in_force(Faults(), plan(Planned(faults=Faults(power_lie="Off"))), after(1e6)).power_lie == "Off"


def test_steady_faults_hold_beside_the_planned_ones() -> None:
    planned = plan(
        Planned(
            faults=Faults(slow_seconds=2, fail_steps={"b": "x"}, inventory_lacks=["disks"], unavailable=3)
        ),
        Planned(after=5, faults=Faults(slow_seconds=4, unavailable=-1)),
    )
    steady = Faults(fail_power=True, fail_steps={"a": "y"}, inventory_lacks=["cpu"], unavailable=2)
    assert in_force(steady, planned, after(1)) == Faults(
        fail_power=True,
        slow_seconds=2,
        fail_steps={"a": "y", "b": "x"},
        inventory_lacks=["cpu", "disks"],
        unavailable=5,
    )
    later = in_force(steady, planned, after(6))
    assert (later.slow_seconds, later.unavailable) == (4, -1)


def test_a_counted_fault_acts_so_many_times_and_then_no_more() -> None:
    steady, planned = Faults(unavailable=1), plan(Planned(after=5, faults=Faults(unavailable=2)))
    assert [spend("unavailable", steady, planned, after(1)) for _ in range(3)] == [True, False, False]
    assert [spend("unavailable", steady, planned, after(6)) for _ in range(3)] == [True, True, False]
    assert in_force(steady, planned, after(6)) == Faults()


def test_a_fault_that_always_acts_is_never_spent() -> None:
    faults = Faults(lose_heartbeats=-1)
    assert all(spend("lose_heartbeats", faults, None, START) for _ in range(10))
    assert not spend("unavailable", faults, None, START)


def test_the_next_change_of_a_plan_is_a_beginning_or_an_end() -> None:
    planned = plan(
        Planned(after=10, lasts=5, faults=Faults(bmc_down=True)),
        Planned(after=12, faults=Faults(fail_power=True)),
    )
    assert [planned.next_change(after(seconds)) for seconds in (0, 10, 12, 15)] == [
        after(10),
        after(12),
        after(15),
        None,
    ]


@pytest.mark.parametrize("step", [{"after": -1, "faults": {}}, {"lasts": -1, "faults": {}}, {"after": 1}])
def test_a_plan_that_makes_no_sense_is_refused(step: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(step, Planned)


async def test_the_planner_tells_of_every_change_of_the_plan_a_server_has(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    [plate] = labfile.grown(tmp_path, host="127.0.0.1", servers=1).servers
    chassis = Chassis(plate, tmp_path / "server", ledger)
    seen: asyncio.Queue[bool] = asyncio.Queue()

    async def changed(told: Chassis) -> None:
        seen.put_nowait(told.faults.bmc_down)

    planner = Planner(changed)

    async def told_by(*steps: Planned) -> bool:
        chassis.record.plan = Plan(set_at=datetime.now(UTC), steps=list(steps))
        planner.follow(chassis)
        async with asyncio.timeout(60):
            return await seen.get()

    chassis.record.plan = Plan(set_at=datetime.now(UTC), steps=[Planned(after=0.1, faults=Faults())])
    planner.follow(chassis)  # nobody follows it when there is another
    assert await told_by(Planned(after=0.2, faults=Faults(bmc_down=True))) is True
    assert await told_by(Planned(lasts=0.05, faults=Faults(bmc_down=True))) is False
    assert seen.empty()
    await planner.stop()
    await ledger.close()


async def test_a_server_waits_where_it_is_held_until_it_is_released(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    [plate] = labfile.grown(tmp_path, host="127.0.0.1", servers=1).servers
    chassis = Chassis(plate, tmp_path / "server", ledger)
    chassis.hold("write_image")
    await chassis.held("boot")
    waiting = asyncio.create_task(chassis.held("write_image"))
    await asyncio.sleep(0)
    assert chassis.held_at == "write_image"
    chassis.hold("write_image")
    await asyncio.sleep(0)
    assert not waiting.done()
    chassis.hold("boot")  # to hold it elsewhere lets it go from here
    async with asyncio.timeout(60):
        await waiting
    assert (chassis.held_at, chassis.record.hold) == ("", "boot")
    cut_off = asyncio.create_task(chassis.held("boot"))
    await asyncio.sleep(0)
    cut_off.cancel()
    await asyncio.wait([cut_off])
    assert chassis.held_at == "", "a server that is switched off waits nowhere"
    await ledger.close()
