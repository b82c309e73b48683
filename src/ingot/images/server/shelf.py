"""The images that can be asked for, by name. In memory: whoever puts them there knows how to make them again.

Putting and dropping are for one writer, the controller; reading is for the threads that serve, without a lock: they see the
image of before or of after. A request that has begun keeps the image that it found. Who follows a shelf hears of everything that
happens to it: that is how the processes that serve have the same one.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ingot.images.server.names import NAME
from ingot.images.server.pieces import Image


class Follower(Protocol):
    def put(self, name: str, image: Image) -> None: ...

    def drop(self, name: str) -> None: ...

    def complete(self) -> None: ...

    async def has_heard(self) -> None:
        """Returns when everything that was said so far is known to whoever serves."""


class Shelf:
    """Empty at first, and not complete."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}
        self._followers: list[Follower] = []
        self.is_complete = False
        """Whether an image that is not there will not come either."""

    def __len__(self) -> int:
        return len(self._images)

    def put(self, name: str, image: Image) -> None:
        """From now on, `name` is this image, also if it was another one before."""
        if not NAME.fullmatch(name):
            raise ValueError("that is no name of `Names.name`, and images must not be found by guessing")
        self._images[name] = image
        for follower in self._followers:
            follower.put(name, image)

    def drop(self, name: str) -> None:
        """From now on, nothing has this name. It need not have been there."""
        if self._images.pop(name, None) is not None:
            for follower in self._followers:
                follower.drop(name)

    def complete(self) -> None:
        """From now on, what is not there is told apart from what is not there yet."""
        if not self.is_complete:
            self.is_complete = True
            for follower in self._followers:
                follower.complete()

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    def items(self) -> list[tuple[str, Image]]:
        return list(self._images.items())

    def follow(self, follower: Follower) -> None:
        self._followers.append(follower)

    def leave(self, follower: Follower) -> None:
        self._followers.remove(follower)

    async def everywhere(self) -> None:
        """Until whoever serves has all that was put so far."""
        await asyncio.gather(*(follower.has_heard() for follower in self._followers))
