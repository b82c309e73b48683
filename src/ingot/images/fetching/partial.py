"""The file while it is not whole: beside its place, under a name of its own, with a note on which version of what it is.

Kept when a try ends, however it ends, so that the next one goes on there; the bytes from before are hashed again with the rest.
Only one process works on it at a time. It gets its name, with a rename, when it is whole, verified and synced; until then what
stood under that name stays.

Everything here but `claimed` and `there` blocks: it is called in threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from ingot.images.fetching.errors import Unwritable
from ingot.images.fetching.threads import in_thread
from ingot.images.fetching.wanted import Fetched
from ingot.trust.files import write_public

_CHUNK: Final = 4 << 20
_NOTE_LIMIT: Final = 64 << 10
_OTHERS: Final = 0.5


class _Note(msgspec.Struct):
    """Which file the bytes are of."""

    url: str
    sha256: str
    version: str | None


class Partial:
    """An open file under construction, and the digest of what is in it."""

    def __init__(self, descriptor: int, path: Path, note: Path, url: str, sha256: str) -> None:
        self._descriptor = descriptor
        self._path = path
        self._note = note
        self._url = url
        self._sha256 = sha256
        self._digest = hashlib.sha256()
        self.size = 0
        self.left_over = 0
        """So many of the bytes are from an earlier try."""
        self.version: str | None = None

    @classmethod
    def claim(cls, folder: Path, name: str, *, url: str, sha256: str) -> Self | None:
        """Take up what an earlier try left, or begin; None while another process has it."""
        path, note = folder / f".{name}.part", folder / f".{name}.part.json"
        with _worded(path):
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            try:
                if not _lock(descriptor) or not _still_there(descriptor, path):
                    os.close(descriptor)
                    return None
                made = cls(descriptor, path, note, url, sha256)
                made._take_up()
            except BaseException:
                os.close(descriptor)
                raise
            return made

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    @property
    def descriptor(self) -> int:
        """The open file, read from its beginning by whoever gets it."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        return self._descriptor

    def begin(self, version: str | None) -> None:
        """From the first byte, of this version of the file."""
        with _worded(self._path):
            self._empty()
            self.version = version
            _write_new(self._note, msgspec.json.encode(_Note(self._url, self._sha256, version)))

    def write(self, content: bytes | bytearray) -> None:
        self._digest.update(content)
        with _worded(self._path), memoryview(content) as view:
            written = 0
            while written < len(view):
                written += os.pwrite(self._descriptor, view[written:], self.size + written)
        self.size += len(content)

    def check_room(self, total: int) -> None:
        with _worded(self._path):
            disk = os.fstatvfs(self._descriptor)
        free, needed = disk.f_bavail * disk.f_frsize, total - self.size
        if needed > free:
            raise Unwritable(
                f"{self._path.parent} has room for {free >> 20} MiB; the file needs {needed >> 20} MiB more"
            )

    def discard(self) -> None:
        """What is there is of no use: begin anew."""
        with _worded(self._path):
            self._note.unlink(missing_ok=True)
            self._empty()

    def finish(self, target: Path) -> None:
        """Give the file its name."""
        with _worded(target):
            os.fsync(self._descriptor)
            self._path.replace(target)
            self._note.unlink(missing_ok=True)
            sync_folder(target.parent)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with _worded(self._path):
            self._note.unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go; an empty file is not left lying about."""
        with contextlib.suppress(OSError):
            if not self.size and _still_there(self._descriptor, self._path):
                self.abandon()
        os.close(self._descriptor)

    def _take_up(self) -> None:
        note = _noted(self._note)
        ours = os.fstat(self._descriptor)
        usable = stat.S_ISREG(ours.st_mode) and ours.st_uid == os.geteuid() and ours.st_nlink == 1
        if not usable:
            raise Unwritable(f"{self._path} is in the way: it is not a file of our own. Remove it")
        if note is None or note.sha256 != self._sha256 or note.version is None:
            self._empty()
            return
        self.version = note.version
        while content := os.pread(self._descriptor, _CHUNK, self.size):
            self._digest.update(content)
            self.size += len(content)
        self.left_over = self.size

    def _empty(self) -> None:
        os.ftruncate(self._descriptor, 0)
        self._digest = hashlib.sha256()
        self.size = self.left_over = 0
        self.version = None


async def claimed(folder: Path, name: str, *, url: str, sha256: str) -> Partial:
    """The place where a file is put together, ours alone. When another process had it and is done, the file may be there."""
    while True:
        part = await in_thread(lambda: Partial.claim(folder, name, url=url, sha256=sha256))
        if part is not None:
            return part
        await asyncio.sleep(_OTHERS)


async def there(path: Path, sha256: str | None) -> Fetched | None:
    """A file that is there with this sha256."""
    found = await in_thread(digest_of, path)
    if found is None or found[0] != sha256:
        return None
    return Fetched(path=path, sha256=found[0], size=found[1], reused=True)


def digest_of(path: Path) -> tuple[str, int] | None:
    """sha256 and size of a file; None if it is not there."""
    digest, size = hashlib.sha256(), 0
    with _worded(path):
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None
        with file:
            while content := file.read(_CHUNK):
                digest.update(content)
                size += len(content)
    return digest.hexdigest(), size


def write_whole(path: Path, content: bytes) -> None:
    """A small file, whole or not at all, also when several write it at once."""
    with _worded(path):
        write_public(path, content)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: Path, content: bytes) -> None:
    """A file of our own in place of whatever has the name; a link that somebody put there is not followed."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_there(descriptor: int, path: Path) -> bool:
    """Whether the name still is that of the open file: whoever had it before may have finished it meanwhile."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    ours = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _noted(path: Path) -> _Note | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_NOTE_LIMIT), type=_Note)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None  # without it the bytes are worth nothing, and are fetched again


@contextlib.contextmanager
def _worded(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = (
            ". Make room, or choose another folder" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        )
        raise Unwritable(f"{error.filename or path}: {error.strerror or error}{advice}") from error
