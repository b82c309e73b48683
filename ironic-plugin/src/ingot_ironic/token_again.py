"""An agent whose token was lost together with Ironic gets it when it looks its node up again.

Ironic gives an agent its token once, when it looks up its node, and notes it before it answers. Killed in between, it refuses the
token to the agent, which asks again because it heard nothing: the agent stays mute, and the machine is waited for until its time
is up. Here the token is given once more, if another process of Ironic than this one made it, and no agent has spoken with it yet.
Until then, whoever asked first would have had it as well.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)

_HIDDEN: Final = "******"


def install() -> None:
    """Have tokens be given again. Raises when Ironic does not give them."""
    from ironic.conductor.manager import ConductorManager
    from ironic.objects import Node

    hook(ConductorManager, Node.get)


def hook(manager: Any, read: Callable[[Any, str], Any]) -> None:
    """`read`: a node as it is in the database."""
    original = manager.get_node_with_token
    asked: set[str] = set()

    @functools.wraps(original)
    def get_node_with_token(self: Any, context: Any, *arguments: Any, **named: Any) -> Any:
        node = original(self, context, *arguments, **named)
        is_first = node.uuid not in asked
        asked.add(node.uuid)
        if not (is_first and _is_lost(node.driver_internal_info)):
            return node
        LOG.warning("Node %s: no agent has used its token yet; it is given once more.", node.uuid)
        return read(context, node.uuid)

    manager.get_node_with_token = get_node_with_token


def _is_lost(info: dict[str, Any]) -> bool:
    """Refused, although nobody can have it: an agent that has spoken has left its URL, one made before is on the medium."""
    refused = info.get("agent_secret_token") == _HIDDEN
    return refused and not info.get("agent_url") and not info.get("agent_secret_token_pregenerated")
