"""Machines that were being switched on when Ironic was killed, and that it waits for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import unbroken_power


class Ironic:
    """One that starts again, with the nodes that it had locked. It forgets what they were to be when it has prepared itself."""

    on, waiting = "power on", frozenset({"clean wait", "service wait"})

    def __init__(self, *locked: tuple[str, str, str | None]) -> None:
        world = self
        self.locked = list(locked)
        self.states = {uuid: state for uuid, state, _ in locked}
        self.switched: list[str] = []
        self.trouble: dict[str, Exception] = {}

        class Manager:
            host = "127.0.0.1"

            def prepare_host(self) -> None:
                world.locked.clear()

            def _correct_stuck_states(self) -> None:
                assert not world.switched

            def _spawn_worker(self, function: Any, *arguments: Any) -> None:
                world.may_raise("worker")
                function(*arguments)

        self.manager_class = Manager

    def may_raise(self, what: str) -> None:
        if what in self.trouble:
            raise self.trouble[what]

    def locked_by(self, host: str) -> list[tuple[str, str, str | None]]:
        assert host == "127.0.0.1"
        self.may_raise("database")
        return list(self.locked)

    def admin(self) -> str:
        return "admin"

    @contextlib.contextmanager
    def acquire(self, context: str, uuid: str, *, purpose: str) -> Iterator[Any]:
        assert purpose
        self.may_raise(uuid)
        yield SimpleNamespace(node=SimpleNamespace(uuid=uuid, provision_state=self.states[uuid]))

    def switch(self, task: Any, wanted: str) -> None:
        assert wanted == self.on
        self.switched.append(task.node.uuid)

    def start(self) -> list[str]:
        unbroken_power.hook(self)
        manager = self.manager_class()
        manager.prepare_host()
        manager._correct_stuck_states()
        return self.switched


def test_a_machine_that_is_waited_for_is_switched_on() -> None:
    assert Ironic(("a", "clean wait", "power on"), ("b", "service wait", "power on")).start() == ["a", "b"]


@pytest.mark.parametrize(
    ("state", "wanted"),
    [("clean wait", "power off"), ("clean wait", None), ("active", "power on"), ("cleaning", "power on")],
)
def test_others_are_left_alone(state: str, wanted: str | None) -> None:
    assert Ironic(("a", state, wanted)).start() == []


def test_a_node_that_went_on_meanwhile_is_left_alone() -> None:
    ironic = Ironic(("a", "clean wait", "power on"))
    ironic.states["a"] = "clean failed"
    assert ironic.start() == []


@pytest.mark.parametrize(("at", "rest"), [("database", []), ("worker", []), ("a", ["b"])])
def test_ironic_starts_whatever_goes_wrong(
    at: str, rest: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    ironic = Ironic(("a", "clean wait", "power on"), ("b", "clean wait", "power on"))
    ironic.trouble[at] = RuntimeError("agent_token=x")
    assert ironic.start() == rest
    assert "RuntimeError" in caplog.text
    assert "agent_token" not in caplog.text
