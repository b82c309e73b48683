"""Looks at the power of all hosts are spread over the time until the next round.

Ironic begins a round with as many looks at once as it has workers for it, thirty-two, so that dead BMCs do not keep the others
waiting. Of a thousand hosts that answer, each look is work for the one processor that Ironic has: for a minute nothing else was
done, and requests were answered after more than a minute. Here a look begins a moment after the one before it; those that wait
for a dead BMC do so beside each other, as before.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from ingot_ironic.selfcheck import takes

SHARE: Final = 0.8
"""Of the time between two rounds: the rest is for BMCs that are slow."""
LONGEST: Final = 0.1
"""Seconds between two looks; with few hosts a round is over soon."""


def install() -> None:
    """Have looks be spread. Raises when Ironic hands out hosts to look at in another way."""
    from ironic.conductor.manager import ConductorManager
    from ironic.conf import CONF

    hook(ConductorManager, interval=lambda: float(CONF.conductor.sync_power_state_interval))


def hook(
    manager: Any,
    *,
    interval: Callable[[], float],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    original = manager._sync_power_state_nodes_task
    takes(original, "self", "context", "nodes")
    turns: Final = Turns(clock, sleep)

    @functools.wraps(original)
    def _sync_power_state_nodes_task(self: Any, context: Any, nodes: Any) -> Any:
        apart = min(LONGEST, SHARE * interval() / max(1, nodes.qsize()))
        return original(self, context, Paced(nodes, lambda: turns.wait(apart)))

    manager._sync_power_state_nodes_task = _sync_power_state_nodes_task


class Turns:
    """Who waits here goes on some time after the one before."""

    def __init__(self, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self, apart: float) -> None:
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + apart
        self._sleep(turn - now)


class Paced:
    """A queue that hands out one thing after the other; that it is empty, it says at once."""

    def __init__(self, queue: Any, wait: Callable[[], None]) -> None:
        self._queue = queue
        self._wait = wait

    def get_nowait(self) -> Any:
        if not self._queue.empty():
            self._wait()
        return self._queue.get_nowait()
