"""Settings that a machine never takes are given up after a while, and the step that fails of them names them."""

from __future__ import annotations

from typing import Any

import pytest

from ingot_ironic import bounded_settings

STATE = "redfish_bios_state"
WANTED = {"Turbo": "Enabled"}
LIMIT = 600.0


class Node:
    def __init__(self, **info: Any) -> None:
        self.driver_internal_info = info
        self.saved: dict[str, Any] = {}

    def set_driver_internal_info(self, key: str, value: Any) -> None:
        self.driver_internal_info = {**self.driver_internal_info, key: value}

    def save(self) -> None:
        self.saved = self.driver_internal_info


class Task:
    """One look. `meanwhile`: what the node's record says once it is locked."""

    def __init__(self, node: Node, meanwhile: dict[str, Any] | None = None) -> None:
        self.node = node
        self.shared = True
        self._meanwhile = meanwhile

    def upgrade_lock(self, purpose: str) -> None:
        assert purpose
        self.shared = False
        if self._meanwhile is not None:
            self.node.driver_internal_info = self._meanwhile


class Unset(Exception):
    """The step fails."""


class Machine:
    """A machine whose settings are looked after, on a clock of its own."""

    def __init__(self, limit: float = LIMIT) -> None:
        class Bios:
            def _check_node_redfish_bios_apply(self, task: Any) -> None:
                raise NotImplementedError

            def _get_unapplied_bios_attrs(
                self, task: Any, requested_attrs: dict[str, str], bios: dict[str, str]
            ) -> dict[str, str]:
                return {name: value for name, value in requested_attrs.items() if bios.get(name) != value}

            def _set_step_failed(self, task: Any, attrs_not_updated: dict[str, str]) -> None:
                raise NotImplementedError

        self.now = 1_000.0
        bounded_settings.hook(Bios, STATE, limit=lambda: limit, failure=Unset, clock=lambda: self.now)
        self._bios = Bios()
        self.node = Node(**{STATE: {"reboot_requested": True}})
        self.has: dict[str, str] = {}

    def fail(self) -> None:
        self._bios._set_step_failed(Task(self.node), WANTED)

    def look(self, task: Task | None = None) -> dict[str, str]:
        return self._bios._get_unapplied_bios_attrs(task or Task(self.node), WANTED, self.has)


def test_settings_are_waited_for_and_given_up_when_their_time_is_over() -> None:
    machine = Machine()
    assert machine.look() == WANTED
    assert machine.node.saved[STATE] == {"reboot_requested": True, bounded_settings.SINCE: 1_000.0}
    machine.now += LIMIT - 1
    assert machine.look() == WANTED
    machine.now += 1
    assert machine.look() == {}


def test_what_is_noted_is_noted_once_and_with_a_lock() -> None:
    machine = Machine()
    first, second = Task(machine.node), Task(machine.node)
    machine.look(first)
    noted = machine.node.saved
    machine.now += 1
    machine.look(second)
    assert machine.node.saved is noted
    assert (first.shared, second.shared) == (False, True)


def test_settings_that_were_forgotten_while_the_lock_was_waited_for_stay_forgotten() -> None:
    machine = Machine()
    machine.look(Task(machine.node, meanwhile={}))
    assert machine.node.saved == {}


def test_the_step_itself_fails_of_what_is_missing_however_late_it_looks() -> None:
    machine = Machine()
    machine.look()
    machine.now += 2 * LIMIT
    machine.node.driver_internal_info = {}
    assert machine.look() == WANTED


def test_a_step_that_fails_ends_there_and_names_the_settings() -> None:
    with pytest.raises(Unset, match=r"does not take these BIOS settings: \{'Turbo': 'Enabled'\}"):
        Machine().fail()


def test_a_machine_that_takes_its_settings_is_left_alone() -> None:
    machine = Machine()
    machine.has = WANTED
    assert machine.look() == {}
    assert machine.node.saved == {}


def test_who_set_no_limit_waits_on() -> None:
    machine = Machine(limit=0)
    machine.look()
    machine.now += 1_000_000
    assert machine.look() == WANTED


class AsksOthers:
    def _check_node_redfish_bios_apply(self, task: Any) -> None: ...
    def _get_unapplied_bios_attrs(self, task: Any) -> None: ...
    def _set_step_failed(self, task: Any, attrs_not_updated: Any) -> None: ...


class FailsOtherwise:
    def _check_node_redfish_bios_apply(self, task: Any) -> None: ...
    def _get_unapplied_bios_attrs(self, task: Any, requested_attrs: Any, bios: Any) -> None: ...
    def _set_step_failed(self, task: Any) -> None: ...


class WaitsForNothing:
    def _get_unapplied_bios_attrs(self, task: Any, requested_attrs: Any, bios: Any) -> None: ...
    def _set_step_failed(self, task: Any, attrs_not_updated: Any) -> None: ...


@pytest.mark.parametrize("other", [AsksOthers, FailsOtherwise, WaitsForNothing])
def test_an_ironic_that_waits_in_another_way_is_left_alone(other: Any) -> None:
    before = vars(other).copy()
    with pytest.raises(
        AttributeError, match=r"takes other things than|has no _check_node_redfish_bios_apply"
    ):
        bounded_settings.hook(other, STATE, limit=lambda: LIMIT, failure=Unset)
    assert dict(vars(other)) == before
