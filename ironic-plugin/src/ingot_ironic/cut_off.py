"""What Ironic was killed at goes on when it starts again, where somebody can tell how far it came.

When Ironic starts it moves every node that it was at work with to a failed state, because it cannot know what became of that
work; doing it again deploys a machine, or wipes it, a second time. Before Ironic does that, the nodes whose `Flow` may know more
are set aside (locked, which Ironic's own clean-up passes over), and then each is tried in a worker. Where that does not work the
node fails, in the words that Ironic has for it: the operator knows them for an interruption.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from ingot_ironic import restart

LOG: Final = logging.getLogger(__name__)


class Flow(Protocol):
    """A kind of work that can go on."""

    state: str
    """Of a node that is at it."""

    def may_go_on(self, node: Any) -> bool:
        """Whether it is worth trying."""
        ...

    def go_on(self, task: Any) -> None:
        """With the lock held all the time: a heartbeat in between would take the same step. Raises when it cannot be done."""
        ...


class Ironic(restart.Conductor):
    """And what is needed to tell of a node that fails."""

    def __init__(self) -> None:
        super().__init__()
        from ironic.common import states
        from ironic.conductor import utils

        self.transition: str = states.TRANSITION
        self.record: Callable[..., Any] = utils.node_history_record


def hook(ironic: Any, flow: Flow) -> None:
    """Wrap how Ironic treats what it was interrupted at."""
    original = ironic.manager_class._correct_stuck_states

    @functools.wraps(original)
    def _correct_stuck_states(self: Any) -> None:
        aside = list(_set_aside(self, ironic, flow))
        original(self)
        for task in aside:
            try:
                self._spawn_worker(_go_on, self, task, ironic, flow)
            except Exception as error:  # no worker is free: as if nothing could be known
                _fail(self, task, ironic, flow, error)

    ironic.manager_class._correct_stuck_states = _correct_stuck_states


def _set_aside(manager: Any, ironic: Any, flow: Flow) -> Iterator[Any]:
    """The nodes that may go on, each locked. What goes wrong here leaves a node to Ironic."""
    filters = {"reserved": False, "provision_state": flow.state}
    try:
        found = [uuid for uuid, *_ in manager.iter_nodes(filters=filters)]
    except Exception as error:  # Ironic starts all the same, and does with them what it always does
        LOG.warning(
            "Nodes that were cut off while %s are left to Ironic (%s).", flow.state, type(error).__name__
        )
        return
    for uuid in found:
        task = None
        try:
            task = ironic.acquire(ironic.admin(), uuid, purpose="going on with what was cut off")
            goes_on = task.node.provision_state == flow.state and flow.may_go_on(task.node)
        except Exception as error:  # one node must not keep the others from going on
            LOG.warning(
                "Node %s, cut off while %s, is left to Ironic (%s).", uuid, flow.state, type(error).__name__
            )
            goes_on = False
        if goes_on:
            yield task
        elif task is not None:
            _release(task)


def _go_on(manager: Any, task: Any, ironic: Any, flow: Flow) -> None:
    """In a worker."""
    node = task.node
    try:
        flow.go_on(task)
    except Exception as error:  # the edge of a worker: whatever an agent or a step of Ironic raises ends here
        if node.provision_state == flow.state:  # nothing else would ever look at it
            _fail(manager, task, ironic, flow, error)
            return
        LOG.warning("Node %s went on, and then: %s.", node.uuid, type(error).__name__)
    _release(task)


def _fail(manager: Any, task: Any, ironic: Any, flow: Flow, error: Exception) -> None:
    """What Ironic itself would have done with the node.

    Raises nothing: it may run while Ironic starts, and one node must not keep the others from being served.
    """
    uuid = task.node.uuid
    LOG.warning("Node %s cannot go on (%s).", uuid, type(error).__name__)
    try:
        words = f"The {flow.state} state can't be resumed by conductor {manager.host}. Moving to fail state."
        ironic.record(task.node, event=words, error=True, event_type=ironic.transition)
        task.process_event("fail")
    except Exception as trouble:  # see above: it raises nothing
        LOG.error("Node %s cannot be made to fail either (%s).", uuid, type(trouble).__name__)
    finally:
        _release(task)


def _release(task: Any) -> None:
    try:
        task.release_resources()
    except Exception as error:  # the lock of a conductor that is gone goes at its next start
        LOG.error("A node cannot be unlocked (%s).", type(error).__name__)
