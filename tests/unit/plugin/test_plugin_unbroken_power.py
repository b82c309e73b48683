"""Machines that were being switched on or rebooted when Ironic was killed, and that it waits for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cut_off_world import Node

from ingot.trust import Authority
from ingot_ironic import old_ramdisk, unbroken_power


class Ironic:
    """One that starts again, with the nodes that it had locked. It forgets what they were to be when it has prepared itself."""

    on, reboot, waiting = "power on", "rebooting", frozenset({"clean wait", "service wait"})

    def __init__(self, *locked: tuple[str, str, str | None]) -> None:
        world = self
        self.utils = self
        self.locked = list(locked)
        self.states = {uuid: state for uuid, state, _ in locked}
        self.switched: list[str] = []
        self.not_rebooted: set[str] = set()
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
    def acquire(self, context: str, uuid: str, *, purpose: str, patient: bool) -> Iterator[Any]:
        assert purpose
        assert patient, "somebody else may be looking at the machine"
        self.may_raise(uuid)
        yield SimpleNamespace(node=SimpleNamespace(uuid=uuid, provision_state=self.states[uuid]))

    def node_power_action(self, task: Any, new_state: str, timeout: int | None = None) -> None:
        self.switched.append(task.node.uuid if new_state == self.on else f"{task.node.uuid} {new_state}")

    def start(self) -> list[str]:
        unbroken_power.hook(self, lambda node: node.uuid in self.not_rebooted)
        manager = self.manager_class()
        manager.prepare_host()
        manager._correct_stuck_states()
        return self.switched


def test_a_machine_that_is_waited_for_is_switched_on() -> None:
    assert Ironic(("a", "clean wait", "power on"), ("b", "service wait", "power on")).start() == ["a", "b"]


def test_one_that_was_not_rebooted_yet_is_rebooted() -> None:
    ironic = Ironic(("a", "clean wait", "power on"), ("b", "clean wait", "power on"))
    ironic.not_rebooted.add("a")
    assert ironic.start() == ["a rebooting", "b"]


@pytest.mark.parametrize(
    ("state", "new_state", "is_noted"),
    [
        ("clean wait", "rebooting", True),
        ("clean wait", "power off", False),
        ("clean wait", "power on", False),
        ("active", "rebooting", False),
    ],
)
def test_what_ran_before_a_reboot_of_a_machine_that_is_waited_for_is_noted_before_ironic_forgets_it(
    state: str, new_state: str, is_noted: bool, tmp_path: Path
) -> None:
    ironic = Ironic()
    unbroken_power.note_reboots(ironic)
    node = Node("a", state)
    agent = Authority(tmp_path / "ca").issue(tmp_path / "agent", "agent", ["127.0.0.1"])
    node.driver_internal_info = {"agent_url": "https://127.0.0.1:1", "agent_verify_ca": str(agent.cert_file)}
    ironic.utils.node_power_action(SimpleNamespace(node=node), new_state)
    assert ironic.switched == [f"a {new_state}" if new_state != ironic.on else "a"]
    assert (old_ramdisk.NOTE in node.driver_internal_info) is is_noted


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
