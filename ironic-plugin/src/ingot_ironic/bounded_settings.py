"""BIOS settings that a machine does not take are given up, and named, instead of being waited for without end.

After the reboot Ironic looks from time to time whether the settings are there. As long as the BMC tells how far the machine has
booted, each look counts as a sign of life, so that no time-out ever passes, and a step of this kind cannot be aborted. Here the
first look that finds the machine's system started and settings missing is noted with the node. When they are missing still after
the time that Ironic gives a machine without a word, the step goes on: it looks itself, and fails with their names.

It fails by an exception, too. Ironic marks the node as failed and lets the step return; what comes after it is done then, and the
cleaning ends as if all had been well.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Final

from ingot_ironic.selfcheck import needs, takes

SINCE: Final = "ingot_missing_since"
"""Beside what Ironic notes of the settings that it waits for: gone with it, and kept when Ironic is killed."""


def install() -> None:
    """Have settings be given up. Raises when Ironic waits for them in another way."""
    from ironic.common import exception
    from ironic.conf import CONF
    from ironic.drivers.modules.redfish import bios

    hook(
        bios.RedfishBIOS,
        bios._DII_STATE,
        limit=lambda: float(CONF.conductor.clean_callback_timeout),
        failure=lambda message: exception.RedfishError(error=message),
    )


def hook(
    bios: Any,
    state: str,
    *,
    limit: Callable[[], float],
    failure: Callable[[str], Exception],
    clock: Callable[[], float] = time.time,
) -> None:
    """`state`: where Ironic notes what it waits for. `limit`: in seconds; 0 for none, as everywhere in Ironic."""
    original = bios._get_unapplied_bios_attrs
    takes(original, "self", "task", "requested_attrs", "bios")
    takes(bios._set_step_failed, "self", "task", "attrs_not_updated")
    needs(bios, "_check_node_redfish_bios_apply")

    @functools.wraps(original)
    def _get_unapplied_bios_attrs(self: Any, task: Any, requested_attrs: Any, bios: Any) -> Any:
        missing = original(self, task, requested_attrs, bios)
        noted = task.node.driver_internal_info.get(state)
        if not missing or not noted:
            # Without a note it is the step itself that looks, and it fails of what is missing.
            return missing
        if SINCE not in noted:
            _note(task, state, clock())
            return missing
        given_up = 0 < limit() <= clock() - noted[SINCE]
        return {} if given_up else missing

    @functools.wraps(bios._set_step_failed)
    def _set_step_failed(self: Any, task: Any, attrs_not_updated: Any) -> None:
        raise failure(f"the machine does not take these BIOS settings: {attrs_not_updated}")

    bios._get_unapplied_bios_attrs = _get_unapplied_bios_attrs
    bios._set_step_failed = _set_step_failed


def _note(task: Any, state: str, now: float) -> None:
    task.upgrade_lock(purpose="noting that settings are missing")
    # Read again with the lock: somebody may have been faster, and then there is nothing to note.
    noted = task.node.driver_internal_info.get(state)
    if noted:
        task.node.set_driver_internal_info(state, {**noted, SINCE: now})
        task.node.save()
