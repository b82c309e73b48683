"""Noting every saved change of a node.

Ironic's notifications lose the end of verifying and of inspecting in a race of its own, and never speak of health, steps and
some errors. Every such change passes through `Node.save`, in this process; so that is where it is seen. A save that touches
none of the watched fields (an agent's heartbeat) is not worth a word.

Changes of one node are told in the order in which they reached the database, also when two threads save it: otherwise the
operator could be left with the older of two states as the last it heard.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from ingot_ironic.message import WATCHED, Event, event_of

LOG: Final = logging.getLogger(__name__)

# Enough locks that two nodes rarely share one; a save waits for another save and for nothing else while it holds one.
_ORDER: Final = tuple(threading.RLock() for _ in range(1024))


def install(tell: Callable[[Event], None]) -> None:
    """Wrap the save of Ironic's nodes. Raises when this Ironic has no such thing."""
    from ironic.objects.node import Node

    if not WATCHED & set(Node.fields) or not callable(Node.obj_what_changed):
        raise AttributeError("ironic.objects.node.Node does not have the fields to watch")
    hook(Node, tell)


def hook(node_class: Any, tell: Callable[[Event], None]) -> None:
    """Wrap `save` of this class so that it tells of watched changes, after they are in the database."""
    original = node_class.save

    @functools.wraps(original)
    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _watched_changes(self):
            return original(self, *args, **kwargs)
        with _ORDER[hash(self.uuid) % len(_ORDER)]:
            result = original(self, *args, **kwargs)
            _tell(self, tell)
        return result

    node_class.save = save


def _watched_changes(node: Any) -> bool:
    try:
        return bool(WATCHED & set(node.obj_what_changed()))
    except Exception:  # Ironic's save must not fail because of us; better one event too many
        return True


def _tell(node: Any, tell: Callable[[Event], None]) -> None:
    try:
        tell(event_of(node))
    except Exception as error:  # as above; and only the type, because the text could hold what the node holds
        LOG.warning("A change of a node was not noted for the operator (%s).", type(error).__name__)
