"""Chores: what has to be looked at again, one after the other, and never given up.

Whoever decides from what is stored can be asked any number of times. So a chore that is refused (somebody was faster, the
disk is full) is done again a little later, and one that meets an error nobody foresaw is logged, with the place and
without values, and done again much later: one object that cannot be dealt with must not stop the others, let alone the
server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from ingot.embedded.server import unforeseen
from ingot.embedded.server.errors import Refused

log = logging.getLogger(__name__)

_RETRY_AFTER: Final = 1.0
_RETRY_UNFORESEEN_AFTER: Final = 60.0

Chore = TypeVar("Chore", bound=Hashable)


class Chores(Generic[Chore]):
    """A list of things to do, each on it once. `what` is what they are called in the log."""

    def __init__(self, what: str, do: Callable[[Chore], Awaitable[None]]) -> None:
        self._what = what
        self._do = do
        # A dictionary keeps the order and holds each once.
        self._todo: dict[Chore, None] = {}
        self._later: dict[Chore, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def add(self, chore: Chore) -> None:
        """To be done soon, also when it was to be done later."""
        if (timer := self._later.pop(chore, None)) is not None:
            timer.cancel()
        self._todo[chore] = None
        self._wake.set()

    def add_later(self, chore: Chore, after: float = _RETRY_AFTER) -> None:
        """To be done after so many seconds, unless it is to be done sooner anyway."""
        if chore not in self._todo and chore not in self._later:
            self._later[chore] = asyncio.get_running_loop().call_later(after, self.add, chore)

    async def run(self) -> None:
        """Do them, until cancelled."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._todo:
                    # Most end without any waiting, and after a start there are many: others must have their turn.
                    await asyncio.sleep(0)
                    chore = next(iter(self._todo))
                    del self._todo[chore]
                    await self._done(chore)
        finally:
            for timer in self._later.values():
                timer.cancel()

    async def _done(self, chore: Chore) -> None:
        try:
            await self._do(chore)
        except Refused as refusal:
            # What is stored then says what is left to do.
            log.info("%s of %s waits: %s", self._what, chore, refusal.message)
            self.add_later(chore)
        except Exception as error:  # the edge of a task that must go on
            unforeseen.tell(log, f"{self._what} of {chore}", error)
            self.add_later(chore, _RETRY_UNFORESEEN_AFTER)
