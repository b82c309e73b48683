"""Reading Ironic's notifications: which of them are worth a word to the operator, and which word.

Pure. An event is never a source of state, because events get lost and overtake each other; it says "look again", or that a
node is gone. Changes that the save hook sees are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ingot_ironic.message import Event

_NODE: Final = "baremetal.node."
_PORT: Final = "baremetal.port."
_DATA: Final = "ironic_object.data"
# What happens to a node without `Node.save` being the whole story.
_NOT_SAVED: Final = ("create", "update", "delete")


def event_from(message: Mapping[str, Any], *, saves_are_seen: bool) -> Event | None:
    """The event in this notification, if there is one for us."""
    kind = str(message.get("event_type", ""))
    payload = message.get("payload")
    data = payload.get(_DATA) if isinstance(payload, Mapping) else None
    # `start` speaks of what is not there yet; `end`, `error` and `success` follow it.
    if not isinstance(data, Mapping) or kind.endswith((".create.start", ".delete.start", ".update.start")):
        return None
    if kind.startswith(_PORT):
        return _about(data.get("node_uuid"), None)
    if not kind.startswith(_NODE):
        return None
    verb = kind.removeprefix(_NODE).split(".")[0]
    if saves_are_seen and verb not in _NOT_SAVED:
        return None
    return _about(data.get("uuid"), data.get("name"), deleted=kind == f"{_NODE}delete.end")


def _about(uuid: object, name: object, *, deleted: bool = False) -> Event | None:
    if not isinstance(uuid, str):
        return None
    return Event(uuid, name if isinstance(name, str) else None, None, deleted)
