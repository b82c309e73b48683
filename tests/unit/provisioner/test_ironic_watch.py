"""The loop that keeps the node cache true, on a fake clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest

from ingot.api.meta import Key
from ingot.provisioner import EVERYTHING
from ingot.provisioner.changes import Changes
from ingot.provisioner.ironic.cache import NodeCache
from ingot.provisioner.ironic.errors import Unavailable
from ingot.provisioner.ironic.model import Node
from ingot.provisioner.ironic.push import PushMessage
from ingot.provisioner.ironic.watch import Watch

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]

IDLE = Node(uuid="a", name="ns~a", provision_state="active")
BUSY = Node(uuid="a", name="ns~a", provision_state="deploying")


class Listing:
    """The one call of the client that the watch makes, answered from memory."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = list(nodes)
        self.times: list[float] = []
        self.away = False

    async def pages_of_nodes(self) -> AsyncIterator[list[Node]]:
        self.times.append(asyncio.get_running_loop().time())
        if self.away:
            raise Unavailable("nobody answers")
        yield list(self.nodes)
        yield []


class Running:
    def __init__(self, listing: Listing, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.listing = listing
        self.changes = Changes()
        self.cache = NodeCache()
        self.heard: list[object] = []
        self.watch = Watch(listing, self.cache, self.changes, now)

    async def __aenter__(self) -> Running:
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self.watch.run())]
        await self.watch.listed.wait()
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.changes.close()

    async def _listen(self) -> None:
        async for change in self.changes.listen():
            self.heard.append(change)

    def beat(self, first: int = 1) -> None:
        self.watch.take(PushMessage("s", first))


async def test_the_first_list_makes_everything_be_looked_at():
    async with Running(Listing(IDLE)) as running:
        await asyncio.sleep(1)
        assert running.heard[0] is EVERYTHING
        assert running.cache.by_name("ns~a") == IDLE


async def test_an_idle_world_is_listed_about_once_a_minute():
    async with Running(Listing(IDLE)) as running:
        await asyncio.sleep(600)
        assert 9 <= len(running.listing.times) <= 12


async def test_without_push_a_busy_world_is_listed_every_two_seconds():
    async with Running(Listing(BUSY)) as running:
        await asyncio.sleep(20)
        assert 9 <= len(running.listing.times) <= 12
        running.listing.nodes = [IDLE]
        await asyncio.sleep(5)
        assert Key("ns", "a") in running.heard
        before = len(running.listing.times)
        await asyncio.sleep(30)
        assert len(running.listing.times) <= before + 1


async def test_with_push_a_busy_world_is_not_listed_more_often():
    async with Running(Listing(BUSY)) as running:
        running.beat()
        await asyncio.sleep(1)
        before = len(running.listing.times)
        for _ in range(5):
            await asyncio.sleep(10)
            running.beat()
        assert len(running.listing.times) <= before + 1


async def test_push_that_falls_silent_is_noticed_and_listed():
    async with Running(Listing(BUSY)) as running:
        running.beat()
        await asyncio.sleep(25)
        quiet = len(running.listing.times)
        await asyncio.sleep(15)
        assert not running.watch.push_is_heard
        assert len(running.listing.times) >= quiet + 3


async def test_an_ironic_that_comes_back_is_listed_within_seconds_and_everything_is_looked_at():
    async with Running(Listing(IDLE)) as running:
        running.listing.away = True
        running.watch.want_list(missed=False)
        await asyncio.sleep(30)
        assert running.cache.is_doubted("a")
        running.heard.clear()
        running.listing.away = False
        await asyncio.sleep(3)
        assert running.heard == [EVERYTHING]
        assert not running.cache.is_doubted("a")


async def test_a_node_that_hangs_is_announced_once_when_its_deadline_passes():
    started = datetime(2026, 1, 1, tzinfo=UTC)
    hung = Node(uuid="a", name="ns~a", provision_state="deploying", provision_updated_at=started)
    async with Running(
        Listing(hung), lambda: started + timedelta(seconds=asyncio.get_running_loop().time())
    ) as running:
        await asyncio.sleep(3500)
        assert Key("ns", "a") not in running.heard
        await asyncio.sleep(300)
        assert running.heard.count(Key("ns", "a")) == 1


async def test_an_appointment_is_kept_and_several_are_one():
    async with Running(Listing()) as running:
        running.heard.clear()
        for _ in range(3):
            running.changes.later(Key("ns", "a"), 5)
        await asyncio.sleep(4)
        assert Key("ns", "a") not in running.heard
        await asyncio.sleep(2)
        assert running.heard.count(Key("ns", "a")) == 1


async def test_push_that_is_not_heard_is_noticed_after_a_while_and_over_when_it_is():
    async with Running(Listing(IDLE)) as running:
        await asyncio.sleep(20)
        assert running.watch.notice == ""
        await asyncio.sleep(20)
        assert "does not push" in running.watch.notice
        running.beat()
        assert running.watch.notice == ""


async def test_a_patch_that_did_not_take_hold_is_named_with_what_comes_of_it():
    async with Running(Listing(BUSY)) as running:
        await asyncio.sleep(40)
        running.watch.take(PushMessage("s", 1, patches={"save_hook": True, "cache_key": False}))
        assert "cache_key did not take hold." in running.watch.notice
        assert running.watch.push_is_heard
        running.watch.take(PushMessage("s", 1, patches={"save_hook": False}))
        assert "save_hook did not take hold, and its nodes are listed every 2 s" in running.watch.notice
        before = len(running.listing.times)
        await asyncio.sleep(11)
        assert len(running.listing.times) >= before + 4


async def test_a_missing_hook_is_no_reason_to_list_with_every_message():
    async with Running(Listing(IDLE)) as running:
        running.watch.take(PushMessage("s", 1, patches={"save_hook": False}))
        await asyncio.sleep(1)
        before = len(running.listing.times)
        running.heard.clear()
        for _ in range(20):
            running.watch.take(PushMessage("s", 1, patches={"save_hook": False}))
            await asyncio.sleep(1)
        assert len(running.listing.times) == before
        assert EVERYTHING not in running.heard
        # From here on push tells all again, and what it did not tell meanwhile is read.
        running.watch.take(PushMessage("s", 1, patches={"save_hook": True}))
        await asyncio.sleep(1)
        assert len(running.listing.times) == before + 1
        assert EVERYTHING in running.heard


async def test_hosts_that_nothing_happens_to_cost_no_requests_of_their_own():
    """A thousand of them, with push: in ten minutes about ten lists, whoever asks for their vitals and their registration."""
    idle = [Node(uuid=f"u{n}", name=f"ns~h{n}", provision_state="active") for n in range(1000)]
    async with Running(Listing(*idle)) as running:
        running.beat()
        await asyncio.sleep(1)
        before = len(running.listing.times)
        running.heard.clear()
        for _ in range(60):
            await asyncio.sleep(10)
            running.beat()
        assert len(running.listing.times) - before <= 12
        assert running.heard == []
