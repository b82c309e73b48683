"""How often and how many at once: one machine never slows down another one."""

from __future__ import annotations

import asyncio

import pytest

from ingot.services.front import limits
from ingot.services.front.limits import Buckets, Gate, Rate, TooBusy


def test_a_burst_is_taken_and_then_the_rate_holds_for_that_name_alone() -> None:
    now = 0.0
    buckets = Buckets(Rate(burst=3, each_second=1), clock=lambda: now)
    assert [buckets.take("a") for _ in range(5)] == [True, True, True, False, False]
    assert buckets.take("b")
    now = 2.0
    assert [buckets.take("a") for _ in range(3)] == [True, True, False]
    now = 1_000.0
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]


def test_names_that_no_longer_call_are_forgotten() -> None:
    buckets = Buckets(Rate(burst=1, each_second=0), clock=lambda: 0.0)
    assert buckets.take("first")
    for number in range(limits.COUNTED_AT_ONCE):
        buckets.take(str(number))
    assert buckets.take("first")


async def test_few_go_through_at_once_and_the_others_wait_their_turn() -> None:
    gate, inside, most = Gate(at_once=2, patience=30), 0, 0

    async def one() -> None:
        nonlocal inside, most
        async with gate.through():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(one() for _ in range(20)))
    assert (inside, most) == (0, 2)


@pytest.mark.looptime
async def test_who_waits_too_long_or_finds_too_many_waiting_is_told() -> None:
    gate = Gate(at_once=1, waiting=1, patience=30)
    async with gate.through():
        waiting = asyncio.create_task(_enter(gate))
        await asyncio.sleep(1)
        with pytest.raises(TooBusy):
            await _enter(gate)
        with pytest.raises(TooBusy):
            await waiting
    await _enter(gate)


async def _enter(gate: Gate) -> None:
    async with gate.through():
        pass
