"""Places for inspections: who may begin, who waits, and who is called."""

import asyncio
import contextlib

import pytest

from ingot.api.meta import Key
from ingot.provisioner.ironic.cache import NodeCache
from ingot.provisioner.ironic.inspections import Inspections
from ingot.provisioner.ironic.model import Node


class Ward:
    """A cache with a node for each host, and those who were called."""

    def __init__(self, places: int) -> None:
        self.cache = NodeCache()
        self.called: list[str] = []
        self.line = Inspections(self.cache, lambda host: self.called.append(host.name), places)

    def is_(self, name: str, state: str) -> None:
        self.cache.learned(Node(uuid=name, name=f"lab~{name}", provision_state=state), self.cache.moment())
        self.line.moved_on()

    def asks(self, name: str) -> bool:
        return self.line.admits(Key("lab", name))

    def begins(self, name: str) -> None:
        assert self.asks(name)
        with self.line.beginning(Key("lab", name)):
            pass
        self.is_(name, "inspecting")


@pytest.mark.looptime
async def test_who_finds_no_place_is_called_in_turn_when_one_is_free() -> None:
    ward = Ward(2)
    ward.begins("a")
    ward.begins("b")
    assert [ward.asks(name) for name in "cde"] == [False, False, False]
    ward.is_("a", "inspect wait")
    assert ward.called == []
    ward.is_("a", "manageable")
    ward.is_("b", "manageable")
    assert ward.called == ["c", "d"]
    assert not ward.line.waits(Key("lab", "c"))
    assert ward.line.waits(Key("lab", "e"))


@pytest.mark.looptime
async def test_a_place_that_is_kept_is_nobody_elses_and_can_be_asked_for_again() -> None:
    ward = Ward(1)
    ward.begins("a")
    assert not ward.asks("b")
    ward.is_("a", "inspect failed")
    assert not ward.asks("c")
    assert [ward.asks("b"), ward.asks("b")] == [True, True]
    ward.begins("b")
    assert ward.called == ["b"]


@pytest.mark.looptime
async def test_who_is_called_and_does_not_come_makes_room_for_the_next() -> None:
    ward = Ward(1)
    ward.begins("a")
    assert not ward.asks("gone")
    assert not ward.asks("next")
    ward.is_("a", "manageable")
    assert ward.called == ["gone"]
    await asyncio.sleep(20)
    ward.line.moved_on()
    assert ward.called == ["gone", "next"]
    ward.begins("next")


@pytest.mark.looptime
async def test_an_order_that_ironic_does_not_take_leaves_no_place_taken() -> None:
    ward = Ward(1)
    assert ward.asks("a")
    with contextlib.suppress(OSError), ward.line.beginning(Key("lab", "a")):
        assert not ward.asks("b")
        raise OSError("Ironic is away")
    ward.line.moved_on()
    assert ward.called == ["b"]
