"""When Ironic starts, all nodes that it was at work with are moved to a failed state, not the first ones alone.

Ironic takes as many of them, in each state, as it has workers for what it does from time to time, and no other occasion
follows: a node beyond them stays `verifying` or `inspecting` until Ironic is started once more. Here it is done until none is
left.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)


def install() -> None:
    """Have all be found. Raises when Ironic treats what it was interrupted at in another way."""
    from ironic.common import states
    from ironic.conductor import base_manager

    hook(base_manager.BaseConductorManager, states.STUCK_STATES_TREATED_AS_FAIL)


def hook(manager: Any, stuck: Sequence[str]) -> None:
    original, iter_nodes = manager._correct_stuck_states, manager.iter_nodes

    @functools.wraps(original)
    def _correct_stuck_states(self: Any) -> None:
        before: set[str] = set()
        while True:
            original(self)
            try:
                left = {
                    uuid
                    for state in stuck
                    for uuid, *_ in iter_nodes(self, filters={"reserved": False, "provision_state": state})
                }
            except Exception as error:  # Ironic starts all the same
                LOG.warning(
                    "Whether nodes are left that were cut off is not known (%s).", type(error).__name__
                )
                return
            # Those that cannot be moved are not tried for ever.
            if not left or left == before:
                return
            before = left

    manager._correct_stuck_states = _correct_stuck_states
