"""The sender: one thread in each process of Ironic that has something to tell, and posts what accumulated.

`tell` never blocks and never raises: it puts an event into the queue and makes sure that the thread runs. One message is on
its way at a time; until it is taken the same message is sent again, with growing pauses, while new events accumulate. Only a
message that the operator says it cannot read is given up; the next one, after a pause, tells it that there is a gap. When
there is nothing to say an empty message goes out every few seconds, so the operator knows that silence means calm.

Ironic forks its worker after plugins are loaded. Threads and locks do not survive that, so the child starts with a fresh queue,
a fresh name and a thread of its own: an idle Ironic is heard too. What the worker forks is on its way to another program, and
says nothing.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ingot_ironic.message import Event, encode
from ingot_ironic.queue import Batch, EventQueue
from ingot_ironic.receiver import Address, NotTaken, NotUnderstood, Receiver

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to wait, in seconds: between heartbeats, and before trying again."""

    heartbeat: float = 10.0
    first_pause: float = 0.1
    longest_pause: float = 5.0


USUAL_PACE: Final = Pace()


class Sender:
    """Tells one receiver about events, from one thread of its own."""

    def __init__(
        self, address: Address, patches: Callable[[], Mapping[str, bool]], pace: Pace = USUAL_PACE
    ) -> None:
        self._thread: threading.Thread | None = None
        self._address = address
        self._patches = patches
        self._pace = pace
        self._in_child = False
        self._mute = False
        self._begin_afresh()
        os.register_at_fork(after_in_child=self._after_fork)

    def tell(self, event: Event) -> None:
        """Have the operator hear of this, soon. Safe to call from any thread."""
        if self._mute:
            return
        self._queue.put(event)
        self.start()

    def start(self) -> None:
        """Begin to send, when that has not happened yet in this process."""
        if self._mute:
            return
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ingot-push", daemon=True)
                thread.start()
                self._thread = thread  # only now: a start that failed is tried again at the next event

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread; what is not sent by then is not sent."""
        self._stopping.set()
        self._queue.close()
        thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def _begin_afresh(self) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._queue = EventQueue()
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._thread = None

    def _after_fork(self) -> None:
        if self._in_child:
            self._mute = True  # and the locks, which another thread may have held, are left alone
            return
        self._in_child = True
        if self._stopping.is_set():
            return
        self._begin_afresh()
        self.start()

    def _run(self) -> None:
        receiver, stopping, queue = Receiver(self._address), self._stopping, self._queue
        seq, batch = 1, Batch((), gap=False)  # the first message says hello
        pauses = self._pauses()
        while not stopping.is_set():
            body = encode(
                sender=self.name, first=seq, gap=batch.gap, patches=self._patches(), events=batch.events
            )
            understood = self._deliver(receiver, body, stopping)
            seq += len(batch.events)
            if understood:
                pauses = self._pauses()
                batch = queue.take(self._pace.heartbeat)
            else:
                queue.lose()
                stopping.wait(next(pauses))
                batch = queue.take(0)
        receiver.close()

    def _deliver(self, receiver: Receiver, body: bytes, stopping: threading.Event) -> bool:
        """Send this message until it is taken; False when it never will be, because it is not understood.

        Says so in the log when sending begins to fail, and when it works again.
        """
        failed = False
        for pause in self._pauses():
            if stopping.is_set():
                break
            trouble = _try_to_post(receiver, body)
            if trouble is None:
                if failed:
                    LOG.warning("The operator hears of node changes again.")
                break
            if isinstance(trouble, NotUnderstood):
                LOG.error(
                    "The operator cannot read what it is told: %s. It is told to list instead.", trouble
                )
                return False
            if not failed:
                LOG.warning(
                    "The operator does not hear of node changes: %s. Trying on; it lists meanwhile.", trouble
                )
            failed = True
            stopping.wait(pause)
        return True

    def _pauses(self) -> Iterator[float]:
        """How long to wait before each further try: longer and longer, and never for all senders the same."""
        pause = self._pace.first_pause
        while True:
            yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
            pause = min(pause * 2, self._pace.longest_pause)


def _try_to_post(receiver: Receiver, body: bytes) -> NotTaken | None:
    """None when the message was taken, else why it was not."""
    try:
        receiver.post(body)
    except NotTaken as trouble:
        return trouble
    except (
        Exception
    ) as error:  # the thread must outlive whatever a peer or the standard library comes up with
        receiver.close()
        return NotTaken(f"unforeseen {type(error).__name__}")
    return None
