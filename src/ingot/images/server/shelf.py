"""The images that can be asked for, by name. In memory: whoever puts them there knows how to make them again.

Putting and dropping are for one writer, the controller; reading is for the threads that serve, without a lock: they see the
image of before or of after. A request that has begun keeps the image that it found.
"""

from __future__ import annotations

from ingot.images.server.names import NAME
from ingot.images.server.pieces import Image


class Shelf:
    """Empty at first."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    def __len__(self) -> int:
        return len(self._images)

    def put(self, name: str, image: Image) -> None:
        """From now on, `name` is this image, also if it was another one before."""
        if not NAME.fullmatch(name):
            raise ValueError("that is no name of `Names.name`, and images must not be found by guessing")
        self._images[name] = image

    def drop(self, name: str) -> None:
        """From now on, nothing has this name. It need not have been there."""
        self._images.pop(name, None)

    def get(self, name: str) -> Image | None:
        return self._images.get(name)
