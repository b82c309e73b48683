"""What an agent is told to do is in no error.

An agent that answers an order with something that is no JSON makes Ironic write the whole order into the log, the node's error
and its history: the config drive with the user data is in it. Here an order is a text that shows nothing of itself, wherever it
is put into another, and is sent as it is.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from ingot_ironic.selfcheck import takes

HIDDEN: Final = "***"


class Order(str):
    """A text for who is to get it, and for nobody who looks at it."""

    __slots__ = ()

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return repr(HIDDEN)

    def __format__(self, form: str) -> str:
        return format(HIDDEN, form)


def install() -> None:
    """Have orders be such. Raises when Ironic makes them in another way."""
    from ironic.drivers.modules import agent_client

    hook(agent_client.AgentClient)


def hook(client: Any) -> None:
    original = client._get_command_body
    takes(original, "self", "method", "params")

    @functools.wraps(original)
    def _get_command_body(self: Any, method: Any, params: Any) -> Order:
        # Not `str(...)` of what may be an Order already: that would be its hidden face.
        return Order(str.__str__(original(self, method, params)))

    client._get_command_body = _get_command_body
