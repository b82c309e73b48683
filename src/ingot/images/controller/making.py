"""What is made once for all hosts of an architecture: a maker of their images, and the few files that a base lacks for it.

Runs in a thread: unpacking a kernel, or writing an ISO image without its root file system, takes a moment. What does not go
together leaves the maker of before in use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ingot.images.controller.checking import Hashed
from ingot.images.controller.settings import ImageSettings
from ingot.images.ramdisk import AgentSettings, Base, BaseError, Minimal, RamdiskMaker, kernel_of, minimal_of
from ingot.images.region import Region
from ingot.images.server import Image


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What makers are made of."""

    agent: AgentSettings | None = None
    bases: Mapping[str, Base] = field(default_factory=dict)


@dataclass(slots=True)
class Made:
    """What came of them; each by architecture."""

    makers: dict[str, RamdiskMaker] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    """Why base and settings do not go together."""
    files: dict[str, tuple[Hashed, ...]] = field(default_factory=dict)
    """What was made of the base and lies beside it."""
    whole: dict[str, str] = field(default_factory=dict)
    """Why ISO images have their root file system, where they were to be made without."""

    @property
    def all_files(self) -> set[Hashed]:
        return {hashed for files in self.files.values() for hashed in files}


def make(
    ingredients: Ingredients,
    before: Made,
    broken: Collection[Path],
    *,
    settings: ImageSettings,
    rootfs_url: Callable[[Base], str],
) -> Made:
    """What is `broken` is made again, and what lies in it is not used if that cannot be."""
    made = Made()
    if ingredients.agent is None:
        return made
    for name, base in ingredients.bases.items():
        old, files = before.makers.get(name), before.files.get(name, ())
        if any(hashed.region.path in broken for hashed in files):
            old, files = None, ()
        try:
            same = old if old is not None and old.base == base else None
            kernel = same.kernel if same is not None else kernel_of(base, settings.made)
            minimal = minimal_of(base, settings.made) if settings.minimal_iso else None
            beside = _beside(base, kernel, minimal, files if same is not None else ())
            made.makers[name] = RamdiskMaker(
                base, ingredients.agent, rootfs_url=rootfs_url(base), kernel=kernel, minimal=minimal
            )
            made.files[name] = beside
            if settings.minimal_iso and minimal is None:
                made.whole[name] = f"{base.version} has no recipe for a minimal image: it is served whole."
        except BaseError as error:
            made.unfit[name] = str(error)
            if old is not None:
                made.makers[name], made.files[name] = old, files
    return made


def _beside(
    base: Base, kernel: Image, minimal: Minimal | None, known: Collection[Hashed]
) -> tuple[Hashed, ...]:
    """The files that were made of a base. Those that nobody else knows the hash of are read, if that was not done before."""
    hashes = {hashed.region: hashed for hashed in known}
    regions = [piece for piece in kernel.pieces if isinstance(piece, Region) and piece.path != base.iso.path]
    try:
        kernels = [hashes.get(region) or Hashed.read(region) for region in regions]
    except OSError as error:
        raise BaseError(f"the kernel of {base.version} cannot be read: {error.strerror}") from error
    return (*kernels, Hashed(minimal.iso, minimal.sha256)) if minimal is not None else tuple(kernels)
