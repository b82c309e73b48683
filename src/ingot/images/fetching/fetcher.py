"""Fetching one file after the other: until it is whole, is what it must be, and has its name.

Puts the parts together. Order: what is there already and right is used; the signature is fetched before the file, so that a
missing one is known before a gigabyte came; the file, in as many tries as patience allows; sha256; signature; the name.
Nothing blocks the event loop: hashing and writing go to threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import aiohttp

from ingot.images.fetching.answers import Body, TryLater, meaning
from ingot.images.fetching.downloading import Download, pause
from ingot.images.fetching.errors import Absent, NotVerified, Refused, Unreachable
from ingot.images.fetching.partial import Partial, claimed, there, write_whole
from ingot.images.fetching.patience import Tries
from ingot.images.fetching.requesting import Interrupted, Web, shown
from ingot.images.fetching.signatures import LARGEST_SIGNATURE, check_signature
from ingot.images.fetching.threads import in_thread
from ingot.images.fetching.wanted import Fetched, FetchSettings, Progress, Tell, Wanted

log = logging.getLogger(__name__)

_SMALL: Final = 900.0
"""Seconds that a small document may take, with everything."""


class Fetcher:
    """Fetches files under one set of rules."""

    def __init__(self, settings: FetchSettings | None = None) -> None:
        self._settings = settings or FetchSettings()
        self._web = Web(self._settings)

    async def __aenter__(self) -> Self:
        await self._web.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._web.__aexit__()

    async def fetch(self, wanted: Wanted, folder: Path, tell: Tell | None = None) -> Fetched:
        """The file in this folder, verified. `tell` hears how far it is, some times a second."""
        try:
            async with asyncio.timeout(self._settings.deadline):
                return await self._fetch(wanted, folder, tell or (lambda _: None))
        except TimeoutError as error:
            raise Unreachable(
                f"{shown(wanted.url)} took more than {self._settings.deadline:.0f} s; what came is kept, and the next try goes "
                "on there"
            ) from error

    async def read(self, url: str, *, limit: int) -> bytes:
        """A small document, whole, into memory."""
        try:
            async with asyncio.timeout(_SMALL):
                return await self._read(url, limit)
        except TimeoutError as error:
            raise Unreachable(f"{shown(url)} took more than {_SMALL:.0f} s") from error

    async def _read(self, url: str, limit: int) -> bytes:
        tries = Tries(self._settings.patience)
        while True:
            try:
                async with self._web.get(url, {}) as answer:
                    match meaning(answer.status, answer.headers, have=0, version=None, who=shown(url)):
                        case Body():
                            return await _read(answer, limit, shown(url))
                        case TryLater(why, wish):
                            pass
                        case _:
                            raise AssertionError("no range was asked for")
            except Interrupted as error:
                why, wish = str(error), None
            await pause(tries, shown(url), why, reached=0, wish=wish)

    async def _fetch(self, wanted: Wanted, folder: Path, tell: Tell) -> Fetched:
        signature = await self._signature(wanted)
        part = await claimed(folder, wanted.name, url=shown(wanted.url), sha256=wanted.sha256)
        try:
            fetched = await self._there(wanted, folder, signature)
            if fetched is None:
                fetched = await self._come(wanted, folder / wanted.name, part, signature, tell)
            else:
                await in_thread(part.discard)  # left over from before the file came to be there
            await _keep_signature(fetched.path, signature)
        finally:
            await in_thread(part.close)
        tell(Progress(name=wanted.name, done=fetched.size, total=fetched.size))
        return fetched

    async def _there(self, wanted: Wanted, folder: Path, signature: bytes | None) -> Fetched | None:
        """The file that is there already, if it is the right one."""
        found = await there(folder / wanted.name, wanted.sha256)
        if found is None:
            return None
        descriptor = await in_thread(os.open, found.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            signer = await self._signer(wanted, descriptor, signature)
        finally:
            os.close(descriptor)
        return replace(found, signer=signer)

    async def _come(
        self, wanted: Wanted, path: Path, part: Partial, signature: bytes | None, tell: Tell
    ) -> Fetched:
        await Download(web=self._web, settings=self._settings, wanted=wanted, part=part, tell=tell).run()
        try:
            signer = await self._signer(wanted, part.descriptor, signature)
        except NotVerified:
            await in_thread(part.discard)
            raise
        size, resumed = part.size, part.left_over
        await in_thread(part.finish, path)
        return Fetched(path=path, sha256=wanted.sha256, size=size, resumed=resumed, signer=signer)

    async def _signature(self, wanted: Wanted) -> bytes | None:
        if not self._settings.keys:
            return None
        if wanted.signature is None:
            missing = f"{shown(wanted.url)} has no signature: the stream metadata names none"
        else:
            try:
                return await self.read(wanted.signature, limit=LARGEST_SIGNATURE)
            except Absent as error:
                missing = f"the signature of {shown(wanted.url)} is missing ({error})"
        if not self._settings.allow_unsigned:
            raise NotVerified(
                f"{missing}, but keys are configured. Allow unsigned files explicitly, or leave the keys out; sha256 is checked "
                "in any case"
            )
        log.warning("%s; it is taken with its sha256 alone, as was allowed", missing)
        return None

    async def _signer(self, wanted: Wanted, descriptor: int, signature: bytes | None) -> str | None:
        if signature is None:
            return None
        return await check_signature(descriptor, signature, self._settings.keys, what=wanted.name)


async def _keep_signature(path: Path, signature: bytes | None) -> None:
    """Beside the file, under the name that coreos-installer and others look for."""
    if signature is not None:
        await in_thread(write_whole, path.with_name(f"{path.name}.sig"), signature)


async def _read(answer: aiohttp.ClientResponse, limit: int, who: str) -> bytes:
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > limit:
            raise Refused(f"{who} has more than {limit} bytes, which is the most that is read there")
    return bytes(content)
