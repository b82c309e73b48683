"""What images can be made of now: the bases, the settings, and what is wrong with newer ones.

Looks at both every few seconds. Something new is verified, in a thread, before it takes the place of what there is; what turns
out to be damaged does not, and the sentence about it is kept for the statuses. What is in use is read again in the background,
too: if it is not what it was, nothing more is made of it. What was refused is looked at again: somebody may have mended it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ingot.images.controller.publishing import Publisher
from ingot.images.controller.settings import ImageSettings
from ingot.images.controller.sources import Found, Source, SourceError, source_of
from ingot.images.ramdisk import (
    AgentSettings,
    Base,
    BaseError,
    RamdiskMaker,
    SettingsError,
    kernel_of,
    minimal_of,
)
from ingot.images.ramdisk.kept import forget, forget_others, made_of
from ingot.images.release import PayloadError
from ingot.images.release.checking import BackgroundCheck

log = logging.getLogger(__name__)

KERNEL: Final = "vmlinuz"
ALL: Final = ""


@dataclass(frozen=True, slots=True)
class Stock:
    """Of one moment; it does not change."""

    makers: Mapping[str, RamdiskMaker] = field(default_factory=dict)
    """By architecture."""
    troubles: Mapping[str, str] = field(default_factory=dict)
    """By architecture, or for all of them: why what is there now is not used."""

    def trouble_with(self, architecture: str) -> str:
        return "; ".join(self.troubles[name] for name in (architecture, ALL) if name in self.troubles)


@dataclass(frozen=True, slots=True)
class _Ingredients:
    """What makers are made of."""

    agent: AgentSettings | None = None
    bases: Mapping[str, Base] = field(default_factory=dict)


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
        self._used = _Ingredients()
        self._agent: AgentSettings | None = None
        self._bases: dict[str, Base] = {}
        self._wrong: dict[str, str] = {}
        """What is wrong with what is there now, by architecture or for all."""
        self._unfit: dict[str, str] = {}
        """By architecture, why base and settings do not go together."""
        self._left: dict[tuple[str, Path], float] = {}
        """When bases were last used that are not used any more, by their hash and their file."""
        self._identity = ""
        self._retry_at = 0.0
        self._make_again_at = 0.0
        self._check: BackgroundCheck | None = None

    async def known(self) -> Stock:
        """The stock, once the first look is over."""
        await self._known.wait()
        return self.stock

    async def keep(self) -> None:
        """Look until cancelled."""
        try:
            while True:
                self._look_now.clear()
                await self.look()
                self._publisher.tidy(now=_now())
                await self._tidy_files()
                with contextlib.suppress(TimeoutError):
                    pause = self._settings.look_every * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
                    await asyncio.wait_for(self._look_now.wait(), pause)
        finally:
            if self._check is not None:
                self._check.stop()

    async def look(self) -> None:
        """Take in what there is now."""
        self._wrong.pop(ALL, None)
        await self._look_at_settings()
        await self._look_at_source()
        ingredients, makers = _Ingredients(self._agent, dict(self._bases)), self.stock.makers
        # What did not go together may go by now: there may be room on the disk again.
        if ingredients != self._used or (self._unfit and _now() >= self._make_again_at):
            makers, self._unfit = await asyncio.to_thread(self._made, ingredients)
            self._make_again_at = _now() + self._settings.retry_every
            self._left |= {(base.sha256, base.iso.path): _now() for base in self._used.bases.values()}
            self._used = ingredients
            self._publish(makers)
        stock = Stock(makers, {**self._unfit, **self._wrong})
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
        if self._check is not None:
            await asyncio.to_thread(self._check.stop)
            self._check = None
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
        self._bases = {**good, **kept}
        self._wrong = {name: why for name, why in self._wrong.items() if name == ALL} | bad
        self._identity = found.identity
        self._retry_at = _now() + self._settings.retry_every if bad else 0.0
        if found.payload is not None and not bad:
            loop = asyncio.get_running_loop()

            def report(architecture: str, error: PayloadError | None) -> None:
                with contextlib.suppress(RuntimeError):  # the loop has ended before this thread
                    loop.call_soon_threadsafe(self._read_again, found, architecture, error)

            self._check = BackgroundCheck(found.payload, report, every=self._settings.verify_every)
            self._check.start()

    def _read_again(self, found: Found, architecture: str, error: PayloadError | None) -> None:
        """The background has read once more what was found."""
        base = self._bases.get(architecture)
        if error is not None and base is not None and found.has_replaced(base):
            del self._bases[architecture]
            self._publisher.distrust(base.iso.path)
            self._wrong[architecture] = f"the release payload, of which images were made, is damaged: {error}"
        elif error is not None or architecture in self._wrong:
            # Gone, and what is used has a second name; or mended.
            self._identity = ""
        else:
            return
        self._look_now.set()

    # What is made of it

    async def _tidy_files(self) -> None:
        """What was made of a base goes when nothing of it is served any more, and no pass can still be at it."""
        used = {(base.sha256, base.iso.path) for base in self._used.bases.values()}
        hashes = {sha256 for sha256, _ in used}
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

    def _made(self, ingredients: _Ingredients) -> tuple[dict[str, RamdiskMaker], dict[str, str]]:
        """Runs in a thread."""
        makers: dict[str, RamdiskMaker] = {}
        unfit: dict[str, str] = {}
        folder = self._settings.made
        if not self._known.is_set():
            bases = ingredients.bases.values()
            forget_others(folder, {base.sha256 for base in bases}, {base.iso.path for base in bases})
        for architecture, base in ingredients.bases.items():
            if ingredients.agent is None:
                break
            before = self.stock.makers.get(architecture)
            try:
                same = before is not None and before.base == base
                kernel = before.kernel if before is not None and same else kernel_of(base, folder)
                minimal = minimal_of(base, folder) if self._settings.minimal_iso else None
                if self._settings.minimal_iso and minimal is None:
                    log.warning("%s has no recipe for a minimal image; it is served whole", base.version)
                makers[architecture] = RamdiskMaker(
                    base,
                    ingredients.agent,
                    rootfs_url=self._rootfs_url(base),
                    kernel=kernel,
                    minimal=minimal,
                )
            except BaseError as error:
                unfit[architecture] = str(error)
                if before is not None:
                    makers[architecture] = before
        return makers, unfit

    def _rootfs_url(self, base: Base) -> str:
        return self._publisher.url(_owner(base), base.rootfs_image(), _rootfs_file(base))

    def kernel_url(self, maker: RamdiskMaker) -> str:
        return self._publisher.url(_owner(maker.base), maker.kernel, KERNEL)

    def _publish(self, makers: Mapping[str, RamdiskMaker]) -> None:
        """Kernels and root file systems, which all hosts share."""
        for maker in makers.values():
            base = maker.base
            self._publisher.publish(_owner(base), base.rootfs_image(), _rootfs_file(base))
            self._publisher.publish(_owner(base), maker.kernel, KERNEL)
        now = {_owner(maker.base) for maker in makers.values()}
        for maker in self.stock.makers.values():
            if _owner(maker.base) not in now:
                self._publisher.settle(_owner(maker.base), "", now=_now())

    def _note(self, stock: Stock) -> None:
        for architecture, why in stock.troubles.items():
            if self.stock.troubles.get(architecture) != why:
                log.error("images for %s: %s", architecture or "all architectures", why)
        for architecture, maker in stock.makers.items():
            before = self.stock.makers.get(architecture)
            if before is None or before.base != maker.base:
                log.info("images for %s are made of %s", architecture, maker.base.version)


def _owner(base: Base) -> str:
    return f"base {base.architecture} {base.sha256}"


def _rootfs_file(base: Base) -> str:
    """With the version in it: an initial RAM disk takes the root file system of its own build only."""
    return f"{base.version}-rootfs.img"


def _now() -> float:
    return asyncio.get_running_loop().time()
