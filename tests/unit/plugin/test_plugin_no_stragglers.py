"""However many nodes hang when Ironic starts, all of them are moved on."""

from __future__ import annotations

from typing import Any

from ingot_ironic import no_stragglers

AT_A_TIME = 32


class Manager:
    """A conductor with nodes that hang; some of which cannot be moved."""

    def __init__(self, hanging: dict[str, str], stubborn: tuple[str, ...] = ()) -> None:
        self.hanging, self.stubborn = hanging, stubborn
        self.rounds = 0

    def iter_nodes(self, *, filters: dict[str, Any]) -> list[tuple[str, str, str]]:
        assert filters["reserved"] is False
        return [
            (u, "redfish", "") for u, state in self.hanging.items() if state == filters["provision_state"]
        ]

    def _correct_stuck_states(self) -> None:
        self.rounds += 1
        for state in ("verifying", "inspecting"):
            found = [u for u, at in self.hanging.items() if at == state and u not in self.stubborn]
            for uuid in found[:AT_A_TIME]:
                del self.hanging[uuid]


def started(manager: Manager) -> Manager:
    class Hooked(Manager):
        pass

    no_stragglers.hook(Hooked, ("verifying", "inspecting"))
    manager.__class__ = Hooked
    manager._correct_stuck_states()
    return manager


def test_all_are_moved_on() -> None:
    manager = Manager({str(number): "verifying" for number in range(100)} | {"i": "inspecting"})
    assert started(manager).hanging == {}
    assert manager.rounds == 4


def test_nothing_is_done_twice_where_nothing_hangs() -> None:
    assert started(Manager({})).rounds == 1


def test_one_that_cannot_be_moved_is_not_tried_for_ever() -> None:
    manager = started(Manager({"a": "verifying", "b": "inspecting"}, stubborn=("b",)))
    assert manager.hanging == {"b": "inspecting"}
    assert manager.rounds == 2
