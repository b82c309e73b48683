"""A cleaning, a deployment or a service begins with nothing left of an earlier one.

What is interrupted, aborted or runs out of time leaves things behind in Ironic's record of the node, and the next one stumbles
over them. A step that is still noted makes the first heartbeat look for the step after it; its number is gone, so there is
none, and a machine that was never wiped counts as clean. A note of settings, updates or volumes that Ironic was waiting for
makes it go on with whatever step the node is at by then, as if that were done. Here both go when something new begins. They are
saved with what is saved first of it.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from ingot_ironic import old_ramdisk, over, unbroken_updates
from ingot_ironic.selfcheck import takes

LEFT_BEHIND: Final = (
    "deploy_step_index",
    "deploy_steps",
    "firmware_updates",
    "raid_configs",
    "raid_task_monitor_uris",
    "redfish_bios_state",
    "redfish_fw_updates",
    over.CLEANING,
    over.DEPLOYMENT,
    old_ramdisk.NOTE,
    unbroken_updates.NOTE,
)
"""The steps of a deployment, what Ironic asks BMCs for until it is done, and our own notes."""


def install() -> None:
    """Have them begin so. Raises when Ironic begins them in another way."""
    from ironic.conductor import cleaning, deployments, servicing

    begin_afresh(cleaning, "do_node_clean", "clean_step")
    begin_afresh(deployments, "do_node_deploy", "deploy_step")
    begin_afresh(servicing, "do_node_service", "service_step")


def begin_afresh(module: Any, name: str, step: str) -> None:
    """`step`: the field of a node that names the step it is at."""
    original = getattr(module, name)
    takes(original, "task", more=True)

    @functools.wraps(original)
    def begin(task: Any, *arguments: Any, **named: Any) -> Any:
        setattr(task.node, step, {})
        for key in LEFT_BEHIND:
            if key in task.node.driver_internal_info:
                task.node.del_driver_internal_info(key)
        return original(task, *arguments, **named)

    setattr(module, name, begin)
