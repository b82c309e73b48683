"""The way of one file from a server into its partial file: try after try, until it is whole and has the right sha256.

Owns what happens on the line. Bytes of two versions, or an end that was none, get a second chance from the beginning; a file
that came at one go and is wrong is wrong.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Final

import aiohttp

from ingot.images.fetching.answers import Answer, Body, StartOver, TryLater, meaning, range_headers
from ingot.images.fetching.behind import WriteBehind
from ingot.images.fetching.errors import NotVerified, Refused, Unreachable
from ingot.images.fetching.partial import Partial
from ingot.images.fetching.patience import Tries
from ingot.images.fetching.requesting import Interrupted, Web, shown
from ingot.images.fetching.threads import in_thread
from ingot.images.fetching.wanted import FetchSettings, Progress, Tell, Wanted

log = logging.getLogger(__name__)

_TELLING: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file on its way."""

    web: Web
    settings: FetchSettings
    wanted: Wanted
    part: Partial
    tell: Tell

    async def run(self) -> None:
        """Until all of it is there, with the right sha256."""
        part = self.part
        tries, second_chance = Tries(self.settings.patience), True
        while True:
            try:
                ended = await self._attempt()
            except Interrupted as error:
                ended = TryLater(str(error))
            match ended:
                case TryLater(why, wish):
                    await pause(tries, self._where, why, reached=part.size, wish=wish)
                    continue
                case StartOver():
                    await in_thread(part.discard)
                    continue
            if part.digest == self.wanted.sha256:
                return
            found, size = part.digest, part.size
            await in_thread(part.discard)
            at_one_go = isinstance(ended, Body) and ended.offset == 0 and ended.total is not None
            if at_one_go or not second_chance:
                raise NotVerified(
                    f"{self._where}: what came has the sha256 {found} ({size} bytes); {self.wanted.sha256} is expected. It "
                    "is not used: the file was replaced or damaged, or the metadata is older or newer than the file"
                )
            # Pieces of two versions, or an end that was none: once more from the beginning.
            second_chance = False

    async def _attempt(self) -> Answer:
        part = self.part
        headers = range_headers(part.size, part.version)
        async with self.web.get(self.wanted.url, headers) as answer:
            decided = meaning(
                answer.status, answer.headers, have=part.size, version=part.version, who=self._where
            )
            if isinstance(decided, Body):
                try:
                    await self._receive(answer, decided)
                except Refused:
                    await in_thread(part.discard)
                    raise
            return decided

    async def _receive(self, answer: aiohttp.ClientResponse, body: Body) -> None:
        part = self.part
        if body.offset == 0:
            await in_thread(part.begin, body.version)
        if body.total is not None:
            self._check_size(body.total, body)
            await in_thread(part.check_room, body.total)
        come, told = body.offset, 0.0
        async with WriteBehind(part) as behind:
            async for chunk in answer.content.iter_any():
                come += len(chunk)
                self._check_size(come, body)
                await behind.put(chunk)
                if (now := time.monotonic()) - told >= _TELLING:
                    told = now
                    self.tell(Progress(name=self.wanted.name, done=come, total=body.total))
        if body.total is not None and part.size != body.total:
            raise Interrupted(f"only {part.size} of {body.total} bytes came")

    def _check_size(self, size: int, body: Body) -> None:
        if size > self.settings.limit:
            raise Refused(
                f"{self._where} has more than {self.settings.limit} bytes, which is the most that is fetched"
            )
        if body.total is not None and size > body.total:
            raise Refused(f"{self._where} sends more than the {body.total} bytes it announced")

    @property
    def _where(self) -> str:
        return shown(self.wanted.url)


async def pause(tries: Tries, where: str, why: str, *, reached: int, wish: float | None) -> None:
    """Wait for better weather; `Unreachable` when it was waited for long enough."""
    seconds = tries.pause(reached, wish)
    if seconds is None:
        kept = f". {reached} bytes are kept; the next try goes on there" if reached else ""
        raise Unreachable(f"{where} cannot be fetched: {why}, {tries.failures} times in a row{kept}")
    log.info("%s: %s; the next try is in %.1f s", where, why, seconds)
    await asyncio.sleep(seconds)
