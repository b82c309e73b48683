"""A deployment that was cut off: what its agent's commands mean, and what is done with the node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cut_off_world import Busy, Command, Node, Step, Task, World

from ingot_ironic import cut_off, unbroken_deploy

WRITE = {"interface": "deploy", "step": "write_image", "priority": 80, "args": {}}
PREPARE = {"interface": "deploy", "step": "prepare_instance_boot", "priority": 60}
STEPS = {"command_name": "get_deploy_steps", "command_status": "SUCCEEDED"}
UUIDS = {"command_name": "get_partition_uuids", "command_status": "SUCCEEDED"}
AGAIN = [("a", "continues, with {'skip_current_deploy_step': False}")]
LOOK = [("a", "wait"), ("a", "next deploy step")]
FAIL = [("a", "fail")]
LEFT = [("a", "left to Ironic")]


def given(status: str, step: Step = WRITE) -> Command:
    return {"command_name": "execute_deploy_step", "command_status": status, "command_params": {"step": step}}


def loader(status: str) -> Command:
    return {"command_name": "install_bootloader", "command_status": status}


def deploying(uuid: str, step: Step) -> Node:
    return Node(uuid, "deploying", deploy_step=step)


def hook(world: World) -> None:
    def finish(task: Task, step_index: None) -> None:
        assert task.node.uuid in world.locked
        world.done.append((task.node.uuid, "is ended"))

    cut_off.hook(world, unbroken_deploy.flow(world, "deploying", go_on=world.go_on, finish=finish))


def restarted(world: World) -> list[tuple[str, str]]:
    hook(world)
    return world.restarted()


@pytest.mark.parametrize(
    ("step", "commands", "wanted"),
    [
        (WRITE, [STEPS], AGAIN),
        (WRITE, [STEPS, given("RUNNING")], LOOK),
        (WRITE, [STEPS, given("SUCCEEDED")], LOOK),
        (WRITE, [STEPS, given("FAILED")], LOOK),
        (WRITE, [STEPS, given("SUCCEEDED"), UUIDS], FAIL),
        (WRITE, [STEPS, given("SUCCEEDED", {"interface": "deploy", "step": "erase"})], AGAIN),
        (WRITE, [STEPS, given("RUNNING", {"interface": "deploy", "step": "erase"})], FAIL),
        (WRITE, [STEPS, {"command_name": "execute_deploy_step", "command_status": "RUNNING"}], LOOK),
        (WRITE, [], FAIL),
        (WRITE, [given("RUNNING")], FAIL),
        (PREPARE, [STEPS, given("SUCCEEDED")], AGAIN),
        (PREPARE, [STEPS, given("SUCCEEDED"), UUIDS, loader("SUCCEEDED")], AGAIN),
        (PREPARE, [STEPS, given("SUCCEEDED"), UUIDS, loader("RUNNING")], FAIL),
        (PREPARE, [STEPS, given("FAILED")], FAIL),
        (PREPARE, [given("SUCCEEDED")], FAIL),
        (PREPARE, [STEPS], FAIL),
        (PREPARE, [], FAIL),
    ],
)
def test_what_the_commands_of_the_agent_mean(
    step: Step, commands: list[Command], wanted: list[tuple[str, str]]
) -> None:
    assert restarted(World([deploying("a", step)], {"a": commands})) == wanted


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ({}, LEFT),
        ({"interface": "deploy", "step": "install_coreos"}, AGAIN),
        ({"interface": "deploy", "step": "deploy"}, LEFT),
        ({"interface": "deploy", "step": "tear_down_agent"}, LEFT),
        ({"interface": "deploy", "step": "boot_instance"}, LEFT),
        ({"interface": "raid", "step": "apply_configuration"}, LEFT),
    ],
)
def test_only_where_the_agent_can_know_it_is_asked(step: Step, wanted: list[tuple[str, str]]) -> None:
    assert restarted(World([deploying("a", step)], {"a": [STEPS]})) == wanted


def test_a_step_without_its_number_is_one_of_an_earlier_deployment() -> None:
    world = World([deploying("a", WRITE)], {"a": [STEPS]})
    world.nodes["a"].saved = {}
    assert restarted(world) == LEFT


def test_a_node_that_cannot_be_unlocked_does_not_keep_ironic_from_starting() -> None:
    world = World([deploying("a", {}), deploying("b", WRITE)], {"b": [STEPS]})
    world.trouble["release"] = RuntimeError("the database is gone")
    hook(world)
    world.manager_class()._correct_stuck_states()
    assert ("b", "continues, with {'skip_current_deploy_step': False}") in world.done


def test_what_cannot_be_known_fails_in_the_words_of_ironic() -> None:
    agents = {"a": ConnectionError("https://a?agent_token=x"), "b": []}
    world = World([deploying("a", WRITE), deploying("b", WRITE)], agents)
    assert restarted(world) == [("a", "fail"), ("b", "fail")]
    assert set(world.said) == {
        "The deploying state can't be resumed by conductor 127.0.0.1. Moving to fail state."
    }


def test_nodes_that_cannot_be_locked_are_left_to_ironic() -> None:
    assert restarted(World([deploying("a", WRITE)], {"a": Busy})) == LEFT


def test_a_node_with_a_step_that_nobody_understands_is_left_to_ironic_and_is_not_kept_locked() -> None:
    world = World([deploying("a", {"who": "knows"}), deploying("b", WRITE)], {"b": [STEPS]})
    assert restarted(world) == [*LEFT, ("b", "continues, with {'skip_current_deploy_step': False}")]


def test_without_a_free_worker_the_node_fails_and_is_not_kept_locked() -> None:
    world = World([deploying("a", WRITE)], {"a": [STEPS]})
    world.workers = False
    assert restarted(world) == FAIL


@pytest.mark.parametrize(
    ("commands", "at"), [([STEPS], "continue"), ([STEPS, given("RUNNING")], "wait")], ids=["again", "look"]
)
def test_a_node_that_could_not_be_taken_on_does_not_stay_deploying(commands: list[Any], at: str) -> None:
    world = World([deploying("a", WRITE)], {"a": commands})
    world.trouble[at] = RuntimeError("the database is gone")
    assert restarted(world) == FAIL


def test_a_node_that_waits_for_its_agent_does_not_fail_because_a_first_look_did() -> None:
    world = World([deploying("a", WRITE)], {"a": [STEPS, given("RUNNING")]})
    world.trouble["next"] = RuntimeError("the agent hung up")
    assert restarted(world) == [("a", "wait")]


def test_a_node_that_cannot_even_fail_does_not_keep_ironic_from_starting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World([deploying("a", WRITE), deploying("b", WRITE)], {"a": [], "b": []})
    world.workers = False
    world.trouble["fail"] = RuntimeError("agent_token=x")
    assert restarted(world) == []
    assert "Node b cannot be made to fail either (RuntimeError)" in caplog.text
    assert "agent_token" not in caplog.text


def forgotten(node: Node) -> World:
    """The world after Ironic has forgotten what belongs to the node's deployment, saved that, and was killed."""

    def wipe_deploy_internal_info(task: Task) -> None:
        task.node.set_driver_internal_info("deploy_steps", None)
        task.node.del_driver_internal_info("deploy_step_index")

    world = World([node])
    module = SimpleNamespace(wipe_deploy_internal_info=wipe_deploy_internal_info)
    unbroken_deploy.note_the_end(module, "deploying")
    module.wipe_deploy_internal_info(Task(world, node))
    node.save()
    return world


def behind_its_steps(at: int) -> Node:
    node = deploying("a", {})
    node.driver_internal_info = {"deploy_steps": [WRITE, PREPARE], "deploy_step_index": at}
    return node


def test_a_deployment_that_was_over_is_ended_and_not_done_again() -> None:
    assert restarted(forgotten(behind_its_steps(1))) == [("a", "is ended")]


def test_one_that_begins_has_steps_left_or_failed_is_not_over() -> None:
    begins, halfway, failed = deploying("a", {}), behind_its_steps(0), behind_its_steps(1)
    failed.last_error = "the machine cannot be switched on"
    for node in (begins, halfway, failed):
        assert restarted(forgotten(node)) == LEFT


def test_what_is_forgotten_of_a_node_that_runs_means_nothing() -> None:
    node = behind_its_steps(1)
    node.provision_state = "active"
    world = forgotten(node)
    node.provision_state = "deploying"
    assert restarted(world) == LEFT


def test_an_ironic_that_forgets_in_another_way_is_left_alone() -> None:
    def wipe_deploy_internal_info() -> None:
        raise NotImplementedError

    module = SimpleNamespace(wipe_deploy_internal_info=wipe_deploy_internal_info)
    with pytest.raises(AttributeError, match="takes other things than task"):
        unbroken_deploy.note_the_end(module, "deploying")
    assert module.wipe_deploy_internal_info is wipe_deploy_internal_info
