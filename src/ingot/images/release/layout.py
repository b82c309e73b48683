"""A folder with an image, as an OCI image layout: blobs named by their hash, and one small file that says which image it is.

    oci-layout              the version of the layout
    index.json              one entry: the image, or the index over one for each architecture
    previous.json           the index.json before this one
    blobs/sha256/…          everything else, each file under the hash of its bytes
    blobs/sha256/.…         what is being written; it gets its name when its hash is right

Blobs are only ever added, and `point_to` renames a new index.json over the old one as the last step: whoever reads the folder
meanwhile sees the old image or the new one, whole. What the image before needs stays until a third one comes, so that
nobody who still serves it loses it, and the way back copies nothing. A kill at any moment leaves the folder as it was, and what
was fetched by then is not fetched again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ingot.formats import FormatError
from ingot.formats.oci import (
    Descriptor,
    Digest,
    Index,
    Manifest,
    MediaType,
    decode_document,
    digest_of,
    encode,
)
from ingot.formats.oci.documents import decode_index
from ingot.images.fetching.partial import sync_folder
from ingot.images.region import Region
from ingot.images.release.errors import PayloadDamaged, PayloadError
from ingot.trust.files import alone_in, write_public

VERSION: Final = b'{"imageLayoutVersion":"1.0.0"}'
LARGEST_DOCUMENT: Final = 4 << 20
"""Registries take no larger manifests."""
CHUNK: Final = 1 << 20
_LAYOUT: Final = "oci-layout"
_INDEX: Final = "index.json"
_PREVIOUS: Final = "previous.json"
_PUBLIC: Final = 0o644


class Layout:
    """A layout in a folder. What adds to it or changes it is done within `writing`, which also makes it."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._blobs: Final = folder / "blobs" / "sha256"
        self._index: Final = folder / _INDEX
        self._previous: Final = folder / _PREVIOUS

    def path(self, digest: Digest) -> Path:
        return self._blobs / digest.removeprefix("sha256:")

    def has(self, descriptor: Descriptor) -> bool:
        """Whether the blob is there. It got its name when its hash was right; whether it still is, reading tells."""
        try:
            return self.path(descriptor.digest).stat().st_size == descriptor.size
        except FileNotFoundError:
            return False

    def has_whole(self, descriptor: Descriptor) -> bool:
        """Whether the blob is there and what its hash says, for which all of it is read."""
        if not self.has(descriptor):
            return False
        with self.path(descriptor.digest).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == descriptor.digest

    def region(self, descriptor: Descriptor) -> Region:
        """Where a blob lies."""
        path = self.path(descriptor.digest)
        try:
            size = path.stat().st_size
        except OSError as error:
            raise PayloadError(
                f"{self.folder} lacks the blob {descriptor.digest} ({error.strerror})"
            ) from error
        if size != descriptor.size:
            raise PayloadDamaged(f"{path} has {size} bytes, not {descriptor.size}. {MEND}")
        return Region(path, 0, size)

    def root(self) -> Descriptor:
        """What the layout holds: an image, or an index over several."""
        return self._only(self._index)

    def document(self, descriptor: Descriptor) -> Index | Manifest:
        content = self.read(descriptor)
        try:
            return decode_document(content, descriptor.media_type)
        except FormatError as error:
            raise PayloadError(f"{self.path(descriptor.digest)}: {error}") from error

    def read(self, descriptor: Descriptor) -> bytes:
        """A small blob, verified."""
        region = self.region(descriptor)
        if region.length > LARGEST_DOCUMENT:
            raise PayloadError(f"{region.path} has {region.length} bytes, which no document of an image has")
        content = region.path.read_bytes()
        if (found := digest_of(content)) != descriptor.digest:
            raise PayloadDamaged(f"{region.path} was changed: its hash is {found}. {MEND}")
        return content

    def reachable(self, root: Descriptor) -> Iterator[Descriptor]:
        """The blobs that an image consists of, itself first; documents that are not there lead nowhere."""
        seen: set[Digest] = set()
        waiting = [root]
        while waiting:
            descriptor = waiting.pop()
            if descriptor.digest in seen:
                continue
            seen.add(descriptor.digest)
            yield descriptor
            if descriptor.media_type in (*MediaType.INDEXES, *MediaType.MANIFESTS) and self.has(descriptor):
                match self.document(descriptor):
                    case Index(manifests=children):
                        waiting += reversed(children)
                    case Manifest(config=config, layers=layers):
                        waiting += [*reversed(layers), config]

    def add(self, content: bytes, media_type: str) -> Descriptor:
        """A small blob."""
        descriptor = Descriptor(media_type=media_type, digest=digest_of(content), size=len(content))
        if not self.has_whole(descriptor):
            write_public(self.path(descriptor.digest), content)
        return descriptor

    def add_chunks(self, chunks: Iterable[bytes | memoryview], media_type: str) -> Descriptor:
        """A blob of any size, which gets its name when all of it is written."""
        hasher, size = hashlib.sha256(), 0
        handle, temporary = tempfile.mkstemp(dir=self._blobs, prefix=".new-")
        try:
            with writing_to(self.folder), os.fdopen(handle, "wb") as file:
                for chunk in chunks:
                    hasher.update(chunk)
                    file.write(chunk)
                    size += len(chunk)
                digest = Digest(f"sha256:{hasher.hexdigest()}")
                settle(file)
            Path(temporary).rename(self.path(digest))
        finally:
            Path(temporary).unlink(missing_ok=True)
        return Descriptor(media_type=media_type, digest=digest, size=size)

    def partial(self, digest: Digest) -> Path:
        """Where a blob is gathered that comes from elsewhere; it stays when the way is interrupted."""
        return self._blobs / f".part-{digest.removeprefix('sha256:')}"

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Nobody else adds or removes anything meanwhile; who comes second waits."""
        self._prepare()
        with alone_in(self.folder):
            yield

    @contextlib.contextmanager
    def writing_at_once(self) -> Iterator[bool]:
        """`writing`, for those who cannot wait in one place: False while somebody else writes."""
        self._prepare()
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(handle)

    def point_to(self, root: Descriptor) -> None:
        """Make this the image of the layout, and let go of what neither it nor the one before needs. Within `writing`."""
        index = encode(Index(manifests=(root,)))
        sync_folder(self._blobs)
        with contextlib.suppress(FileNotFoundError):
            before = self._index.read_bytes()
            if before != index:
                write_public(self._previous, before)
        write_public(self._index, index)
        sync_folder(self.folder)
        self._sweep()

    def _sweep(self) -> None:
        needed = {descriptor.digest for descriptor in self.reachable(self.root())}
        with contextlib.suppress(PayloadError, FileNotFoundError):
            needed |= {descriptor.digest for descriptor in self.reachable(self._only(self._previous))}
        # Also what an earlier run left half written.
        for blob in self._blobs.iterdir():
            if f"sha256:{blob.name}" not in needed:
                blob.unlink()
        for name in (_LAYOUT, _INDEX, _PREVIOUS):
            for path in self.folder.glob(f".{name}.*"):
                path.unlink()

    def _only(self, path: Path) -> Descriptor:
        try:
            index = decode_index(path.read_bytes())
        except FileNotFoundError as error:
            raise PayloadError(f"{self.folder} is no release payload: it has no {path.name}") from error
        except FormatError as error:
            raise PayloadError(f"{path}: {error}") from error
        if len(index.manifests) != 1:
            raise PayloadError(
                f"{path} names {len(index.manifests)} images; a release payload is exactly one. Copy it into a folder of "
                "its own with `ingot release mirror`"
            )
        return index.manifests[0]

    def _prepare(self) -> None:
        self._check_ours()
        if not (self.folder / _LAYOUT).exists():
            self._blobs.mkdir(parents=True, exist_ok=True)
            write_public(self.folder / _LAYOUT, VERSION)
        self._blobs.mkdir(exist_ok=True)

    def _check_ours(self) -> None:
        """What the image and the one before do not need goes: nothing of anybody else may be in the folder."""
        try:
            ours = len(decode_index(self._index.read_bytes()).manifests) <= 1
        except FileNotFoundError:
            return
        except FormatError:
            ours = (self.folder / _LAYOUT).exists()  # damaged; it is written anew
        if not ours:
            raise PayloadError(
                f"{self._index} is not that of a release payload, which is exactly one image. What is there would be lost; "
                "choose a folder of its own for the payload"
            )


MEND: Final = "Fetch the payload again (`ingot release pull` or `mirror`): what is whole is not fetched twice"


@contextlib.contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Where there is no room, the system does not say."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.filename = str(path)
        raise


def settle(file: BinaryIO) -> None:
    """All of it is on disk, for everybody to read."""
    file.flush()
    os.fchmod(file.fileno(), _PUBLIC)
    os.fsync(file.fileno())
