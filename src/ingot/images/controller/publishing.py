"""What is served, for whom, and for how long: the shelf with a memory of who needs what.

A name says what the image is for and what is in it, so a URL never changes its content, and the same image has the same URL after
a restart. An image that is no longer advertised stays on the shelf for a while: a server that was booted from virtual media
reads from it for as long as it runs. One whose owner is gone goes at once, and so does one that lies in a file that is not what
it was: better no bytes than wrong ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ingot.images.region import Region
from ingot.images.server import Image, Names, Shelf


@dataclass(slots=True)
class _Owned:
    current: set[str] = field(default_factory=set)
    retired: dict[str, float] = field(default_factory=dict)
    """When each of them goes."""


class Publisher:
    """One writer's view of a shelf. `linger` is in seconds of whatever clock its callers tell the time by."""

    def __init__(self, shelf: Shelf, names: Names, public_url: str, *, linger: float) -> None:
        self._shelf = shelf
        self._names = names
        self._public_url = public_url.rstrip("/")
        self._linger = linger
        self._owners: dict[str, _Owned] = {}
        self._distrusted: set[Path] = set()
        self._spoilt: set[str] = set()
        """Names of images that lay in a file before it became another one."""

    def url(self, owner: str, image: Image, file: str) -> str:
        """Where this image would be; the name of the file at the end is for people and for BMCs that look at it."""
        return f"{self._public_url}/images/{self._name(owner, image)}/{file}"

    def publish(self, owner: str, image: Image, file: str) -> str:
        """Serve it from now on. What the owner had before is served as well, until `settle`."""
        name = self._name(owner, image)
        self._shelf.put(name, image)
        owned = self._owners.setdefault(owner, _Owned())
        owned.current.add(name)
        owned.retired.pop(name, None)
        self._spoilt.discard(name)
        return self.url(owner, image, file)

    async def served(self) -> None:
        """Until everything that was published so far can be had, whoever answers."""
        await self._shelf.everywhere()

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

    def _files(self, name: str) -> set[Path]:
        image = self._shelf.get(name)
        pieces = image.pieces if image is not None else ()
        return {piece.path for piece in pieces if isinstance(piece, Region)}

    def _name(self, owner: str, image: Image) -> str:
        return self._names.name(owner, image.etag)
