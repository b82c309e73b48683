"""Races of two actuators for one Machine, or one claim, step by step. Each was lost by some way of claiming that looked safe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from claiming_people import People
from claiming_world import World

from leaping_worlds import api_in_a_thread


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with api_in_a_thread(tmp_path_factory.mktemp("api")) as found:
        yield found


class Story:
    """Two actuators, whose writes are delivered one by one."""

    def __init__(self, world: World, claimant: str) -> None:
        self.world, self.people, self.claimant = world, People(world), claimant
        self.one, self.other = world.actuators

    async def begins(self) -> None:
        await self.people.settle_in(["h1", "h2"])
        await self.world.settle()

    async def appears(self, *, rack: str) -> None:
        """Whoever wants a host of this rack, of which there is one in each; any with ""."""
        if self.claimant.startswith("m"):
            await self.people.create_machine(self.claimant, rack=rack, letter="a")
        else:
            await self.people.create_claim(self.claimant, rack=rack, letter="a", words=False)
        await self.world.settle()

    async def wants(self, rack: str) -> None:
        await self.people.want_rack(self.claimant, rack)

    async def writes_of(self, word: str) -> None:
        """Deliver what is written to this object until nothing is, or until something else has to come first."""
        while (number := self._letter(word)) is not None:
            await self.world.deliver(number, "delivered")
            await self.world.settle()

    async def the_next_write_of(self, word: str) -> None:
        number = self._letter(word)
        assert number is not None, [letter.what for letter in self.world.post]
        await self.world.deliver(number, "delivered")
        await self.world.settle()

    async def goes_on_to(self, word: str) -> None:
        """Deliver whatever comes until something is to be written to this object."""
        for _ in range(10):
            if self._letter(word) is not None:
                return
            await self.world.deliver(0, "delivered")
            await self.world.settle()
        raise AssertionError(f"{word} is never written")

    async def ends(self) -> None:
        for _ in range(50):
            if not self.world.post:
                return
            await self.world.deliver(0, "delivered")
            await self.world.settle()

    def _letter(self, word: str) -> int | None:
        return next((n for n, letter in enumerate(self.world.post) if word in letter.what), None)


@pytest.fixture(params=["m1", "c1"], ids=["Machine", "HostClaim"])
def story(kubeconfig: Path, request: pytest.FixtureRequest) -> Iterator[Story]:
    world = World(kubeconfig, actuators=2)
    try:
        yield Story(world, request.param)
        assert not (broken := world.chronicle.broken()), "\n".join(broken)
        assert not world.complaints.heard, "\n".join(world.complaints.heard)
    finally:
        world.close()


def test_an_intention_is_not_given_up_because_of_what_a_cache_remembers(story: Story) -> None:
    """One is about to take the host; another believes that it is still paused, and turns to the next."""

    async def told() -> None:
        await story.begins()
        await story.people.befall("h1", "paused")
        await story.world.settle()
        for kind in ("BareMetalHost", "Machine", "HostClaim"):
            story.other.wire.hold_back(kind)
        await story.people.cure("h1")
        await story.world.settle()
        story.one.wire.slow = True
        await story.appears(rack="a")
        await story.goes_on_to("BareMetalHost h1")
        await story.wants("b")
        for kind in ("Machine", "HostClaim"):
            story.other.wire.let_through(kind, None)
        await story.world.settle()
        await story.ends()

    story.world.run(told())


def test_two_that_know_different_hosts_take_one_of_them(story: Story) -> None:
    """One knows only of the first host that it is free, another only of the second."""

    async def told() -> None:
        await story.begins()
        await story.people.befall("h1", "paused")
        await story.world.settle()
        story.other.wire.hold_back("BareMetalHost")
        await story.people.cure("h1")
        await story.people.befall("h2", "paused")
        await story.world.settle()
        story.one.wire.hold_back("BareMetalHost")
        await story.people.cure("h2")
        story.one.wire.slow = story.other.wire.slow = True
        await story.appears(rack="")
        await story.ends()

    story.world.run(told())


def test_a_host_that_is_free_again_is_not_taken_for_who_turns_to_another(story: Story) -> None:
    """One turns away from a host that was paused. Before that is written, the host is free again, and another takes it up."""

    async def told() -> None:
        await story.begins()
        for kind in ("Machine", "HostClaim"):
            story.other.wire.hold_back(kind)
        story.one.wire.slow = True
        await story.appears(rack="a")
        await story.goes_on_to("BareMetalHost h1")
        await story.people.befall("h1", "paused")
        await story.wants("b")
        await story.the_next_write_of("BareMetalHost h1")
        await story.people.cure("h1")
        story.other.wire.slow = True
        for kind in ("Machine", "HostClaim"):
            story.other.wire.let_through(kind, None)
        await story.world.settle()
        await story.writes_of("BareMetalHost h1")
        await story.ends()

    story.world.run(told())


def test_who_is_gone_takes_nothing_and_neither_does_its_successor_twice(story: Story) -> None:
    """One is about to take a host for somebody who is deleted, and made anew under the same name, meanwhile."""

    async def told() -> None:
        await story.begins()
        story.one.wire.slow = True
        story.other.wire.hold_back("BareMetalHost")
        for kind in ("Machine", "HostClaim"):
            story.other.wire.hold_back(kind)
        await story.appears(rack="a")
        await story.goes_on_to("BareMetalHost h1")
        for kind in ("Machine", "HostClaim"):
            story.one.wire.hold_back(kind)
        await story.people.delete(story.claimant)
        for kind in ("Machine", "HostClaim"):
            story.other.wire.let_through(kind, None)
        await story.world.settle()
        await story.appears(rack="b")
        await story.ends()

    story.world.run(told())
