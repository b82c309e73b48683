"""What is served, for whom, and for how long: the shelf with a memory of who needs what.

A name says what the image is for and what is in it, so a URL never changes its content, and the same image has the same URL after
a restart. An image that is no longer advertised stays on the shelf for a while: a server that was booted from virtual media
reads from it for as long as it runs. One whose owner is gone goes at once, and so does one that lies in a file that is not what
it was: better no bytes than wrong ones. All of it is noted (`journal`), so that it holds beyond a restart, whatever that brings.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ingot.images.controller.checking import Hashed
from ingot.images.controller.journal import Journal, Kept
from ingot.images.region import Region
from ingot.images.server import Image, Names, Shelf

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Owned:
    current: set[str] = field(default_factory=set)
    retired: dict[str, float] = field(default_factory=dict)
    """When each of them goes."""


class Publisher:
    """One writer's view of a shelf. `linger` is in seconds of whatever clock its callers tell the time by."""

    def __init__(
        self, shelf: Shelf, names: Names, public_url: str, *, linger: float, journal: Journal
    ) -> None:
        self._shelf = shelf
        self._names = names
        self._journal = journal
        self._public_url = public_url.rstrip("/")
        self._linger = linger
        self._owners: dict[str, _Owned] = {}
        self._grounds: dict[Path, Hashed] = {}
        self._distrusted: set[Path] = set()
        self._spoilt: set[str] = set()
        """Names of images that lay in a file before it became another one."""

    def url(self, owner: str, image: Image, file: str) -> str:
        """Where this image would be; the name of the file at the end is for people and for BMCs that look at it."""
        return f"{self._public_url}/images/{self._name(owner, image)}/{file}"

    def founded(self, hashed: Hashed) -> None:
        """These bytes were verified: images may lie in them."""
        self._grounds[hashed.region.path] = hashed

    def publish(self, owner: str, image: Image, file: str) -> str:
        """Serve it from now on. What the owner had before is served as well, until `settle`."""
        name = self._name(owner, image)
        before = self._shelf.get(name)
        self._shelf.put(name, image)
        owned = self._owners.setdefault(owner, _Owned())
        if before != image:
            self._note(name, owner, image)
        elif name not in owned.current:
            self._journal.advertise(name)
        owned.current.add(name)
        owned.retired.pop(name, None)
        self._spoilt.discard(name)
        return self.url(owner, image, file)

    async def served(self) -> None:
        """Until everything that was published so far can be had, whoever answers, and is noted."""
        await asyncio.gather(self._shelf.everywhere(), self._journal.written())

    async def noted(self) -> None:
        """Until everything that happened so far is noted for good."""
        await self._journal.written()
        await self._journal.settled()

    @property
    def trouble(self) -> str:
        """Why a restart would lose something; "" when it would not."""
        return self._journal.trouble

    async def take_up(self, verified: Collection[Hashed], *, now: float) -> set[Path]:
        """Serve what was served before a restart, for as long as it was meant to be, and where it still lies in what it lay in:
        all of that is read, but for what was `verified` just now. Returns the files."""
        kept = [each for each in await self._journal.kept() if self._is_due(each)]
        grounds = {ground for each in kept for ground in each.grounds} - set(verified)
        problems = {ground: await asyncio.to_thread(ground.problem) for ground in grounds}
        for problem in filter(None, problems.values()):
            log.error("what was served before the restart is not served any more: %s", problem)
        for each in kept:
            if any(problems.get(ground) for ground in each.grounds):
                self._journal.drop(each.name)
            else:
                self._put_back(each, now)
        return {ground.region.path for each in kept for ground in each.grounds if not problems.get(ground)}

    def _is_due(self, kept: Kept) -> bool:
        if kept.left is None or kept.left > 0:
            return True
        self._journal.drop(kept.name)
        return False

    def _put_back(self, kept: Kept, now: float) -> None:
        for ground in kept.grounds:
            self.founded(ground)
        self._shelf.put(kept.name, kept.image)
        owned = self._owners.setdefault(kept.owner, _Owned())
        if kept.left is None:
            # The API may still say so. Whoever looks after the owner settles it.
            owned.current.add(kept.name)
        else:
            # A clock that was set back must not keep it longer than anything is kept.
            owned.retired[kept.name] = now + min(kept.left, self._linger)

    @property
    def owners(self) -> list[str]:
        return list(self._owners)

    def grounds(self) -> set[Hashed]:
        """What everything that is served lies in, as far as it is trusted."""
        paths = set().union(*(self._files(name) for name in self._all_names())) - self._distrusted
        return {self._grounds[path] for path in paths if path in self._grounds}

    def complete(self) -> None:
        """Everything that is advertised was published: what is asked for and is not there, will not be there soon."""
        self._shelf.complete()

    def settle(self, owner: str, advertised: str, *, now: float) -> None:
        """Only this URL of the owner is advertised any more, and the API knows. "" for none."""
        owned = self._owners.get(owner)
        if owned is None:
            return
        for name in [name for name in owned.current if f"/{name}/" not in advertised]:
            owned.current.discard(name)
            owned.retired[name] = now + self._linger
            self._journal.retire(name, self._linger)

    def forget(self, owner: str) -> None:
        """Nobody needs the owner's images: they go at once."""
        owned = self._owners.pop(owner, None)
        if owned is not None:
            for name in (*owned.current, *owned.retired):
                self._drop(name)

    def tidy(self, *, now: float) -> None:
        """Take away what has lingered long enough, and what nobody is told of and is not what it was."""
        for owner, owned in list(self._owners.items()):
            for name in [name for name, end in owned.retired.items() if end <= now or self._is_spoilt(name)]:
                del owned.retired[name]
                self._drop(name)
            if not owned.current and not owned.retired:
                del self._owners[owner]

    def distrust(self, path: Path) -> None:
        """This file is not what it was: what lies in it goes as soon as nobody is told of it any more."""
        self._distrusted.add(path)

    def trust(self, path: Path) -> None:
        """It was read, and what is made of it from now on is what it should be."""
        if path in self._distrusted:
            self._distrusted.discard(path)
            self._spoilt.update(name for name in self._all_names() if path in self._files(name))

    def made_again(self, path: Path) -> None:
        """Another file with the same bytes is there now: who has the one before open turns to it."""
        for name, image in self._shelf.items():
            if path in self._files(name):
                self._shelf.put(name, image)

    def serves(self, owner: str, url: str) -> bool:
        """Whether what the owner was told of is there, and is what it was."""
        owned = self._owners.get(owner, _Owned())
        names = [name for name in (*owned.current, *owned.retired) if f"/{name}/" in url]
        return any(not self._is_spoilt(name) for name in names)

    def reads(self, path: Path) -> bool:
        """Whether something that is served lies in this file."""
        return any(path in self._files(name) for name in self._all_names())

    def _all_names(self) -> Iterator[str]:
        for owned in self._owners.values():
            yield from (*owned.current, *owned.retired)

    def _is_spoilt(self, name: str) -> bool:
        if name in self._spoilt:
            return True
        return bool(self._distrusted) and not self._distrusted.isdisjoint(self._files(name))

    def _drop(self, name: str) -> None:
        self._spoilt.discard(name)
        self._shelf.drop(name)
        self._journal.drop(name)

    def _note(self, name: str, owner: str, image: Image) -> None:
        files = self._files(name)
        # Nobody could tell later whether bytes without a hash are still what they were.
        if files <= self._grounds.keys():
            self._journal.note(name, owner, image, [self._grounds[path] for path in files])
        else:
            self._journal.drop(name)

    def _files(self, name: str) -> set[Path]:
        image = self._shelf.get(name)
        pieces = image.pieces if image is not None else ()
        return {piece.path for piece in pieces if isinstance(piece, Region)}

    def _name(self, owner: str, image: Image) -> str:
        return self._names.name(owner, image.etag)
