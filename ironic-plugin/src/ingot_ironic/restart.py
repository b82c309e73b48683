"""Something that is done for some nodes when Ironic starts again.

Ironic is asked for each of them in a worker, with the node's lock, however long somebody else has that: what is looked after here
has no other occasion. Whatever goes wrong is logged, and neither keeps Ironic from starting nor the other nodes from their turn.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ingot_ironic.selfcheck import needs

LOG: Final = logging.getLogger(__name__)


class Conductor:
    """What is needed of Ironic's own modules. Making one raises when this Ironic lacks something."""

    def __init__(self) -> None:
        from ironic.common import context, states
        from ironic.conductor import base_manager, task_manager
        from ironic.db import api

        self.manager_class: Any = base_manager.BaseConductorManager
        needs(self.manager_class, "prepare_host", "_correct_stuck_states", "_spawn_worker", "iter_nodes")
        self.admin: Callable[[], Any] = context.get_admin_context
        self.acquire: Callable[..., Any] = task_manager.acquire
        self.steps: Mapping[str, str] = {
            states.CLEANWAIT: "clean",
            states.DEPLOYWAIT: "deploy",
            states.SERVICEWAIT: "service",
        }
        """The states in which a node waits in the middle of its steps, with their kind."""
        self._database: Callable[[], Any] = api.get_instance

    def nodes(self, *columns: str, **filters: Any) -> Iterable[tuple[Any, ...]]:
        found: Iterable[tuple[Any, ...]] = self._database().get_nodeinfo_list(
            columns=list(columns), filters=filters
        )
        return found


def at_start(ironic: Any, find: Callable[[Any], Iterable[str]], act: Callable[[Any], None]) -> None:
    """`find`: the UUIDs of the nodes, given the conductor that starts. `act`: is given a task with the node's lock."""
    original = ironic.manager_class._correct_stuck_states

    @functools.wraps(original)
    def _correct_stuck_states(self: Any) -> None:
        original(self)
        try:
            found = list(find(self))
        except Exception as error:  # Ironic starts all the same
            LOG.warning("What was cut off is not known (%s).", type(error).__name__)
            return
        for uuid in found:
            try:
                self._spawn_worker(_act, ironic, uuid, act)
            except Exception as error:  # no worker is free: Ironic's own time-outs are left
                LOG.warning("Node %s is left as it was cut off (%s).", uuid, type(error).__name__)

    ironic.manager_class._correct_stuck_states = _correct_stuck_states


def _act(ironic: Any, uuid: str, act: Callable[[Any], None]) -> None:
    """In a worker."""
    try:
        with ironic.acquire(
            ironic.admin(), uuid, purpose="going on with what was cut off", patient=True
        ) as task:
            act(task)
    except Exception as error:  # the edge of a worker; Ironic's own time-outs are left
        LOG.warning("Node %s is left as it was cut off (%s).", uuid, type(error).__name__)
