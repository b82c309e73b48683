"""The events that wait to be sent: bounded, one for each node, oldest dropped first.

Putting never blocks for longer than a dictionary takes. A node that changes faster than messages leave has one event, the sum
of its changes. When more nodes wait than there is room for, the oldest are dropped and the next batch says that there is a
gap, so the operator lists instead of believing that it heard everything.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ingot_ironic.message import Event


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes into one message; `gap` when something before it was dropped."""

    events: tuple[Event, ...]
    gap: bool


class EventQueue:
    """Events by node, in the order in which the nodes first changed."""

    def __init__(self, room: int = 10_000, batch_size: int = 500) -> None:
        self._room = room
        self._batch_size = batch_size
        self._waiting: dict[str, Event] = {}
        self._gap = False
        self._closed = False
        self._changed = threading.Condition()

    def put(self, event: Event) -> None:
        with self._changed:
            earlier = self._waiting.get(event.uuid)
            if earlier is None and len(self._waiting) >= self._room:
                del self._waiting[next(iter(self._waiting))]
                self._gap = True
            self._waiting[event.uuid] = event.after(earlier) if earlier else event
            self._changed.notify()

    def take(self, timeout: float) -> Batch:
        """What accumulated; an empty batch when nothing did for this long."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, timeout)
            chosen = list(self._waiting)[: self._batch_size]
            batch = Batch(tuple(self._waiting.pop(uuid) for uuid in chosen), self._gap)
            self._gap = False
            return batch

    def lose(self) -> None:
        """What was taken last did not reach the operator and never will: the next batch says that there is a gap."""
        with self._changed:
            self._gap = True

    def close(self) -> None:
        """Let whoever waits in `take` go."""
        with self._changed:
            self._closed = True
            self._changed.notify()
