"""A deployment that was cut off: what its agent's commands mean, and what is done with the node."""

from __future__ import annotations

from typing import Any

import pytest

from ingot_ironic import unbroken_deploy
from ingot_ironic.unbroken_deploy import Next, decide, may_go_on

WRITE = {"interface": "deploy", "step": "write_image", "priority": 80, "args": {}}
PREPARE = {"interface": "deploy", "step": "prepare_instance_boot", "priority": 60}
STEPS = {"command_name": "get_deploy_steps", "command_status": "SUCCEEDED"}
UUIDS = {"command_name": "get_partition_uuids", "command_status": "SUCCEEDED"}
Command = dict[str, Any]


def given(status: str, step: dict[str, Any] = WRITE) -> Command:
    return {"command_name": "execute_deploy_step", "command_status": status, "command_params": {"step": step}}


def loader(status: str) -> Command:
    return {"command_name": "install_bootloader", "command_status": status}


@pytest.mark.parametrize(
    ("step", "commands", "wanted"),
    [
        (WRITE, [STEPS], Next.AGAIN),
        (WRITE, [STEPS, given("RUNNING")], Next.LOOK),
        (WRITE, [STEPS, given("SUCCEEDED")], Next.LOOK),
        (WRITE, [STEPS, given("FAILED")], Next.LOOK),
        (WRITE, [STEPS, given("SUCCEEDED"), UUIDS], Next.FAIL),
        (WRITE, [STEPS, given("SUCCEEDED", {"interface": "deploy", "step": "erase"})], Next.AGAIN),
        (WRITE, [STEPS, given("RUNNING", {"interface": "deploy", "step": "erase"})], Next.FAIL),
        (WRITE, [STEPS, {"command_name": "execute_deploy_step", "command_status": "RUNNING"}], Next.LOOK),
        (WRITE, [], Next.FAIL),
        (WRITE, [given("RUNNING")], Next.FAIL),
        (PREPARE, [STEPS, given("SUCCEEDED")], Next.AGAIN),
        (PREPARE, [STEPS, given("SUCCEEDED"), UUIDS, loader("SUCCEEDED")], Next.AGAIN),
        (PREPARE, [STEPS, given("SUCCEEDED"), UUIDS, loader("RUNNING")], Next.FAIL),
        (PREPARE, [STEPS, given("FAILED")], Next.FAIL),
        (PREPARE, [STEPS], Next.FAIL),
        (PREPARE, [], Next.FAIL),
    ],
)
def test_what_the_commands_of_the_agent_mean(
    step: dict[str, Any], commands: list[Command], wanted: Next
) -> None:
    assert decide(step, commands) is wanted


@pytest.mark.parametrize(
    ("step", "worth_asking"),
    [
        ({}, False),
        (WRITE, True),
        (PREPARE, True),
        ({"interface": "deploy", "step": "install_coreos"}, True),
        ({"interface": "deploy", "step": "deploy"}, False),
        ({"interface": "deploy", "step": "tear_down_agent"}, False),
        ({"interface": "deploy", "step": "boot_instance"}, False),
        ({"interface": "raid", "step": "apply_configuration"}, False),
    ],
)
def test_only_where_the_agent_can_know_it_is_asked(step: dict[str, Any], worth_asking: bool) -> None:
    assert may_go_on(step) is worth_asking


class Node:
    def __init__(self, uuid: str, step: dict[str, Any], state: str = "deploying") -> None:
        self.uuid, self.deploy_step, self.provision_state = uuid, step, state
        self.info: dict[str, Any] = {}
        self.saved: dict[str, Any] = {}

    def set_driver_internal_info(self, key: str, value: Any) -> None:
        self.info[key] = value

    def save(self) -> None:
        self.saved = dict(self.info)


class Task:
    def __init__(self, world: World, node: Node) -> None:
        self.world, self.node, self.context = world, node, "admin"
        self.driver = self
        self.deploy = self

    def process_event(self, event: str) -> None:
        self.world.may_raise(event)
        self.world.done.append((self.node.uuid, event))
        self.node.provision_state = {"wait": "wait call-back", "fail": "deploy failed"}[event]

    def process_next_step(self, task: Task, kind: str) -> None:
        self.world.may_raise("next")
        self.world.done.append((task.node.uuid, f"next {kind} step"))

    def release_resources(self) -> None:
        self.world.locked.discard(self.node.uuid)


class Busy(Exception):
    """Another conductor has the node."""


class World:
    """Ironic as the patch sees it: a conductor with nodes, agents that answer or do not, and a worker that runs at once."""

    deploying, transition = "deploying", "transition"

    def __init__(self, nodes: list[Node], agents: dict[str, Any]) -> None:
        world = self
        self.nodes, self.agents = {node.uuid: node for node in nodes}, agents
        self.locked: set[str] = set()
        self.done: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.workers = True
        self.trouble: dict[str, Exception] = {}

        class Manager:
            host = "127.0.0.1"

            def iter_nodes(self, *, filters: dict[str, Any]) -> Any:
                assert filters == {"reserved": False, "provision_state": "deploying"}
                return [(uuid, "redfish", "") for uuid in world.unlocked("deploying")]

            def _spawn_worker(self, function: Any, *arguments: Any) -> None:
                if not world.workers:
                    raise RuntimeError("no free worker")
                function(*arguments)

            def _correct_stuck_states(self) -> None:
                world.done += [(uuid, "left to Ironic") for uuid in world.unlocked("deploying")]

        self.manager_class = Manager

    def may_raise(self, what: str) -> None:
        if what in self.trouble:
            raise self.trouble[what]

    def unlocked(self, state: str) -> list[str]:
        return [u for u, n in self.nodes.items() if n.provision_state == state and u not in self.locked]

    def admin(self) -> str:
        return "admin"

    def acquire(self, context: str, uuid: str, *, purpose: str) -> Task:
        if self.agents.get(uuid) is Busy:
            raise Busy
        self.locked.add(uuid)
        return Task(self, self.nodes[uuid])

    def client(self, task: Task) -> Any:
        world = self

        class Client:
            def get_commands_status(self, node: Node, *, retry_connection: bool) -> Any:
                assert not retry_connection
                answer = world.agents[node.uuid]
                if isinstance(answer, Exception):
                    raise answer
                return answer

        return Client()

    def continue_deploy(self, task: Task) -> None:
        assert task.node.uuid in self.locked
        self.may_raise("continue")
        self.done.append(
            (task.node.uuid, f"continues, skipping: {task.node.saved['skip_current_deploy_step']}")
        )

    def record(self, node: Node, *, event: str, error: bool, event_type: str) -> None:
        assert error
        self.said.append(event)


def restarted(world: World) -> list[tuple[str, str]]:
    unbroken_deploy.hook(world)
    world.manager_class()._correct_stuck_states()
    assert not world.locked
    return world.done


def test_a_step_that_was_never_given_is_done_under_the_lock_and_not_skipped() -> None:
    assert restarted(World([Node("a", WRITE)], {"a": [STEPS]})) == [("a", "continues, skipping: False")]


def test_an_image_that_is_written_is_not_written_again() -> None:
    world = World([Node("a", PREPARE)], {"a": [STEPS, given("SUCCEEDED"), UUIDS]})
    assert restarted(world) == [("a", "continues, skipping: False")]


def test_a_step_that_the_agent_is_at_is_waited_for() -> None:
    world = World([Node("a", WRITE)], {"a": [STEPS, given("RUNNING")]})
    assert restarted(world) == [("a", "wait"), ("a", "next deploy step")]


def test_what_cannot_be_known_fails_in_the_words_of_ironic() -> None:
    world = World(
        [Node("a", WRITE), Node("b", WRITE)], {"a": ConnectionError("https://a?agent_token=x"), "b": []}
    )
    assert restarted(world) == [("a", "fail"), ("b", "fail")]
    assert set(world.said) == {
        "The deploying state can't be resumed by conductor 127.0.0.1. Moving to fail state."
    }


def test_other_steps_and_nodes_that_cannot_be_locked_are_left_to_ironic() -> None:
    boot = {"interface": "deploy", "step": "boot_instance"}
    world = World([Node("a", boot), Node("b", {}), Node("c", WRITE)], {"c": Busy})
    assert restarted(world) == [(uuid, "left to Ironic") for uuid in "abc"]


def test_without_a_free_worker_the_node_fails_and_is_not_kept_locked() -> None:
    world = World([Node("a", WRITE)], {"a": [STEPS]})
    world.workers = False
    assert restarted(world) == [("a", "fail")]


@pytest.mark.parametrize(
    ("commands", "at"), [([STEPS], "continue"), ([STEPS, given("RUNNING")], "wait")], ids=["again", "look"]
)
def test_a_node_that_could_not_be_taken_on_does_not_stay_deploying(commands: list[Command], at: str) -> None:
    world = World([Node("a", WRITE)], {"a": commands})
    world.trouble[at] = RuntimeError("the database is gone")
    assert restarted(world) == [("a", "fail")]


def test_a_node_that_waits_for_its_agent_does_not_fail_because_a_first_look_did() -> None:
    world = World([Node("a", WRITE)], {"a": [STEPS, given("RUNNING")]})
    world.trouble["next"] = RuntimeError("the agent hung up")
    assert restarted(world) == [("a", "wait")]


def test_a_node_that_cannot_even_fail_does_not_keep_ironic_from_starting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World([Node("a", WRITE), Node("b", WRITE)], {"a": [], "b": []})
    world.workers = False
    world.trouble["fail"] = RuntimeError("agent_token=x")
    assert restarted(world) == []
    assert "Node b cannot be made to fail either (RuntimeError)" in caplog.text
    assert "agent_token" not in caplog.text
