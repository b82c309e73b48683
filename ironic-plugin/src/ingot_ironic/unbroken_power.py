"""A machine that was being switched on when Ironic was killed, and that Ironic waits for, is switched on when it starts again.

A reboot is off and on. Ironic that is killed in between forgets at its start that the machine was to be on; a node that waits
for its ramdisk, or for an update that a boot applies, then waits for a machine that is off, until its time is up. Whoever was
to be on is noted here before Ironic forgets it. A machine that is on is left alone: nobody knows whether it has been rebooted.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)

_NOTED: Final = "_ingot_to_be_on"


class Ironic:
    """What is needed of Ironic's own modules. Making one raises when this Ironic lacks something."""

    def __init__(self) -> None:
        from ironic.common import context, states
        from ironic.conductor import base_manager, task_manager, utils
        from ironic.db import api

        self.manager_class: Any = base_manager.BaseConductorManager
        self.on: str = states.POWER_ON
        self.waiting: frozenset[str] = frozenset(
            {states.CLEANWAIT, states.DEPLOYWAIT, states.SERVICEWAIT, states.INSPECTWAIT}
        )
        self.admin: Callable[[], Any] = context.get_admin_context
        self.acquire: Callable[..., Any] = task_manager.acquire
        self.switch: Callable[..., Any] = utils.node_power_action
        self._database: Callable[[], Any] = api.get_instance
        for name in ("prepare_host", "_correct_stuck_states", "_spawn_worker"):
            if not callable(getattr(self.manager_class, name, None)):
                raise AttributeError(f"{self.manager_class.__name__} has no {name}")

    def locked_by(self, host: str) -> Sequence[tuple[str, str, str | None]]:
        """UUID, state and wanted power of the nodes that this conductor had when it ended."""
        columns = ["uuid", "provision_state", "target_power_state"]
        found: Sequence[tuple[str, str, str | None]] = self._database().get_nodeinfo_list(
            columns=columns, filters={"reserved_by_any_of": [host]}
        )
        return found


def install() -> None:
    """Wrap how Ironic starts. Raises when this Ironic is made in another way."""
    hook(Ironic())


def hook(ironic: Any) -> None:
    prepare, correct = ironic.manager_class.prepare_host, ironic.manager_class._correct_stuck_states

    @functools.wraps(prepare)
    def prepare_host(self: Any) -> None:
        setattr(self, _NOTED, _to_be_on(ironic, self.host))
        prepare(self)

    @functools.wraps(correct)
    def _correct_stuck_states(self: Any) -> None:
        correct(self)
        for uuid in getattr(self, _NOTED, ()):
            try:
                self._spawn_worker(_switch_on, ironic, uuid)
            except Exception as error:  # no worker is free: Ironic's own time-outs are left
                LOG.warning("Node %s is not switched on (%s).", uuid, type(error).__name__)

    ironic.manager_class.prepare_host = prepare_host
    ironic.manager_class._correct_stuck_states = _correct_stuck_states


def _to_be_on(ironic: Any, host: str) -> list[str]:
    try:
        found = ironic.locked_by(host)
    except Exception as error:  # Ironic starts all the same
        LOG.warning("Machines that were being switched on are not known (%s).", type(error).__name__)
        return []
    return [uuid for uuid, state, wanted in found if wanted == ironic.on and state in ironic.waiting]


def _switch_on(ironic: Any, uuid: str) -> None:
    """In a worker. Power that is on is left as it is by Ironic itself."""
    try:
        with ironic.acquire(ironic.admin(), uuid, purpose="switching on what was being switched on") as task:
            if task.node.provision_state in ironic.waiting:
                LOG.warning("Node %s was being switched on when Ironic ended: that is finished now.", uuid)
                ironic.switch(task, ironic.on)
    except Exception as error:  # the edge of a worker; Ironic's own time-outs are left
        LOG.warning("Node %s is not switched on (%s).", uuid, type(error).__name__)
