"""Inspection data that come before Ironic waits for them are waited with, instead of being refused for good.

A machine is switched on, and then Ironic notes that it waits for its report. A machine that boots fast, or an Ironic with much to
do, and the report is there first: Ironic answers that it knows no such node, the agent takes that as final, and the inspection
hangs until its time is up. Here the report waits a little; when that does not help, the agent is told to come again, and does,
four times.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Final

from ingot_ironic.selfcheck import takes

PATIENCE: Final = 10.0
"""Seconds. One of the API's threads waits with it, and the agent gives its call up after thirty."""
PAUSE: Final = 1.0


def install() -> None:
    """Have early reports wait. Raises when Ironic finds the node of a report in another way."""
    from ironic.common import exception, states
    from ironic.drivers.modules import inspect_utils
    from ironic.objects import Node

    def state(context: Any, macs: list[str], node_uuid: str | None) -> str | None:
        """Of the node that reports, as far as it can be told from what the original looks at first."""
        try:
            if node_uuid:
                node = Node.get_by_uuid(context, node_uuid)
            elif macs:
                node = Node.get_by_port_addresses(context, macs)
            else:
                return None
        except exception.IronicException:  # unknown, or more than one: the original says so
            return None
        return str(node.provision_state)

    hook(inspect_utils, state, states.INSPECTING, exception.TemporaryFailure)


def hook(
    module: Any,
    state: Callable[[Any, list[str], str | None], str | None],
    starting: str,
    come_again: type[Exception],
    *,
    patience: float = PATIENCE,
) -> None:
    """`starting`: the state of a node that is about to be waited for. `come_again`: what an agent takes as such."""
    original = module.lookup_node
    takes(original, "context", "mac_addresses", "bmc_addresses", "node_uuid")

    @functools.wraps(original)
    def lookup_node(
        context: Any, mac_addresses: list[str], bmc_addresses: list[str], node_uuid: str | None = None
    ) -> Any:
        end = time.monotonic() + patience
        while state(context, mac_addresses, node_uuid) == starting:
            if time.monotonic() >= end:
                raise come_again
            time.sleep(PAUSE)
        return original(context, mac_addresses, bmc_addresses, node_uuid=node_uuid)

    module.lookup_node = lookup_node
