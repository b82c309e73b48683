"""What images can be made of now: the bases, the settings, and what is wrong with newer ones.

Looks at both every few seconds. Something new is verified, in a thread, before it takes the place of what there is; what turns
out to be damaged does not, and the sentence about it is kept for the statuses. What is in use, or still served, is read again in
the background, too: if it is not what it was, nothing more is made of it, and what was made of a base is made again. What was
refused is looked at again: somebody may have mended it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ingot.images.controller.checking import BackgroundCheck, Hashed
from ingot.images.controller.making import Ingredients, Made, make
from ingot.images.controller.publishing import Publisher
from ingot.images.controller.settings import ImageSettings
from ingot.images.controller.sources import Found, Source, SourceError, source_of
from ingot.images.controller.statuses import MINIMAL, NO_RECIPE, UNVERIFIED, VERIFIED, Remark
from ingot.images.ramdisk import (
    AgentSettings,
    Base,
    BaseError,
    RamdiskMaker,
    SettingsError,
)
from ingot.images.ramdisk.kept import forget, forget_others, made_of

log = logging.getLogger(__name__)

KERNEL: Final = "vmlinuz"
ALL: Final = ""
_BASE: Final = "base "
"""Begins the name of an owner that is a base, and no host."""


@dataclass(frozen=True, slots=True)
class Stock:
    """Of one moment; it does not change."""

    makers: Mapping[str, RamdiskMaker] = field(default_factory=dict)
    """By architecture."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """By architecture, or for all of them: why what is there now is not used."""
    remarks: Mapping[str, tuple[Remark, ...]] = field(default_factory=dict)
    """By architecture: what else should be known of what is used."""

    def trouble_with(self, architecture: str) -> str:
        return "; ".join(self.troubles[name] for name in (architecture, ALL) if name in self.troubles)


class StockKeeper:
    """Keeps the stock. `changed` is called on the event loop whenever it is another one."""

    def __init__(self, settings: ImageSettings, publisher: Publisher, *, changed: Callable[[], None]) -> None:
        self._settings = settings
        self._source: Source = source_of(settings)
        self._publisher = publisher
        self._changed = changed
        self._known = asyncio.Event()
        self._look_now = asyncio.Event()
        self.stock = Stock()
        self._used = Ingredients()
        self._agent: AgentSettings | None = None
        self._bases: dict[str, Base] = {}
        self._wrong: dict[str, str] = {}
        """What is wrong with what is there now, by architecture or for all."""
        self._doubts: dict[str, str] = {}
        """By architecture, why nobody can tell whether its base is what its publisher made."""
        self._made = Made()
        self._broken: set[Path] = set()
        """Files that were made of a base, and have to be made again."""
        self._left: dict[tuple[str, Path], float] = {}
        """When bases were last used that are not used any more, by their hash and their file."""
        self._identity = ""
        self._retry_at = 0.0
        self._make_again_at = 0.0
        self._in_use: tuple[Hashed, ...] = ()
        """Everything that is served or made of; replaced as a whole, for the thread that reads it again."""

    async def known(self) -> Stock:
        """The stock, once the first look is over."""
        await self._known.wait()
        return self.stock

    async def keep(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()

        def report(hashed: Hashed, problem: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended before this thread
                loop.call_soon_threadsafe(self._read_again, hashed, problem)

        check = BackgroundCheck(lambda: self._in_use, report, every=self._settings.verify_every)
        check.start()
        try:
            while True:
                self._look_now.clear()
                await self.look()
                self._publisher.tidy(now=_now())
                await self._tidy_files()
                await self._publisher.noted()
                self._in_use = tuple(self._publisher.grounds() | self._grounds())
                with contextlib.suppress(TimeoutError):
                    pause = self._settings.look_every * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
                    await asyncio.wait_for(self._look_now.wait(), pause)
        finally:
            check.stop()

    async def look(self) -> None:
        """Take in what there is now."""
        self._wrong.pop(ALL, None)
        await self._look_at_settings()
        await self._look_at_source()
        if not self._known.is_set():
            await self._take_up()
        ingredients = Ingredients(self._agent, dict(self._bases))
        # What did not go together may go by now: there may be room on the disk again.
        again = self._made.unfit and _now() >= self._make_again_at
        if ingredients != self._used or self._broken or again:
            await self._make(ingredients)
        stock = Stock(self._made.makers, {**self._made.unfit, **self._wrong}, self._remarks())
        if stock != self.stock or not self._known.is_set():
            self._note(stock)
            self.stock = stock
            self._known.set()
            self._changed()

    # What there is

    async def _look_at_settings(self) -> None:
        try:
            self._agent = await asyncio.to_thread(self._settings.agent)
        except SettingsError as error:
            # What ramdisks were told before still holds.
            self._wrong[ALL] = str(error)

    async def _look_at_source(self) -> None:
        try:
            found = await asyncio.to_thread(self._source.look)
        except SourceError as error:
            self._wrong[ALL] = str(error)
            self._identity = ""
        else:
            retry = self._retry_at and _now() >= self._retry_at
            if found.identity != self._identity or retry:
                await self._load(found)
        await self._drop_what_is_gone()

    async def _drop_what_is_gone(self) -> None:
        """What is used may lie elsewhere than what was found now, or under a name that somebody took away."""
        for architecture, base in list(self._bases.items()):
            if not await asyncio.to_thread(base.is_there):
                self._bases.pop(architecture, None)
                # Whoever writes over a file cuts it short first: what lies in it may be anything by the next look.
                self._publisher.distrust(base.iso.path)
                self._identity = ""
                if ALL not in self._wrong:
                    self._wrong.setdefault(architecture, f"{base.iso.path} is gone")

    async def _load(self, found: Found) -> None:
        loaded = await asyncio.to_thread(found.load)
        bad = {name: str(base) for name, base in loaded.items() if isinstance(base, BaseError)}
        good = {name: base for name, base in loaded.items() if isinstance(base, Base)}
        # What lies in the very file that is bad now, or is another one, is not the old image any more.
        same = {base.sha256 for base in good.values()}
        lost = [base for base in self._bases.values() if base.sha256 not in same and found.has_replaced(base)]
        kept = {name: base for name, base in self._bases.items() if name in bad and base not in lost}
        for base in lost:
            self._publisher.distrust(base.iso.path)
        for base in good.values():
            self._publisher.trust(base.iso.path)
            self._publisher.founded(_ground(base))
        self._bases = {**good, **kept}
        self._wrong = {name: why for name, why in self._wrong.items() if name == ALL} | bad
        self._doubts = {name: why for name, why in self._doubts.items() if name in kept}
        self._doubts |= await asyncio.to_thread(
            lambda: {name: why for name, base in good.items() if (why := found.doubt(base))}
        )
        self._identity = found.identity
        self._retry_at = _now() + self._settings.retry_every if bad else 0.0

    def _read_again(self, hashed: Hashed, problem: str) -> None:
        """The background has read once more what was in use then."""
        path = hashed.region.path
        used = [name for name, base in self._bases.items() if _ground(base) == hashed]
        if not problem or (hashed not in self._publisher.grounds() and not used):
            return
        log.error("what images are served from is damaged: %s", problem)
        if hashed in self._made.all_files:
            self._broken.add(path)
        else:
            self._publisher.distrust(path)
        for architecture in used:
            del self._bases[architecture]
            newer = self._wrong.get(architecture)
            told = f"what images were made of is damaged: {problem}"
            self._wrong[architecture] = f"{told}; {newer}" if newer else told
            self._retry_at = _now() + self._settings.retry_every
        self._look_now.set()

    def _grounds(self) -> set[Hashed]:
        """What images are made of, whether there are any or not."""
        return {_ground(base) for base in self._bases.values()} | self._made.all_files

    def _remarks(self) -> dict[str, tuple[Remark, ...]]:
        doubts = [(name, Remark(VERIFIED, UNVERIFIED, why)) for name, why in self._doubts.items()]
        whole = [(name, Remark(MINIMAL, NO_RECIPE, why)) for name, why in self._made.whole.items()]
        return {
            architecture: tuple(remark for name, remark in (*doubts, *whole) if name == architecture)
            for architecture, _ in (*doubts, *whole)
        }

    # What is made of it

    async def _take_up(self) -> None:
        """Serve what was served before a restart, and let go of what nothing of that lies in."""
        verified = [_ground(base) for base in self._bases.values()]
        needed = await self._publisher.take_up(verified, now=_now())
        kept = {path for path in needed if path.parent == self._settings.made}
        # None of it is waited for, as nobody makes anything of it any more.
        self._left |= {(_hash_in(path), path): -math.inf for path in kept}
        hashes = {base.sha256 for base in self._bases.values()} | {_hash_in(path) for path in kept}
        files = {base.iso.path for base in self._bases.values()} | kept
        await asyncio.to_thread(forget_others, self._settings.made, hashes, files)

    async def _tidy_files(self) -> None:
        """What was made of a base goes when nothing of it is served any more, and no pass can still be at it."""
        used = {(base.sha256, base.iso.path) for base in self._used.bases.values()}
        hashes = {sha256 for sha256, _ in used}
        for hashed in self._grounds():
            used.add((_hash_in(hashed.region.path), hashed.region.path))
        for key in used:
            self._left.pop(key, None)
        long_left = [key for key, left in self._left.items() if _now() - left > self._settings.linger]
        for sha256, path in long_left:
            files = await asyncio.to_thread(made_of, sha256, self._settings.made)
            if sha256 in hashes:  # the same image is used, out of another file
                files = [file for file in files if file == path]
            if not any(self._publisher.reads(file) for file in files):
                await asyncio.to_thread(forget, files)
                del self._left[sha256, path]

    async def _make(self, ingredients: Ingredients) -> None:
        broken, self._broken = self._broken, set()
        made = await asyncio.to_thread(
            make, ingredients, self._made, broken, settings=self._settings, rootfs_url=self._rootfs_url
        )
        self._make_again_at = _now() + self._settings.retry_every
        self._left |= {(base.sha256, base.iso.path): _now() for base in self._used.bases.values()}
        self._made, self._used = made, ingredients
        for hashed in made.all_files:
            self._publisher.founded(hashed)
            self._publisher.trust(hashed.region.path)
        for path in broken:
            if any(hashed.region.path == path for hashed in made.all_files):
                self._publisher.made_again(path)
            else:
                self._publisher.distrust(path)
        self._publish()

    def _rootfs_url(self, base: Base) -> str:
        return self._publisher.url(_owner(base), base.rootfs_image(), _rootfs_file(base))

    def kernel_url(self, maker: RamdiskMaker) -> str:
        return self._publisher.url(_owner(maker.base), maker.kernel, KERNEL)

    def _publish(self) -> None:
        """Kernels and root file systems, which all hosts share."""
        for maker in self._made.makers.values():
            base = maker.base
            self._publisher.publish(_owner(base), base.rootfs_image(), _rootfs_file(base))
            self._publisher.publish(_owner(base), maker.kernel, KERNEL)
        now = {_owner(maker.base) for maker in self._made.makers.values()}
        for owner in self._publisher.owners:
            if owner.startswith(_BASE) and owner not in now:
                self._publisher.settle(owner, "", now=_now())

    def _note(self, stock: Stock) -> None:
        for architecture, why in stock.troubles.items():
            if self.stock.troubles.get(architecture) != why:
                log.error("images for %s: %s", architecture or "all architectures", why)
        for architecture, remarks in stock.remarks.items():
            for remark in remarks:
                if remark not in self.stock.remarks.get(architecture, ()):
                    log.warning("images for %s: %s", architecture, remark.message)
        for architecture, maker in stock.makers.items():
            before = self.stock.makers.get(architecture)
            if before is None or before.base != maker.base:
                log.info("images for %s are made of %s", architecture, maker.base.version)


def _owner(base: Base) -> str:
    return f"{_BASE}{base.architecture} {base.sha256}"


def _ground(base: Base) -> Hashed:
    return Hashed(base.iso, base.sha256)


def _hash_in(path: Path) -> str:
    """The hash of the base that a file was made of, which its name begins with."""
    return path.name.partition(".")[0]


def _rootfs_file(base: Base) -> str:
    """With the version in it: an initial RAM disk takes the root file system of its own build only."""
    return f"{base.version}-rootfs.img"


def _now() -> float:
    return asyncio.get_running_loop().time()
