"""What worlds for laws are made of: the embedded API in a thread of its own, and an event loop whose clock can leap."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from ingot.embedded.server import serve


@contextmanager
def api_in_a_thread(state: Path) -> Iterator[Path]:
    """The embedded API, and the kubeconfig for it, while the block lasts."""
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, Path]] = Future()

    async def run() -> None:
        over = asyncio.Event()
        async with serve(state) as api:
            ready.set_result((asyncio.get_running_loop(), over, api.kubeconfig))
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="embedded API")
    thread.start()
    loop, over, kubeconfig = ready.result(60)
    try:
        yield kubeconfig
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time goes on as usual, and can be moved on at once."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.leapt = 0.0
        super().__init__(self._selector)

    def time(self) -> float:
        return super().time() + self.leapt

    async def until_connections_are_closed(self) -> None:
        """Whoever closes a connection does not wait for the other side to agree."""
        for _ in range(200):
            # What is left is the loop's own way to be woken.
            if len(self._selector.get_map()) <= 1:
                return
            await asyncio.sleep(0.005)
