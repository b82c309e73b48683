"""The stream of changes that all back ends share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ingot.api.meta import Key
from ingot.provisioner import EVERYTHING, Change
from ingot.provisioner.changes import Changes

A, B = Key("rack", "a"), Key("rack", "b")


@pytest.fixture
async def heard() -> AsyncIterator[tuple[Changes, list[tuple[float, Change]]]]:
    """Somebody listens, and notes what comes when. The clock of a test stands at zero when it begins."""
    changes, notes = Changes(), list[tuple[float, Change]]()
    loop = asyncio.get_running_loop()

    async def listen() -> None:
        async for change in changes.listen():
            notes.append((round(loop.time(), 3), change))

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    yield changes, notes
    changes.close()
    await listening


@pytest.mark.looptime
async def test_several_changes_of_one_host_are_one(heard):
    changes, notes = heard
    for change in (A, B, A):
        changes.announce(change)
    await asyncio.sleep(1)
    assert [change for _, change in notes] == [A, B]


@pytest.mark.looptime
async def test_to_look_at_everything_means_every_host(heard):
    changes, notes = heard
    for change in (A, EVERYTHING, B):
        changes.announce(change)
    await asyncio.sleep(1)
    assert [change for _, change in notes] == [EVERYTHING]


@pytest.mark.looptime
@pytest.mark.parametrize("appointments", [(0.2, 2.0), (2.0, 0.2)])
async def test_of_two_appointments_the_sooner_is_kept(heard, appointments):
    changes, notes = heard
    for seconds in appointments:
        changes.later(A, seconds)
    changes.later(B, 1.0)
    await asyncio.sleep(5)
    assert notes == [(0.2, A), (1.0, B)]


@pytest.mark.looptime
async def test_a_stream_that_is_closed_ends_and_keeps_no_appointment(heard):
    changes, notes = heard
    changes.later(A, 1.0)
    changes.close()
    changes.later(B, 1.0)
    assert [change async for change in changes.listen()] == []
    await asyncio.sleep(5)
    assert notes == []
