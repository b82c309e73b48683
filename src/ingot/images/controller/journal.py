"""What is served, noted on disk: a restart with other settings, or another payload, takes nothing from whoever reads it.

A file for each image, named after it: who owns it, what it lies in with the hash of that, and the few kilobytes that are its
own. It is written before anybody is told of the image, so that a killed process loses nothing. An image that is not advertised
any more has the moment at which it goes in the name of its file, so that retiring it is renaming it. Writing to the disk for
good follows within seconds and keeps nobody waiting: until then only a power cut could take the note away, and what is advertised
would be made again after it, as long as the settings are the same. A file that is not whole is recognised, and not used.

Secrets of users are in there: only the owner may look into the folder, and a file goes with its image. Whether what an image lies
in is still what it was is for others to find out.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from ingot.images.controller.checking import Hashed
from ingot.images.region import Region
from ingot.images.server import Image
from ingot.images.server.messages import FilePart, Put
from ingot.images.server.names import shown

log = logging.getLogger(__name__)

_MARK: Final = b"ingot image 1\n"
_DIGEST: Final = 32
_Result = TypeVar("_Result")


class _Ground(msgspec.Struct, frozen=True, array_like=True):
    part: FilePart
    sha256: str


class _Note(msgspec.Struct, frozen=True, array_like=True):
    owner: str
    grounds: list[_Ground]
    image: Put


_ENCODER: Final = msgspec.msgpack.Encoder()
_NOTES: Final = msgspec.msgpack.Decoder(_Note)


@dataclass(frozen=True, slots=True)
class Kept:
    """An image that was served before."""

    name: str
    owner: str
    image: Image
    grounds: tuple[Hashed, ...]
    """What it lies in."""
    left: float | None
    """Seconds until it goes; None where it was advertised."""


class _Wanted(NamedTuple):
    note: _Note | None
    """What the file says; None where that stays as it is."""
    until: int | None
    """In milliseconds of the clock on the wall."""


class Journal:
    """Changes are taken at once and written by one thread, in their order, when `written` is asked for."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._wanted: dict[str, _Wanted | None] = {}
        """By name; None: no file."""
        self._hand = ThreadPoolExecutor(1, "image-journal")
        # The rest is the thread's own.
        self._files: dict[str, Path] = {}
        self._unsettled: set[str] = set()
        """Names of files that the disk may not have yet."""
        self.trouble: str = ""
        """Why something is not noted; "" when all is."""

    def note(self, name: str, owner: str, image: Image, grounds: Iterable[Hashed]) -> None:
        """This image is advertised, or will be."""
        told = [_Ground(_part(ground.region), ground.sha256) for ground in grounds]
        self._wanted[name] = _Wanted(_Note(owner, told, Put.of(name, image)), None)

    def advertise(self, name: str) -> None:
        """It is, again; what was noted stays."""
        self._wanted[name] = _Wanted(self._note_waiting(name), None)

    def retire(self, name: str, left: float) -> None:
        """It goes in so many seconds."""
        until = int((self._clock() + left) * 1000)
        self._wanted[name] = _Wanted(self._note_waiting(name), until)

    def drop(self, name: str) -> None:
        self._wanted[name] = None

    async def written(self) -> None:
        """Until all that was said so far is in the folder. A disk that is full keeps nobody from being served."""
        batch, self._wanted = self._wanted, {}
        for name, wanted in (await self._by_hand(self._write, batch)).items():
            newer = self._wanted.setdefault(name, wanted)
            if newer is not None and newer.note is None and wanted is not None:
                self._wanted[name] = newer._replace(note=wanted.note)

    async def settled(self) -> None:
        """Until all that was written so far is on the disk for good."""
        files = await self._by_hand(self._take_unsettled)
        await asyncio.to_thread(_settle, self._folder, files)

    async def kept(self) -> list[Kept]:
        """What is in the folder. What is of no use there is removed."""
        return await self._by_hand(lambda: list(self._read()))

    def close(self) -> None:
        """Write what is left to be written, and end."""
        self._hand.submit(self._write, self._wanted)
        self._hand.shutdown()

    def _note_waiting(self, name: str) -> _Note | None:
        waiting = self._wanted.get(name)
        return waiting.note if waiting is not None else None

    async def _by_hand(self, work: Callable[..., _Result], *given: Any) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._hand, work, *given)

    # What the thread does

    def _write(self, batch: dict[str, _Wanted | None]) -> dict[str, _Wanted | None]:
        """What could not be written, to be tried again."""
        failed: dict[str, _Wanted | None] = {}
        trouble = ""
        for name, wanted in batch.items():
            try:
                self._bring_about(name, wanted)
            except OSError as error:
                failed[name] = wanted
                trouble = (
                    f"{self._folder} cannot be written ({error.strerror}): after a restart of the image process with other "
                    "settings, what servers run from now is not served any more"
                )
        if trouble and trouble != self.trouble:
            log.error("%s", trouble)
        if batch:
            self.trouble = trouble
        return failed

    def _bring_about(self, name: str, wanted: _Wanted | None) -> None:
        before = self._files.get(name)
        if wanted is None:
            if before is not None:
                before.unlink(missing_ok=True)
                del self._files[name]
            return
        after = self._folder / (name if wanted.until is None else f"{name}.{wanted.until}")
        if wanted.note is not None:
            self._put(after, _packed(wanted.note))
            if before not in (None, after):
                before.unlink(missing_ok=True)
        elif before is None:
            return  # it was never noted
        elif before != after:
            before.replace(after)
        self._files[name] = after
        self._unsettled.add(name)

    def _put(self, path: Path, content: bytes) -> None:
        """Beside its place and moved there: a process that is killed leaves the old file or the new one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        beside = path.with_name(f".{path.name}")
        try:
            beside.unlink(missing_ok=True)
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            beside.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise

    def _take_unsettled(self) -> list[Path]:
        names, self._unsettled = self._unsettled, set()
        return [self._files[name] for name in names if name in self._files]

    def _read(self) -> Iterator[Kept]:
        try:
            files = sorted(self._folder.iterdir())
        except FileNotFoundError:
            files = []
        except OSError as error:
            log.error("what was served before cannot be read from %s: %s", self._folder, error.strerror)
            files = []
        for path in files:
            found = self._read_one(path)
            if found is None or found.name in self._files:
                with contextlib.suppress(OSError):
                    path.unlink()
            else:
                self._files[found.name] = path
                yield found

    def _read_one(self, path: Path) -> Kept | None:
        name, _, until = path.name.partition(".")
        if not name:
            return None  # half written
        try:
            note = _unpacked(path.read_bytes())
            left = int(until) / 1000 - self._clock() if until else None
            if note.image.name != name:
                raise ValueError("it was noted under another name")
            grounds = tuple(Hashed(_region(ground.part), ground.sha256) for ground in note.grounds)
            return Kept(name, note.owner, note.image.image, grounds, left)
        except (OSError, ValueError) as error:  # msgspec's are ValueErrors, too
            log.warning("the note of the image %s in %s is of no use: %s", shown(name), self._folder, error)
            return None


def _packed(note: _Note) -> bytes:
    body = _ENCODER.encode(note)
    return _MARK + hashlib.sha256(body).digest() + body


def _unpacked(content: bytes) -> _Note:
    body = content[len(_MARK) + _DIGEST :]
    if content != _MARK + hashlib.sha256(body).digest() + body:
        raise ValueError("it is not whole, or of another version")
    return _NOTES.decode(body)


def _part(region: Region) -> FilePart:
    return FilePart(str(region.path), region.offset, region.length)


def _region(part: FilePart) -> Region:
    return Region(Path(part.path), part.offset, part.length)


def _settle(folder: Path, files: Iterable[Path]) -> None:
    for path in files:
        with contextlib.suppress(OSError):  # it may be gone, or have another name, by now
            _sync(path)
    with contextlib.suppress(OSError):
        _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
