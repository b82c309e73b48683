"""When a Machine that got its host tells how that is getting on."""

from __future__ import annotations

import asyncio

import pytest

from ingot.api.meta import Key
from ingot.machines.machine.lull import LONGEST, QUIET, Lull

ONE, OTHER = Key("m", "one"), Key("m", "other")


@pytest.mark.looptime
async def test_who_claimed_nothing_lately_tells_at_once() -> None:
    assert Lull().wait(ONE) == 0


@pytest.mark.looptime
async def test_news_wait_until_nobody_has_claimed_anything_for_a_moment() -> None:
    lull = Lull()
    lull.claimed(ONE)
    assert lull.wait(ONE) == pytest.approx(QUIET)
    await asyncio.sleep(QUIET / 2)
    lull.claimed(OTHER)
    assert lull.wait(ONE) == pytest.approx(QUIET)
    await asyncio.sleep(QUIET)
    assert (lull.wait(ONE), lull.wait(OTHER)) == (0, 0)


@pytest.mark.looptime
async def test_news_come_in_the_end_however_much_is_claimed() -> None:
    lull = Lull()
    lull.claimed(ONE)
    waited = 0.0
    while (wait := lull.wait(ONE)) > 0:
        waited += min(wait, 1.0)
        await asyncio.sleep(min(wait, 1.0))
        lull.claimed(OTHER)
    assert waited == pytest.approx(LONGEST)


@pytest.mark.looptime
async def test_in_one_rush_of_less_than_a_minute_nobody_tells_before_it_is_over() -> None:
    lull, began = Lull(), asyncio.get_running_loop().time()
    early = [Key("m", f"m{number}") for number in range(55)]
    for key in early:
        lull.claimed(key)
        await asyncio.sleep(1.0)
        assert all(lull.wait(one) > 0 for one in early[: early.index(key) + 1])
    await asyncio.sleep(QUIET)
    assert asyncio.get_running_loop().time() - began < 60
    assert all(lull.wait(one) == 0 for one in early)


@pytest.mark.looptime
async def test_who_told_once_tells_at_once_from_then_on() -> None:
    lull = Lull()
    lull.claimed(ONE)
    await asyncio.sleep(QUIET)
    assert lull.wait(ONE) == 0
    lull.claimed(OTHER)
    assert lull.wait(ONE) == 0
    lull.forget(OTHER)
    assert lull.wait(OTHER) == 0
