"""kill -9 of the operator, of Ironic and of both, with a host in each moment of its life; and an Ironic that forgot all."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ironic_kills import KILLS, Campaign, lose_database
from ironic_room import Room
from stories import all_told

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def campaign(room: Room, request: pytest.FixtureRequest) -> AsyncIterator[Campaign]:
    """Alone in the room: whoever tells a story here would not like what is done to Ironic."""
    await all_told(room, request.session.items)
    room.kill("ironic")
    room.start_ironic(patient=True)
    await room.ironic_ready()
    yield Campaign(room)


async def test_whoever_is_killed_in_whichever_moment_every_host_arrives_and_no_server_is_deployed_or_wiped_twice(
    campaign: Campaign,
):
    await campaign.park()
    for who in KILLS:
        await campaign.kill(*who)
    await campaign.release()
    assert not campaign.missed_by("ironic"), campaign.hit
    await campaign.arrive()
    assert not await campaign.complaints()


async def test_an_ironic_that_lost_its_database_knows_every_host_again_and_no_server_notices(
    campaign: Campaign,
):
    there = [host for _, host in campaign.parked if campaign.room.hosts.get(host.key) is not None]
    assert len(there) > 5, "this goes on with the hosts of the test before it"
    before = {host.name: await host.seen() for host in there}
    await lose_database(campaign.room, there)
    for host in there:
        seen, earlier = await host.seen(), before[host.name]
        assert (seen.power_actions, seen.boots, seen.deployments, seen.cleanings) == (
            earlier.power_actions,
            earlier.boots,
            earlier.deployments,
            earlier.cleanings,
        )
        assert seen.running == earlier.running
        assert not campaign.room.hosts.get(host.key).status.error_message
