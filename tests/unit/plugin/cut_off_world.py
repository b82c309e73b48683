"""Ironic as `cut_off` sees it: a conductor with nodes, agents that answer or do not, and a worker that runs at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Command = dict[str, Any]
Step = dict[str, Any]

SINCE = datetime(2026, 11, 17, 4, 42, 35, 123456, tzinfo=UTC)


class Node:
    """A node that is at a step has its number, too."""

    def __init__(
        self, uuid: str, state: str, *, deploy_step: Step | None = None, clean_step: Step | None = None
    ) -> None:
        self.uuid, self.provision_state, self.target_provision_state = uuid, state, "its target"
        self.deploy_step, self.clean_step = deploy_step or {}, clean_step or {}
        self.raid_interface = "redfish"
        self.provision_updated_at = SINCE
        self.last_error = ""
        steps = {"deploy_step_index": self.deploy_step, "clean_step_index": self.clean_step}
        self.saved: dict[str, Any] = {name: 0 for name, step in steps.items() if step}
        self.driver_internal_info = self.saved

    def del_driver_internal_info(self, key: str) -> None:
        self.driver_internal_info = {k: v for k, v in self.driver_internal_info.items() if k != key}

    def set_driver_internal_info(self, key: str, value: Any) -> None:
        self.driver_internal_info = {**self.driver_internal_info, key: value}

    def save(self) -> None:
        self.saved = self.driver_internal_info


class Task:
    def __init__(self, world: World, node: Node) -> None:
        self.world, self.node, self.context = world, node, "admin"
        self.driver = self
        self.deploy = self

    def process_event(self, event: str, target_state: str | None = None) -> None:
        self.world.may_raise(event)
        assert target_state == ("its target" if event == "wait" else None)
        self.world.done.append((self.node.uuid, event))
        self.node.provision_state = f"after {event}"

    def process_next_step(self, task: Task, kind: str) -> None:
        self.world.may_raise("next")
        self.world.done.append((task.node.uuid, f"next {kind} step"))

    def release_resources(self) -> None:
        self.world.may_raise("release")
        self.world.locked.discard(self.node.uuid)


class Busy(Exception):
    """Another conductor has the node."""


class World:
    transition = "transition"

    def __init__(self, nodes: list[Node], agents: dict[str, Any] | None = None) -> None:
        world = self
        self.nodes, self.agents = {node.uuid: node for node in nodes}, agents or {}
        self.locked: set[str] = set()
        self.done: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.workers = True
        self.trouble: dict[str, Exception] = {}

        class Manager:
            host = "127.0.0.1"

            def iter_nodes(self, *, filters: dict[str, Any]) -> Any:
                assert filters["reserved"] is False
                return [(uuid, "redfish", "") for uuid in world.unlocked(filters["provision_state"])]

            def _spawn_worker(self, function: Any, *arguments: Any) -> None:
                if not world.workers:
                    raise RuntimeError("no free worker")
                function(*arguments)

            def _correct_stuck_states(self) -> None:
                for state in ("deploying", "cleaning"):
                    world.done += [(uuid, "left to Ironic") for uuid in world.unlocked(state)]

        self.manager_class = Manager

    def may_raise(self, what: str) -> None:
        if what in self.trouble:
            raise self.trouble[what]

    def unlocked(self, state: str) -> list[str]:
        return [u for u, n in self.nodes.items() if n.provision_state == state and u not in self.locked]

    def admin(self) -> str:
        return "admin"

    def acquire(self, context: str, uuid: str, *, purpose: str) -> Task:
        assert purpose
        if self.agents.get(uuid) is Busy:
            raise Busy
        self.locked.add(uuid)
        return Task(self, self.nodes[uuid])

    def commands(self, task: Task) -> Any:
        answer = self.agents[task.node.uuid]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def go_on(self, task: Task) -> None:
        assert task.node.uuid in self.locked
        self.may_raise("continue")
        skipped = {name: value for name, value in task.node.saved.items() if name.startswith("skip_")}
        self.done.append((task.node.uuid, f"continues, with {skipped}"))

    def record(self, node: Node, *, event: str, error: bool, event_type: str) -> None:
        assert error
        assert event_type == self.transition
        self.said.append(event)

    def restarted(self) -> list[tuple[str, str]]:
        for node in self.nodes.values():
            node.driver_internal_info = node.saved
        self.manager_class()._correct_stuck_states()
        assert not self.locked
        return self.done
