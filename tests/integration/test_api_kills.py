"""kill -9 at any moment: nothing that was acknowledged is lost, nothing is there by half, nobody misses an event."""

from __future__ import annotations

from pathlib import Path

from kill_campaign import Campaign

KILLS = 20


async def test_twenty_deaths_under_write_load_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    tally = await Campaign(tmp_path, seed=20_261_116).run(KILLS)
    assert tally.kills == KILLS
    # It was a campaign and no stroll: there was something to lose, in every life, and somebody watched.
    assert tally.acknowledged > 10 * KILLS
    assert tally.in_doubt > 0
    assert tally.resumed > 0
    assert tally.events > 0
