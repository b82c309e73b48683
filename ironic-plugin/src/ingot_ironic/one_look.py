"""A look at a host's power reads its system once.

Every two minutes Ironic looks at each host, and reads the same system four times for it: for the power, the boot mode, secure
boot and the health. Each is a connection to the BMC with a handshake of its own; with a thousand hosts that is a fifth of
Ironic's processor, also while nothing happens. Here what was read for the power serves the other three.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Final

from ingot_ironic.selfcheck import takes


def install() -> None:
    """Have each look be one. Raises when Ironic looks in another way."""
    from ironic.conductor import manager
    from ironic.conf import CONF
    from ironic.drivers.modules.redfish import utils

    hook(manager, utils, acts=lambda: bool(CONF.conductor.force_power_state_during_sync))


def hook(manager: Any, redfish: Any, *, acts: Callable[[], bool]) -> None:
    """`acts`: whether a look may switch the power, and then has to see what comes of it."""
    look, read = manager.do_sync_power_state, redfish.get_system
    takes(look, "task", "count")
    takes(read, "node")
    under_way: Final = threading.local()

    @functools.wraps(look)
    def do_sync_power_state(task: Any, count: int) -> Any:
        under_way.seen = None if acts() else {}
        try:
            return look(task, count)
        finally:
            under_way.seen = None

    @functools.wraps(read)
    def get_system(node: Any) -> Any:
        seen = getattr(under_way, "seen", None)
        if seen is None:
            return read(node)
        if node.uuid not in seen:
            seen[node.uuid] = read(node)
        return seen[node.uuid]

    manager.do_sync_power_state = do_sync_power_state
    redfish.get_system = get_system
