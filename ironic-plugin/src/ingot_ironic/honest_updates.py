"""An update of a BMC's own firmware fails when the BMC says that it has failed.

While its firmware is changed a BMC may be away, so Ironic gives it some minutes and then looks at its version. Where that is the
one from before, it takes the update for one that changed nothing, and never asks the BMC what became of it. Here it is asked
first; one that does not answer, or has forgotten, is treated as before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ingot_ironic.selfcheck import takes


def install() -> None:
    """Have the BMC be asked. Raises when Ironic looks after such updates in another way."""
    import sushy
    from ironic.drivers.modules.redfish import firmware, utils

    failed = frozenset({sushy.TASK_STATE_EXCEPTION, sushy.TASK_STATE_KILLED, sushy.TASK_STATE_CANCELLED})
    takes(utils.get_task_monitor, "node", "uri")
    hook(firmware.RedfishFirmware, lambda node, uri: utils.get_task_monitor(node, uri).get_task(), failed)


def hook(firmware: Any, read: Callable[[Any, str], Any], failed: frozenset[Any]) -> None:
    """`read`: a task of the BMC. `failed`: the states of one that was not carried out."""
    original = firmware._handle_bmc_update_completion
    takes(original, "self", "task", "update_service", "settings", "current_update")
    takes(
        firmware._handle_task_completion,
        *("self", "task", "sushy_task", "messages", "update_service", "settings", "current_update"),
    )

    @functools.wraps(original)
    def _handle_bmc_update_completion(
        self: Any, task: Any, update_service: Any, settings: Any, current_update: Any
    ) -> Any:
        try:
            found = read(task.node, current_update["task_monitor"])
        except Exception:  # away, or forgotten: Ironic looks at the version, as it always does
            found = None
        if found is None or found.task_state not in failed:
            return original(self, task, update_service, settings, current_update)
        task.upgrade_lock()
        return self._handle_task_completion(
            task, found, _words(found), update_service, settings, current_update
        )

    firmware._handle_bmc_update_completion = _handle_bmc_update_completion


def _words(found: Any) -> list[str]:
    return [message.message or message.message_id or "" for message in found.messages or ()]
