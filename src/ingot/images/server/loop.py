"""A thread that holds many conversations: it goes on with each when its connection is ready, and ends those that take too long.

Connections come from another thread, with `take`. When there are as many as may be, the one that has been idle for longest makes
room; when none is idle, the newcomer has to go. A conversation that fails ends alone.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections import deque
from typing import Final

from ingot.images.server.access import AccessLog
from ingot.images.server.conversation import Conversation, House
from ingot.images.server.wire import READ, Wire

log = logging.getLogger(__name__)

_LOOK_EVERY: Final = 1.0
"""How often deadlines are looked at: what they are for takes longer."""


class Loop:
    """Begins with `start`. `stop` gives answers that are on their way some time; `join` waits for the end."""

    def __init__(self, house: House, most: int) -> None:
        self._house = house
        self._most = most
        self._access = AccessLog()
        self._newcomers: deque[tuple[Wire, str]] = deque()
        self._conversations: dict[int, Conversation] = {}
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._bell, READ)
        self._stop_at: float | None = None
        self._thread = threading.Thread(target=self._run, name="images", daemon=True)

    @property
    def busy(self) -> int:
        """How many connections there are."""
        return len(self._conversations) + len(self._newcomers)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def take(self, wire: Wire, peer: str) -> None:
        self._newcomers.append((wire, peer))
        os.eventfd_write(self._bell, 1)

    def stop(self, grace: float) -> None:
        self._stop_at = time.monotonic() + grace
        os.eventfd_write(self._bell, 1)

    def _run(self) -> None:
        look_at = 0.0
        while self._stop_at is None or self._goes_on(self._stop_at):
            for handle, _ in self._epoll.poll(_LOOK_EVERY):
                if handle == self._bell:
                    self._welcome()
                elif conversation := self._conversations.get(handle):  # if it did not just make room
                    self._step(handle, conversation)
            if (now := time.monotonic()) >= look_at:
                self._look(now)
                look_at = now + _LOOK_EVERY
        self._clear()

    def _goes_on(self, stop_at: float) -> bool:
        busy = any(not conversation.idle for conversation in self._conversations.values())
        return busy and time.monotonic() < stop_at

    def _welcome(self) -> None:
        os.eventfd_read(self._bell)
        while self._newcomers:
            wire, peer = self._newcomers.popleft()
            if len(self._conversations) >= self._most and not self._make_room():
                log.warning(
                    "%s is turned away: there are %d connections, none of them idle", peer, self._most
                )
                wire.close()
                continue
            handle = wire.fileno()
            conversation = Conversation(wire, peer, self._house, self._access)
            self._conversations[handle] = conversation
            self._epoll.register(handle, 0)
            self._step(handle, conversation)

    def _make_room(self) -> bool:
        idle = [(item.deadline, handle) for handle, item in self._conversations.items() if item.idle]
        if idle:
            self._end(min(idle)[1])
        return bool(idle)

    def _step(self, handle: int, conversation: Conversation) -> None:
        try:
            waits_for = next(conversation.steps)
        except (StopIteration, OSError):  # it is over, or the other side went away
            self._end(handle)
        except Exception:
            # The edge of a request: whatever it is, the others go on.
            log.exception("a conversation about an image failed")
            self._end(handle)
        else:
            if waits_for != conversation.waits_for:
                self._epoll.modify(handle, waits_for)
                conversation.waits_for = waits_for

    def _look(self, now: float) -> None:
        for handle, conversation in list(self._conversations.items()):
            if conversation.deadline < now:
                self._end(handle)
        self._access.tell()

    def _end(self, handle: int) -> None:
        conversation = self._conversations.pop(handle)
        self._epoll.unregister(handle)
        conversation.close()

    def _clear(self) -> None:
        for handle in list(self._conversations):
            self._end(handle)
        for wire, _ in self._newcomers:
            wire.close()
        self._access.tell(all_of_it=True)
        self._epoll.close()
        os.close(self._bell)
