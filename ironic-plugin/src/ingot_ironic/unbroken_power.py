"""A machine that was being switched on or rebooted when Ironic was killed, and that Ironic waits for, is when it starts again.

A reboot is off and on. Ironic that is killed in between forgets at its start that the machine was to be on; a node that waits
for its ramdisk, or for an update that a boot applies, then waits for a machine that is off, until its time is up. Whoever was
to be on is noted here before Ironic forgets it. Of a machine that is on somebody has to tell whether it has been rebooted: if
the ramdisk from before runs still (`old_ramdisk`), it was not, and is now; Ironic has forgotten that ramdisk, and would not hear
it. Else it is left alone, for an update may be under way.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final

from ingot_ironic import old_ramdisk, restart
from ingot_ironic.selfcheck import takes

LOG: Final = logging.getLogger(__name__)

_NOTED: Final = "_ingot_to_be_on"


class Ironic(restart.Conductor):
    """And what is needed to switch the power."""

    def __init__(self) -> None:
        super().__init__()
        from ironic.common import states
        from ironic.conductor import utils

        self.on: str = states.POWER_ON
        self.reboot: str = states.REBOOT
        self.waiting: frozenset[str] = frozenset({*self.steps, states.INSPECTWAIT})
        self.utils: Any = utils

    def locked_by(self, host: str) -> Iterable[tuple[Any, ...]]:
        """UUID, state and wanted power of the nodes that this conductor had when it ended."""
        return self.nodes("uuid", "provision_state", "target_power_state", reserved_by_any_of=[host])


def install() -> None:
    """Wrap how Ironic reboots, and how it starts. Raises when this Ironic is made in another way."""
    ironic = Ironic()
    note_reboots(ironic)
    hook(ironic, old_ramdisk.runs_still)


def note_reboots(ironic: Any) -> None:
    original = ironic.utils.node_power_action
    takes(original, "task", "new_state", "timeout")

    @functools.wraps(original)
    def node_power_action(task: Any, new_state: str, timeout: int | None = None) -> Any:
        if new_state == ironic.reboot and task.node.provision_state in ironic.waiting:
            old_ramdisk.note(task.node)
        return original(task, new_state, timeout)

    ironic.utils.node_power_action = node_power_action


def hook(ironic: Any, runs_still: Callable[[Any], bool]) -> None:
    """`runs_still`: whether the ramdisk from before the reboot does."""
    prepare = ironic.manager_class.prepare_host

    @functools.wraps(prepare)
    def prepare_host(self: Any) -> None:
        setattr(self, _NOTED, _to_be_on(ironic, self.host))
        prepare(self)

    def finish(task: Any) -> None:
        """Power that is on is left as it is by Ironic itself."""
        if task.node.provision_state not in ironic.waiting:
            return
        wanted = ironic.reboot if runs_still(task.node) else ironic.on
        LOG.warning("Node %s was being switched when Ironic ended: now it gets %s.", task.node.uuid, wanted)
        ironic.utils.node_power_action(task, wanted)

    ironic.manager_class.prepare_host = prepare_host
    restart.at_start(ironic, lambda manager: getattr(manager, _NOTED, ()), finish)


def _to_be_on(ironic: Any, host: str) -> list[str]:
    try:
        found = ironic.locked_by(host)
    except Exception as error:  # Ironic starts all the same
        LOG.warning("Machines that were being switched on are not known (%s).", type(error).__name__)
        return []
    return [uuid for uuid, state, wanted in found if wanted == ironic.on and state in ironic.waiting]
