"""Where bases come from: a folder with a release payload, or ISO files. Both are verified before anything is made of them.

A look is cheap and gives something to compare: as long as it is the same, nothing has to be read again. Loading reads all bytes
and takes seconds, in a thread. One architecture that is damaged does not keep the others from being used.

What is loaded is used under a second name of our own, where the file system allows that: whatever happens to the first one, a
file that is replaced, or a payload that is cleaned up, what is being read stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ingot.formats import FormatError
from ingot.images.controller.settings import ImageSettings
from ingot.images.ramdisk import Base, BaseError
from ingot.images.region import Region
from ingot.images.release import Payload, PayloadError
from ingot.images.release.building import STREAM_FILE, StreamFile

ARCHITECTURES: Final = ("x86_64", "aarch64", "ppc64le", "s390x")
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class SourceError(Exception):
    """There is nothing that could be loaded; the sentence says why."""


class Found(Protocol):
    """What a look found."""

    @property
    def identity(self) -> str:
        """Changes exactly when something else would be loaded."""

    def has_replaced(self, base: Base) -> bool:
        """Whether what is there now for its architecture lies in the very file that this base lay in."""

    def load(self) -> dict[str, Base | BaseError]:
        """Verify everything; by architecture, what can be used and what is wrong with the rest. Blocks for seconds."""

    def doubt(self, base: Base) -> str:
        """Why nobody can tell whether what was loaded is what its publisher made; "" where it is."""


class Source(Protocol):
    def look(self) -> Found:
        """What is there now. Blocks for milliseconds; raises `SourceError`."""


def source_of(settings: ImageSettings) -> Source:
    if settings.payload is not None:
        return PayloadSource(settings.payload, settings.made)
    assert settings.iso is not None, "the settings have one of the two"
    return FileSource(settings.iso, settings.shared_folder, settings.architecture, settings.made)


@dataclass(frozen=True, slots=True)
class PayloadSource:
    """A release payload. The folder may be a link, which is switched to another payload, or may get another one itself."""

    folder: Path
    names: Path
    """The folder for second names."""

    def look(self) -> PayloadFound:
        try:
            # Resolved: images of the payload before a switch must not be read from the one after it.
            payload = Payload.open(self.folder.resolve(strict=True))
            seen = tuple(_seen(image.iso.path) for image in payload.images.values())
            return PayloadFound(payload, seen, self.names)
        except FileNotFoundError as error:
            raise SourceError(
                f"the release payload {self.folder} is not there. Put it there with `ingot release mirror`, or correct "
                "INGOT_RELEASE_PAYLOAD"
            ) from error
        except OSError as error:
            raise SourceError(
                f"the release payload {self.folder} cannot be read: {error.strerror}"
            ) from error
        except PayloadError as error:
            raise SourceError(f"the release payload cannot be used: {error}") from error


@dataclass(frozen=True, slots=True)
class PayloadFound:
    payload: Payload
    seen: tuple[SeenFile | None, ...]
    """The files of its images: one that was written over, or mended, is read again at once."""
    names: Path

    @property
    def identity(self) -> str:
        return f"{self.payload.digest} in {self.payload.folder}: {self.seen}"

    def has_replaced(self, base: Base) -> bool:
        image = self.payload.images.get(base.architecture)
        return image is not None and _is_same(base, image.iso.path)

    def load(self) -> dict[str, Base | BaseError]:
        return {architecture: self._loaded(architecture) for architecture in self.payload.images}

    def doubt(self, base: Base) -> str:
        return ""

    def _loaded(self, architecture: str) -> Base | BaseError:
        image = self.payload.images[architecture]
        try:
            self.payload.verify(architecture)
            # The same image may lie in another blob, at another place: that is another file.
            path = _second_name(image.iso.path, self.names / f"{image.sha256}.{image.iso.path.name}.blob")
            iso = replace(image.iso, path=path)
            return Base.read(iso, architecture=architecture, sha256=image.sha256)
        except PayloadError as error:
            return BaseError(f"the release payload is damaged: {error}")
        except OSError as error:
            return BaseError(f"the release payload in {self.payload.folder} cannot be read: {error.strerror}")
        except BaseError as error:
            return error


@dataclass(frozen=True, slots=True)
class FileSource:
    """ISO files: one for the machines of the usual architecture, and others beside it under names with theirs."""

    iso: Path
    shared_folder: Path | None
    architecture: str
    names: Path
    """The folder for second names."""

    def look(self) -> FilesFound:
        files = dict(self._files())
        if not files:
            raise SourceError(
                f"there is no ISO image {self.iso}, nor one with the name of an architecture in it. Put it there, or correct "
                "DEPLOY_ISO"
            )
        return FilesFound(files, self.names)

    def _files(self) -> Iterator[tuple[str, SeenFile]]:
        folder = self.shared_folder or self.iso.parent
        stem, suffix = self.iso.stem, self.iso.suffix
        for architecture in ARCHITECTURES:
            named = [folder / f"{stem}{mark}{architecture}{suffix}" for mark in "_."]
            usual = [self.iso] if architecture == self.architecture else []
            for path in (*named, *usual):
                if (seen := _seen(path)) is not None:
                    yield architecture, seen
                    break


@dataclass(frozen=True, slots=True)
class SeenFile:
    path: Path
    size: int
    changed: int
    number: int
    """Of its inode."""
    beside: tuple[int, ...] = ()
    """When what says its hash was written."""


@dataclass(frozen=True, slots=True)
class FilesFound:
    files: dict[str, SeenFile]
    names: Path

    @property
    def identity(self) -> str:
        return repr(sorted(self.files.items()))

    def has_replaced(self, base: Base) -> bool:
        seen = self.files.get(base.architecture)
        return seen is not None and _is_same(base, seen.path)

    def load(self) -> dict[str, Base | BaseError]:
        return {name: _loaded(name, seen, self.names) for name, seen in self.files.items()}

    def doubt(self, base: Base) -> str:
        path = self.files[base.architecture].path
        try:
            if _published_hash(path, base.sha256) is not None:
                return ""
        except BaseError:
            pass  # it has just become so: the next look finds another file beside it
        return (
            f"{path} is unverified: there is neither {path.name}.sha256 beside it nor a {STREAM_FILE} that knows it. Its hash is "
            f"{base.sha256}; compare it with the published one, and write that into {path.name}.sha256."
        )


def _seen(path: Path) -> SeenFile | None:
    try:
        found = path.resolve(strict=True)
        stat = found.stat()
    except OSError:
        return None
    return SeenFile(found, stat.st_size, stat.st_mtime_ns, stat.st_ino, tuple(_written(found)))


def _written(path: Path) -> Iterator[int]:
    for beside in _hash_files(path):
        try:
            yield beside.stat().st_mtime_ns
        except OSError:
            yield 0


def _hash_files(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.sha256"), path.with_name(STREAM_FILE)


def _loaded(architecture: str, seen: SeenFile, names: Path) -> Base | BaseError:
    try:
        sha256 = _hash_of(seen.path)
        published = _published_hash(seen.path, sha256)
        if published is not None and published.sha256 != sha256:
            return BaseError(
                f"{seen.path} is damaged: its hash is {sha256}, and {published.source} says {published.sha256}. Copy it again"
            )
        path = _second_name(seen.path, names / f"{sha256}.iso")
        return Base.read(Region.whole(path), architecture=architecture, sha256=sha256)
    except OSError as error:
        return BaseError(f"{error.filename or seen.path} cannot be read: {error.strerror}")
    except BaseError as error:
        return error


class _Published(NamedTuple):
    sha256: str
    source: str


def _published_hash(path: Path, sha256: str) -> _Published | None:
    """What the hash of a file should be, which has this one; None where nothing beside it says. Raises `BaseError`."""
    stamp, metadata = _hash_files(path)
    if stamp.exists():
        noted = stamp.read_text("ascii", "replace").split()
        if not noted or not _SHA256.fullmatch(noted[0].lower()):
            raise BaseError(
                f"{stamp} does not begin with a sha256, and {path.name} is not used without its hash"
            )
        return _Published(noted[0].lower(), stamp.name)
    if not metadata.exists():
        return None
    try:
        isos = list(StreamFile(metadata.read_bytes()).isos())
    except FormatError as error:
        raise BaseError(f"{metadata}: {error}") from error
    fitting = [iso for iso in isos if sha256 == iso.sha256] or [
        iso for iso in isos if iso.file_name == path.name
    ]
    return _Published(fitting[0].sha256, metadata.name) if fitting else None


def _is_same(base: Base, path: Path) -> bool:
    try:
        return base.iso.path.samefile(path)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _second_name(path: Path, name: Path) -> Path:
    beside = name.with_name(f".{name.name}")
    try:
        name.parent.mkdir(parents=True, exist_ok=True)
        if not (name.exists() and name.samefile(path)):
            beside.unlink(missing_ok=True)
            beside.hardlink_to(path.resolve())  # not a second name of a link
            beside.replace(name)
    except OSError:
        return path  # on another file system, or not ours to link
    return name


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
