"""Races that were once lost, or nearly: two actuators at the same Machine, step by step."""

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


@pytest.fixture
def world(kubeconfig: Path) -> Iterator[World]:
    made = World(kubeconfig, actuators=2)
    try:
        yield made
        assert not (broken := made.chronicle.broken()), "\n".join(broken)
        assert not made.complaints.heard, "\n".join(made.complaints.heard)
    finally:
        made.close()


def test_an_intention_is_not_given_up_because_of_what_a_cache_remembers(world: World) -> None:
    """One is about to take the host, another believes that it is still paused, and turns to the next."""
    people, (one, other) = People(world), world.actuators

    async def story() -> None:
        await people.settle_in(["h1", "h2"])
        await people.befall("h1", "paused")
        await world.settle()
        other.wire.hold_back("BareMetalHost")
        other.wire.hold_back("Machine")
        await people.cure("h1")
        await world.settle()
        one.wire.slow = True
        await people.create_machine("m1", rack="a", letter="a")
        await world.settle()
        await world.deliver(0, "delivered")
        await world.settle()
        assert "BareMetalHost h1" in world.post[0].what
        await people.edit_machine("m1", rack="b", letter="a")
        other.wire.let_through("Machine", None)
        await world.settle()
        await world.deliver(0, "delivered")
        await world.settle()

    world.run(story())


def test_a_host_that_becomes_free_again_is_not_taken_after_the_machine_turned_to_another(
    world: World,
) -> None:
    """One gives up a host that is paused; before that is written, the host is free again and another takes it up."""
    people, (one, other) = People(world), world.actuators

    async def story() -> None:
        await people.settle_in(["h1", "h2"])
        # One dies between the intention and the host.
        one.wire.doom, other.wire.slow = 2, True
        await people.create_machine("m1", rack="a", letter="a")
        await world.settle()
        world.post.clear()
        await world.kill(1)
        await people.befall("h1", "paused")
        world.actuators[0].wire.slow = world.actuators[1].wire.slow = True
        # Both want to turn to h2; both writes are on their way.
        await people.edit_machine("m1", rack="b", letter="a")
        await world.settle()
        world.actuators[1].wire.hold_back("BareMetalHost")
        await people.cure("h1")
        await world.settle()
        while world.post:
            await world.deliver(0, "delivered")
            await world.settle()

    world.run(story())
