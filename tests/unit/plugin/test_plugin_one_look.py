"""A look at a host's power reads its system once, and every other reader reads for himself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import one_look


class Ironic:
    """One that reads the system of a node several times in a look; each reading has a number."""

    def __init__(self, *, acts: bool = False, fails: bool = False) -> None:
        self.readings = 0

        def get_system(node: Any) -> str:
            self.readings += 1
            return f"{node.uuid} {self.readings}"

        def do_sync_power_state(task: Any, count: int) -> list[str]:
            read = [self.redfish.get_system(task.node) for _ in range(count)]
            if fails:
                raise TimeoutError
            return read

        self.redfish = SimpleNamespace(get_system=get_system)
        self.manager = SimpleNamespace(do_sync_power_state=do_sync_power_state)
        one_look.hook(self.manager, self.redfish, acts=lambda: acts)

    def look(self, uuid: str, readers: int) -> list[str]:
        task = SimpleNamespace(node=SimpleNamespace(uuid=uuid))
        read: list[str] = self.manager.do_sync_power_state(task, readers)
        return read


def test_all_who_read_in_one_look_see_the_same_and_the_next_look_is_new() -> None:
    ironic = Ironic()
    assert ironic.look("a", 3) == ["a 1"] * 3
    assert ironic.look("a", 2) == ["a 2"] * 2
    assert ironic.look("b", 1) == ["b 3"]


def test_outside_of_a_look_everybody_reads_for_himself() -> None:
    ironic = Ironic(fails=True)
    with pytest.raises(TimeoutError):
        ironic.look("a", 2)
    node = SimpleNamespace(uuid="a")
    assert [ironic.redfish.get_system(node) for _ in range(2)] == ["a 2", "a 3"]


def test_a_look_that_may_switch_the_power_sees_what_comes_of_it() -> None:
    assert Ironic(acts=True).look("a", 3) == ["a 1", "a 2", "a 3"]


def test_an_ironic_that_looks_in_another_way_is_left_alone() -> None:
    def get_system(address: str) -> None:
        raise NotImplementedError

    def do_sync_power_state(task: object, count: int) -> None:
        raise NotImplementedError

    manager = SimpleNamespace(do_sync_power_state=do_sync_power_state)
    redfish = SimpleNamespace(get_system=get_system)
    with pytest.raises(AttributeError, match="get_system takes other things than node"):
        one_look.hook(manager, redfish, acts=lambda: False)
    assert (manager.do_sync_power_state, redfish.get_system) == (do_sync_power_state, get_system)
