"""Laws of remediation: whatever happens in between, and however often the process is killed.

Everything that the steps know is written on objects: a process that is killed and started again just takes its next step.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.machine import Annotation, Machine
from ingot.machines.remediation.steps import (
    AT_ONCE,
    GIVEN_UP,
    KEPT_OFF,
    BackUp,
    DeleteMachine,
    DeleteNode,
    Finish,
    GiveUp,
    Mark,
    Restore,
    SetDeadline,
    Sight,
    SwitchOff,
    SwitchOn,
    TakeBack,
    backed_up,
    finished,
    given_up_for,
    is_kept_off_for_nobody,
    marked_off,
    next_step,
)

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
OWNER = {"apiVersion": "v", "kind": "MachineSet", "name": "s", "uid": "u", "controller": True}


class World:
    """A Machine of a set, its host and its Node, and the time."""

    def __init__(self) -> None:
        self.time = NOON
        self.machine: dict[str, str] = {}
        self.is_there = True
        self.host: dict[str, str] = {}
        self.on = True
        self.node: dict[str, str] | None = {"zone": "a"}

    # Those who work here

    def step(self) -> bool:
        """The next step of remediation; whether there was one to take."""
        step = next_step(Sight(self._machine(), self._host(), self._node(), self.time))
        match step:
            case SwitchOff():
                self.host[KEPT_OFF] = AT_ONCE
            case BackUp():
                self._write(backed_up(step))
            case DeleteNode():
                assert not self.on, "a Node was deleted while its host was on"
                assert KEPT_OFF in self.host
                self.node = None
            case SetDeadline():
                self._write(marked_off(self.time + timedelta(minutes=20)))
            case SwitchOn():
                assert self.node is None
                del self.host[KEPT_OFF]
            case Restore(labels):
                assert self.node is not None
                self.node |= labels
            case Finish():
                self._write(finished())
            case GiveUp():
                assert self.node is None
                self.host[GIVEN_UP] = given_up_for(self._machine())
            case TakeBack():
                del self.host[GIVEN_UP]
            case DeleteMachine():
                assert GIVEN_UP in self.host
                assert Annotation.REMEDIATION in self.machine
                assert self.node is None
                self.is_there = False
            case _:
                return False
        return True

    def let_go(self) -> bool:
        if not is_kept_off_for_nobody(self._host(), self._machine() if self.is_there else None):
            return False
        del self.host[KEPT_OFF]
        return True

    def switch(self) -> bool:
        """What the controller of hosts does."""
        before, self.on = self.on, KEPT_OFF not in self.host
        return before != self.on

    def register(self) -> bool:
        """What a kubelet does."""
        if not self.on or self.node is not None:
            return False
        self.node = {"fresh": "yes"}
        return True

    # What is written

    def _write(self, patch: dict[str, Any]) -> None:
        for name, value in patch["metadata"]["annotations"].items():
            if value is None:
                self.machine.pop(name, None)
            else:
                self.machine[name] = value

    def _machine(self) -> Machine:
        metadata = {"name": "m", "namespace": "n", "annotations": self.machine, "ownerReferences": [OWNER]}
        return _made(Machine, {"metadata": metadata})

    def _host(self) -> BareMetalHost:
        return _made(
            BareMetalHost,
            {
                "metadata": {"name": "h", "namespace": "n", "annotations": self.host},
                "spec": {"online": True},
                "status": {"poweredOn": self.on, "provisioning": {"state": "provisioned"}},
            },
        )

    def _node(self) -> Node | None:
        return None if self.node is None else _made(Node, {"metadata": {"name": "x", "labels": self.node}})


def _made(type_: type[Any], body: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=type_)


ACTS = [
    "ask",
    "withdraw",
    "step",
    "step",
    "step",
    "let go",
    "switch",
    "register",
    "crash",
    "minutes",
    "hours",
]


@given(st.lists(st.sampled_from(ACTS), max_size=60))
def test_whatever_happens_the_node_goes_only_with_the_power_and_comes_back_with_its_labels(
    acts: list[str],
) -> None:
    world = World()
    for act in acts:
        match act:
            case "ask":
                world.machine[Annotation.REMEDIATION] = ""
            case "withdraw":
                world.machine.pop(Annotation.REMEDIATION, None)
            case "step" if world.is_there:
                world.step()
            case "let go":
                world.let_go()
            case "switch":
                world.switch()
            case "register":
                world.register()
            case "crash":
                # The machine goes off by itself, and the controller of hosts switches it on again when it sees that.
                world.on = False
            case "minutes":
                world.time += timedelta(minutes=7)
            case "hours":
                world.time += timedelta(hours=2)
    # From here on everybody does what he can, and nobody does anything else.
    for _ in range(100):
        done = [world.let_go(), world.switch(), world.register(), world.is_there and world.step()]
        if not any(done):
            break
    assert world.on
    assert KEPT_OFF not in world.host
    assert world.node is not None
    assert (GIVEN_UP in world.host) != world.is_there, "a host is given up if, and only if, its Machine was"
    if world.is_there:
        assert world.node["zone"] == "a"
        assert not [name for name in world.machine if name in [*Mark, Annotation.REMEDIATION]]
