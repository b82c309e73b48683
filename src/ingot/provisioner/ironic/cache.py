"""What we know of Ironic's nodes, and how new that knowledge is.

Pure memory: no I/O, no clock but a counter. Knowledge comes from three sides, in any order: push events, answers to our own
calls, and the bulk list. The rules:

- A read that began before a push event or another newer answer does not undo it (`learned`): each read notes with `moment()`
  when it began, each entry when it was last known to be true.
- A push event applies the fields it carries. One that carries none, or names a node we do not know, only says "look again":
  the entry is `doubted`, and nobody answers from it until it was read afresh, or an event says that Ironic is at work on it:
  what we asked for has begun then, and its end is an event too.
- A node that was removed stays removed for every read that began before.
- A complete list removes what it does not hold, unless that became known after the list began.

Events of one sender come in order, so a late event can take an entry back for a moment, never for good. That is why nothing
is ever destroyed on the word of this cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from ingot.provisioner.ironic.model import Json, Node
from ingot.provisioner.ironic.states import is_busy

Moment = int


@dataclass(slots=True)
class _Entry:
    node: Node
    true_at: Moment
    doubted: bool = False


class NodeCache:
    """Nodes by uuid and by name."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._uuids: dict[str, str] = {}
        self._removed: dict[str, Moment] = {}
        self._heard_of: dict[str, Moment] = {}
        self._now: Moment = 0
        self._last_list: Moment = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Node]:
        return (entry.node for entry in self._entries.values())

    def moment(self) -> Moment:
        """The time on our counter. Take it before a read begins, give it to `learned` with the answer."""
        self._now += 1
        return self._now

    def get(self, uuid: str) -> Node | None:
        """What is known of the node, doubted or not."""
        entry = self._entries.get(uuid)
        return entry.node if entry else None

    def by_name(self, name: str) -> Node | None:
        return self.get(self._uuids.get(name, ""))

    def is_doubted(self, uuid: str) -> bool:
        entry = self._entries.get(uuid)
        return entry is None or entry.doubted

    def uuid_of(self, ident: str) -> str:
        """Of a uuid or a name; "" for what is not known."""
        return ident if ident in self._entries else self._uuids.get(ident, "")

    def is_as_read(self, uuid: str, began: Moment) -> bool:
        """Whether nothing was heard of the node, or asked of it, since the read that began then."""
        entry = self._entries.get(uuid)
        return entry is not None and not entry.doubted and entry.true_at == began

    def learned(self, node: Node, began: Moment) -> bool:
        """The answer to a read or write of ours. Whether it changed what was known."""
        if self._removed.get(node.uuid, -1) > began:
            return False
        entry = self._entries.get(node.uuid)
        if entry is not None and entry.true_at > began:
            return False
        changed = entry is None or entry.node != node
        self._put(node, began)
        # An event told of it before we knew it, and this read may be older than that event. The next one may be, too.
        if self._heard_of.get(node.uuid, -1) > began:
            self._entries[node.uuid].doubted = True
        else:
            self._heard_of.pop(node.uuid, None)
        return changed

    def pushed(self, uuid: str, name: str | None, fields: dict[str, Json]) -> Node | None:
        """A push event. The node as it is known now, None if it is not known."""
        entry = self._entries.get(uuid)
        if entry is None:
            self._heard_of[uuid] = self.moment()
            return None
        node = _with_fields(entry.node, name, fields)
        doubted = node is None or not fields or (entry.doubted and not in_flight(node))
        self._put(node or entry.node, self.moment())
        self._entries[uuid].doubted = doubted
        return self._entries[uuid].node

    def removed(self, uuid: str) -> Node | None:
        """The node is gone. What was known of it."""
        self._removed[uuid] = self.moment()
        entry = self._entries.pop(uuid, None)
        if entry is None:
            return None
        if self._uuids.get(entry.node.name or "") == uuid:
            del self._uuids[entry.node.name or ""]
        return entry.node

    def listed(self, uuids: set[str], began: Moment) -> list[Node]:
        """A complete list that began then held these nodes. Those that it proves to be gone."""
        gone = [e.node for uuid, e in self._entries.items() if uuid not in uuids and e.true_at <= began]
        for node in gone:
            self.removed(node.uuid)
        # Reads do not live as long as the time between two lists, so what was removed before the last one needs no guard.
        self._removed = {uuid: when for uuid, when in self._removed.items() if when > self._last_list}
        self._heard_of = {uuid: when for uuid, when in self._heard_of.items() if when > self._last_list}
        self._last_list = began
        return gone

    def doubt(self, uuid: str) -> None:
        """Something was asked of the node: what is known of it is no longer how it is, nor what a read that has begun shows."""
        if (entry := self._entries.get(uuid)) is not None:
            entry.doubted = True
            entry.true_at = self.moment()

    def doubt_all(self) -> None:
        """Something was missed: nothing is answered from here until it has been read again."""
        for entry in self._entries.values():
            entry.doubted = True

    def _put(self, node: Node, true_at: Moment) -> None:
        before = self._entries.get(node.uuid)
        if (
            before is not None
            and before.node.name != node.name
            and self._uuids.get(before.node.name or "") == node.uuid
        ):
            del self._uuids[before.node.name or ""]
        self._entries[node.uuid] = _Entry(node, true_at)
        if node.name:
            self._uuids[node.name] = node.uuid


def in_flight(node: Node) -> bool:
    """Whether Ironic is doing something with the node that ends by itself."""
    return is_busy(node.provision_state) or node.target_power_state is not None


def _with_fields(node: Node, name: str | None, fields: dict[str, Json]) -> Node | None:
    """`node` with these fields changed; None where a field is not what it should be."""
    known = {key: value for key, value in fields.items() if key in Node.__struct_fields__ and key != "uuid"}
    record = msgspec.to_builtins(node) | known | ({"name": name} if name else {})
    try:
        return msgspec.convert(record, Node)
    except msgspec.ValidationError:
        return None
