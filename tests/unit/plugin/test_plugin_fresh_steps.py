"""What an earlier cleaning, deployment or service left behind is gone when another begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import fresh_steps


class Node:
    def __init__(self, **info: Any) -> None:
        self.clean_step = {"interface": "deploy", "step": "erase_devices_metadata"}
        self.driver_internal_info = info

    def del_driver_internal_info(self, key: str) -> None:
        del self.driver_internal_info[key]


def begun(node: Node) -> list[Any]:
    """What the one that begins sees of the node, and is told."""
    seen: list[Any] = []

    def do_node_clean(task: Any, clean_steps: Any = None, disable_ramdisk: bool = False) -> str:
        seen.extend(
            [task.node.clean_step, dict(task.node.driver_internal_info), clean_steps, disable_ramdisk]
        )
        return "begun"

    module = SimpleNamespace(do_node_clean=do_node_clean)
    fresh_steps.begin_afresh(module, "do_node_clean", "clean_step")
    assert module.do_node_clean(SimpleNamespace(node=node), ["steps"], disable_ramdisk=True) == "begun"
    return seen


def test_no_step_is_left_and_nothing_that_was_waited_for() -> None:
    node = Node(**{key: {"task": "1"} for key in fresh_steps.LEFT_BEHIND}, agent_url="https://agent")
    assert begun(node) == [{}, {"agent_url": "https://agent"}, ["steps"], True]


def test_a_node_with_nothing_left_behind_begins_as_it_is() -> None:
    assert begun(Node(agent_url="https://agent"))[1] == {"agent_url": "https://agent"}


def test_an_ironic_that_begins_in_another_way_is_left_alone() -> None:
    def do_node_clean() -> None:
        raise NotImplementedError

    module = SimpleNamespace(do_node_clean=do_node_clean)
    with pytest.raises(AttributeError, match="takes other things than"):
        fresh_steps.begin_afresh(module, "do_node_clean", "clean_step")
    assert module.do_node_clean is do_node_clean
