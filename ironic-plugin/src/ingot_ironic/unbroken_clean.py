"""A cleaning goes on after Ironic was killed, so that no machine is wiped a second time for it.

At a step of the agent, the agent is asked how far it came (`agent_record`). When all steps are done, Ironic forgets them and then
ends the agent, which takes some seconds; that it is over is noted before (`over`), and the note goes when it is ended.

A cleaning whose last step was one of Ironic itself is not noted. Such steps are settings, updates and volumes, which wipe nothing
that anybody wrote, and are done again.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

from ingot_ironic import cut_off, over
from ingot_ironic.agent_record import Agents, decide, is_at, resume

LOG: Final = logging.getLogger(__name__)

_KIND: Final = "clean"
_WITHOUT_RAMDISK: Final = "without_ramdisk"


def install() -> None:
    """Have cleanings go on. Raises when this Ironic is made in another way."""
    from ironic.common import states
    from ironic.conductor import cleaning

    ironic, agents = cut_off.Ironic(), Agents()
    note_the_end(cleaning, states.CLEANING)
    flow = Cleaning(
        agents, states.CLEANING, go_on=cleaning.continue_node_clean, finish=cleaning.do_next_clean_step
    )
    cut_off.hook(ironic, flow)


def note_the_end(cleaning: Any, state: str) -> None:
    """`cleaning`: the module of Ironic that goes through the steps; who comes with no step left begins to end it."""
    original = cleaning.do_next_clean_step
    if list(inspect.signature(original).parameters) != ["task", "step_index", "disable_ramdisk"]:
        raise AttributeError("the steps of a cleaning are gone through in another way")

    @functools.wraps(original)
    def do_next_clean_step(task: Any, step_index: int | None, disable_ramdisk: bool | None = None) -> Any:
        if step_index is not None:
            return original(task, step_index, disable_ramdisk=disable_ramdisk)
        _note(task.node, disable_ramdisk)
        result = original(task, step_index, disable_ramdisk=disable_ramdisk)
        if task.node is not None and task.node.provision_state != state:
            task.node.del_driver_internal_info(over.CLEANING)
            task.node.save()
        return result

    cleaning.do_next_clean_step = do_next_clean_step


class Cleaning:
    def __init__(
        self, agents: Any, state: str, *, go_on: Callable[[Any], None], finish: Callable[..., None]
    ) -> None:
        self._agents = agents
        self.state = state
        self._continue = go_on
        self._finish = finish

    def may_go_on(self, node: Any) -> bool:
        return _over(node) is not None or is_at(_KIND, node, node.clean_step)

    def go_on(self, task: Any) -> None:
        node = task.node
        if noted := _over(node):
            LOG.warning("Node %s was cut off when its cleaning was over: that is ended now.", node.uuid)
            self._finish(task, None, disable_ramdisk=noted[_WITHOUT_RAMDISK])
            return
        step = node.clean_step
        resume(_KIND, task, step, decide(_KIND, step, self._agents.commands(task)), self._continue)


def _note(node: Any, without_ramdisk: bool | None) -> None:
    if without_ramdisk is None:
        without_ramdisk = bool(node.driver_internal_info.get("cleaning_disable_ramdisk"))
    over.note(node, over.CLEANING, **{_WITHOUT_RAMDISK: without_ramdisk})


def _over(node: Any) -> dict[str, Any] | None:
    return over.noted(node, over.CLEANING, node.clean_step)
