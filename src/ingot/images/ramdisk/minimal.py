"""The base without its root file system, for BMCs that read slowly: a tenth of the bytes, and the server fetches the rest itself.

It is made once and kept beside the state; what is found there from before is used when it has the digest that the published
image names for it, and otherwise made anew. Blocks for as long as reading and writing some hundred megabytes takes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.coreos import LiveIso, Recipe, recipe_of
from ingot.images.ramdisk.base import Base
from ingot.images.ramdisk.errors import BaseError
from ingot.images.ramdisk.kept import keep
from ingot.images.region import Region

_SUFFIX: Final = ".minimal.iso"
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Minimal:
    """A minimal image, as its recipe has it: before it is told where the root file system is."""

    iso: Region
    sha256: str


def minimal_of(base: Base, folder: Path) -> Minimal | None:
    """The minimal image of a base; None where its publisher made none possible. Raises `BaseError`."""
    path = folder / f"{base.sha256}{_SUFFIX}"
    try:
        with base.iso.open() as file:
            live = LiveIso(file)
            try:
                recipe = recipe_of(live)
            except UnsupportedFormat:
                return None
            if not _is_there(path, recipe):
                keep(path, recipe.chunks(live.iso))
        return Minimal(Region.whole(path), recipe.digest.hex())
    except FormatError as error:
        raise BaseError(f"no minimal image can be made of {base.iso.path}: {error}") from error
    except OSError as error:
        raise BaseError(f"the minimal image {path} cannot be kept: {error.strerror}") from error


def _is_there(path: Path, recipe: Recipe) -> bool:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        return False
    return digest.digest() == recipe.digest
