"""A cleaning goes on after Ironic was killed, so that no machine is wiped a second time for it.

When all steps are done, Ironic forgets them and then ends the agent, which takes some seconds; that it is over is noted before
(`over`), and the note goes when it is ended. The rest is `unbroken_steps`.

A cleaning whose last step was one of Ironic itself is not noted. Such steps are settings, updates and volumes, which wipe nothing
that anybody wrote, and are done again.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, Final

from ingot_ironic import cut_off, over
from ingot_ironic.agent_record import Agents
from ingot_ironic.selfcheck import takes
from ingot_ironic.unbroken_steps import Steps

LOG: Final = logging.getLogger(__name__)

_KIND: Final = "clean"
_WITHOUT_RAMDISK: Final = "without_ramdisk"


def install() -> None:
    """Have cleanings go on. Raises when this Ironic is made in another way."""
    from ironic.common import states
    from ironic.conductor import cleaning

    ironic, agents = cut_off.Ironic(), Agents()
    note_the_end(cleaning, states.CLEANING)
    work = flow(
        agents, states.CLEANING, go_on=cleaning.continue_node_clean, finish=cleaning.do_next_clean_step
    )
    cut_off.hook(ironic, work)


def note_the_end(cleaning: Any, state: str) -> None:
    """`cleaning`: the module of Ironic that goes through the steps; who comes with no step left begins to end it."""
    original = cleaning.do_next_clean_step
    takes(original, "task", "step_index", "disable_ramdisk")

    @functools.wraps(original)
    def do_next_clean_step(task: Any, step_index: int | None, disable_ramdisk: bool | None = None) -> Any:
        if step_index is not None:
            return original(task, step_index, disable_ramdisk=disable_ramdisk)
        _note(task.node, disable_ramdisk)
        result = original(task, step_index, disable_ramdisk=disable_ramdisk)
        if task.node is not None and task.node.provision_state != state:
            _forget(task.node)
        return result

    cleaning.do_next_clean_step = do_next_clean_step


def flow(agents: Any, state: str, *, go_on: Callable[[Any], None], finish: Callable[..., None]) -> Steps:
    return Steps(
        _KIND,
        state,
        agents,
        noted_as=over.CLEANING,
        go_on=go_on,
        end=lambda task, noted: finish(task, None, disable_ramdisk=noted[_WITHOUT_RAMDISK]),
    )


def _forget(node: Any) -> None:
    """The cleaning is ended, whatever becomes of its note: the moment in it fits no other one."""
    try:
        node.del_driver_internal_info(over.CLEANING)
        node.save()
    except Exception as error:
        LOG.warning("Node %s keeps the note that its cleaning is over (%s).", node.uuid, type(error).__name__)


def _note(node: Any, without_ramdisk: bool | None) -> None:
    if without_ramdisk is None:
        without_ramdisk = bool(node.driver_internal_info.get("cleaning_disable_ramdisk"))
    over.note(node, over.CLEANING, **{_WITHOUT_RAMDISK: without_ramdisk})
