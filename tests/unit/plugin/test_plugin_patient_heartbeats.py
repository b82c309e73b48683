"""A heartbeat that comes while the node is locked is heard a little later."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import patient_heartbeats

AT_WORK = frozenset({"deploying", "wait call-back"})


class Locked(Exception):
    pass


class Task:
    """One whose node is locked by somebody else for some tries, and is in another state after that."""

    def __init__(self, state: str, *, locked_for: int = 0, then: str = "") -> None:
        self.node = SimpleNamespace(provision_state=state)
        self.shared = True
        self.tries = 0
        self._locked_for = locked_for
        self._then = then or state

    def upgrade_lock(self, retry: bool) -> None:
        assert retry is False
        if not self.shared:
            return
        self.tries += 1
        if self.tries <= self._locked_for:
            raise Locked
        self.shared = False
        self.node.provision_state = self._then


def hooked(patience: float) -> Any:
    class Mixin:
        def heartbeat(self, task: Task, callback_url: str, agent_version: str = "") -> tuple[object, ...]:
            return task.node.provision_state, task.shared, callback_url, agent_version

    patient_heartbeats.hook(Mixin, AT_WORK, Locked, patience=patience)
    return Mixin()


def test_a_heartbeat_waits_for_the_lock_and_finds_the_node_as_it_is_then() -> None:
    task = Task("deploying", locked_for=2, then="wait call-back")
    heard = hooked(60).heartbeat(task, "https://agent", agent_version="13")
    assert heard == ("wait call-back", False, "https://agent", "13")
    assert task.tries == 3


def test_it_is_handed_on_when_the_lock_never_comes() -> None:
    assert hooked(0).heartbeat(Task("deploying", locked_for=9), "u") == ("deploying", True, "u", "")


def test_a_node_that_no_agent_works_on_is_not_waited_for() -> None:
    task = Task("active")
    assert hooked(60).heartbeat(task, "u") == ("active", True, "u", "")
    assert task.tries == 0


def test_an_ironic_that_takes_heartbeats_in_another_way_is_left_alone() -> None:
    class Mixin:
        def heartbeat(self, node: str) -> None:
            raise NotImplementedError

    original = Mixin.heartbeat
    with pytest.raises(AttributeError, match="takes other things than"):
        patient_heartbeats.hook(Mixin, AT_WORK, Locked)
    assert Mixin.heartbeat is original
