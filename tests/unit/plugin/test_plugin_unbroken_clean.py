"""A cleaning that was cut off: the agent is asked, and one that was over is ended, so that no machine is wiped twice."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from cut_off_world import Command, Node, Step, Task, World

from ingot_ironic import cut_off, over, unbroken_clean, unbroken_updates

ERASE = {"interface": "deploy", "step": "erase_devices_metadata", "priority": 10}
VOLUMES = {"interface": "raid", "step": "create_configuration", "priority": 0}
STEPS = {"command_name": "get_clean_steps", "command_status": "SUCCEEDED"}
AGAIN = [("a", "continues, with {'skip_current_clean_step': False}")]
LOOK = [("a", "wait"), ("a", "next clean step")]
FAIL = [("a", "fail")]
LEFT = [("a", "left to Ironic")]


def given(status: str, step: Step = ERASE) -> Command:
    return {"command_name": "execute_clean_step", "command_status": status, "command_params": {"step": step}}


class Module:
    """Ironic's own: goes through the steps. Killed when it has forgotten the steps, it leaves what it saved."""

    def __init__(self, world: World) -> None:
        def do_next_clean_step(
            task: Task, step_index: int | None, disable_ramdisk: bool | None = None
        ) -> None:
            task.node.clean_step = {}
            task.node.del_driver_internal_info("clean_step_index")
            task.node.save()
            world.done.append(
                (task.node.uuid, f"goes on at {step_index}, without ramdisk: {disable_ramdisk}")
            )
            world.may_raise("end")
            task.node.provision_state = "available"

        self.do_next_clean_step = do_next_clean_step
        unbroken_clean.note_the_end(self, "cleaning")


class Killed(Exception):
    """In the middle of ending the agent."""


def restarted(world: World) -> list[tuple[str, str]]:
    finish = Module(world).do_next_clean_step
    cut_off.hook(world, unbroken_clean.flow(world, "cleaning", go_on=world.go_on, finish=finish))
    return world.restarted()


def cut_off_at(step_index: int | None, **how: Any) -> World:
    """With a node whose cleaning was cut off while the agent was ended, after this step."""
    world = World([Node("a", "cleaning", clean_step=ERASE)])
    world.nodes["a"].set_driver_internal_info("cleaning_disable_ramdisk", how.pop("noted", False))
    world.trouble["end"] = Killed()
    with pytest.raises(Killed):
        Module(world).do_next_clean_step(Task(world, world.nodes["a"]), step_index, **how)
    world.done.clear()
    world.trouble.clear()
    return world


@pytest.mark.parametrize(
    ("step", "commands", "wanted"),
    [
        (ERASE, [STEPS], AGAIN),
        (ERASE, [STEPS, given("RUNNING")], LOOK),
        (ERASE, [STEPS, given("SUCCEEDED")], LOOK),
        (
            ERASE,
            [STEPS, {"command_name": "execute_clean_step", "command_result": {"clean_step": ERASE}}],
            LOOK,
        ),
        (ERASE, [STEPS, given("SUCCEEDED", {"interface": "deploy", "step": "erase_devices"})], AGAIN),
        (ERASE, [], FAIL),
        (ERASE, ConnectionError("the agent is gone"), FAIL),
        (VOLUMES, [STEPS], LEFT),
        ({}, [STEPS], LEFT),
    ],
)
def test_what_the_commands_of_the_agent_mean(
    step: Step, commands: Any, wanted: list[tuple[str, str]]
) -> None:
    world = World([Node("a", "cleaning", clean_step=step)], {"a": commands})
    assert restarted(world) == wanted
    assert all("The cleaning state" in words for words in world.said)


@pytest.mark.parametrize(
    ("how", "without"),
    [
        ({}, False),
        ({"noted": True}, True),
        ({"disable_ramdisk": True}, True),
        ({"disable_ramdisk": False, "noted": True}, False),
    ],
)
def test_a_cleaning_that_was_over_is_ended_and_not_done_again(how: dict[str, bool], without: bool) -> None:
    assert restarted(cut_off_at(None, **how)) == [("a", f"goes on at None, without ramdisk: {without}")]


def test_volumes_that_the_agent_makes_are_a_step_of_the_agent() -> None:
    world = World([Node("a", "cleaning", clean_step=VOLUMES)], {"a": [STEPS, given("SUCCEEDED", VOLUMES)]})
    world.nodes["a"].raid_interface = "agent"
    assert restarted(world) == LOOK


@pytest.mark.parametrize(
    ("number", "wanted"), [(0, [("a", "continues, with {}")]), (1, LEFT)], ids=["this step", "another"]
)
def test_behind_a_step_of_a_bmc_that_was_noted_to_be_over_it_goes_on(
    number: int, wanted: list[tuple[str, str]]
) -> None:
    world = World([Node("a", "cleaning", clean_step=VOLUMES)])
    world.nodes["a"].saved = {"clean_step_index": 0, unbroken_updates.NOTE: {"step": number, "at": ""}}
    assert restarted(world) == wanted


def test_one_that_had_steps_left_is_not_taken_for_over() -> None:
    assert restarted(cut_off_at(1)) == LEFT


def test_a_cleaning_that_came_after_the_one_that_was_over_is_not_over() -> None:
    world = cut_off_at(None)
    world.nodes["a"].provision_updated_at += timedelta(seconds=1)
    assert restarted(world) == LEFT


def test_the_note_goes_when_the_cleaning_is_ended() -> None:
    world = cut_off_at(None)
    assert over.CLEANING in world.nodes["a"].saved
    restarted(world)
    assert over.CLEANING not in world.nodes["a"].saved


def test_a_step_without_its_number_is_one_of_an_earlier_cleaning() -> None:
    world = World([Node("a", "cleaning", clean_step=ERASE)], {"a": [STEPS, given("SUCCEEDED")]})
    world.nodes["a"].saved = {}
    assert restarted(world) == LEFT


def test_who_is_at_a_step_is_not_over_whatever_was_noted() -> None:
    world = cut_off_at(None)
    world.nodes["a"].clean_step = ERASE
    world.nodes["a"].saved = {**world.nodes["a"].saved, "clean_step_index": 0}
    world.agents["a"] = [STEPS, given("RUNNING")]
    assert restarted(world) == LOOK


def test_an_end_that_fails_fails_the_node() -> None:
    world = cut_off_at(None)
    world.trouble["end"] = RuntimeError("the BMC does not answer")
    assert restarted(world)[-1:] == FAIL


def test_an_ironic_that_goes_through_its_steps_in_another_way_is_left_alone() -> None:
    def do_next_clean_step(task: object) -> None:
        raise NotImplementedError

    module = SimpleNamespace(do_next_clean_step=do_next_clean_step)
    with pytest.raises(
        AttributeError, match="takes other things than task, step_index, disable_ramdisk: task"
    ):
        unbroken_clean.note_the_end(module, "cleaning")
    assert module.do_next_clean_step is do_next_clean_step
