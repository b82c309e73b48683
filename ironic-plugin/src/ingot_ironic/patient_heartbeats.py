"""A heartbeat waits for the node instead of being dropped.

An agent says at once that a step is done. If Ironic still holds the node's lock from having begun that step, which takes seconds
with many hosts, it drops the heartbeat and goes on only with the next one, minutes later. Here the heartbeat waits a while for
the lock; it then finds the node as it is by then, like any other.
"""

from __future__ import annotations

import functools
import time
from typing import Any, Final

from ingot_ironic.selfcheck import takes

PATIENCE: Final = 30.0
"""Seconds. A worker waits with it, of which there are hundreds; the agent comes again anyway."""
PAUSE: Final = 0.25


def install() -> None:
    """Have heartbeats wait. Raises when Ironic takes them in another way."""
    from ironic.common import exception
    from ironic.drivers.modules import agent_base

    hook(agent_base.HeartbeatMixin, agent_base.HEARTBEAT_ALLOWED, exception.NodeLocked)


def hook(
    mixin: Any,
    at_work: frozenset[str],
    locked: type[Exception],
    *,
    patience: float = PATIENCE,
) -> None:
    """`at_work`: the states of nodes that an agent works on."""
    original = mixin.heartbeat
    takes(original, "self", "task", more=True)

    @functools.wraps(original)
    def heartbeat(self: Any, task: Any, *args: Any, **kwargs: Any) -> Any:
        if task.node.provision_state in at_work:
            wait_for_lock(task, locked, patience=patience)
        return original(self, task, *args, **kwargs)

    mixin.heartbeat = heartbeat


def wait_for_lock(task: Any, locked: type[Exception], *, patience: float) -> None:
    """Have the lock, or have waited long enough. With it the task has the node anew."""
    end = time.monotonic() + patience
    while True:
        try:
            task.upgrade_lock(retry=False)
            return
        except locked:
            if time.monotonic() >= end:
                return
        except Exception:  # Ironic meets it again in a moment, and knows what to do
            return
        time.sleep(PAUSE)
