"""Where an image can be: a folder, or a repository of a registry. Both have the same face, so `mirroring` knows neither.

What leaves a place is compared with its digest by who takes it; what a place says it has, it has verified: a folder by
reading it, a registry when it was written.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ingot.formats.oci import Descriptor, Digest, MediaType, Reference, parse_reference
from ingot.images.fetching.threads import in_thread
from ingot.images.release.errors import PayloadDamaged, PayloadError
from ingot.images.release.layout import CHUNK, Layout, settle, writing_to
from ingot.images.release.registry import RegistrySession, Repository

_OTHERS: Final = 0.2
"""Seconds until it is tried again, where somebody else writes to a folder."""

Told = Callable[[int], None]
"""How many bytes of a blob are there by now."""


class Source(Protocol):
    async def root(self) -> Descriptor:
        """The image, or the index over several."""

    async def document(self, descriptor: Descriptor) -> bytes:
        """A document, verified."""

    def blob(self, descriptor: Descriptor, offset: int = 0) -> AsyncGenerator[bytes]:
        """The bytes of a blob from an offset on, not verified."""


class Target(Protocol):
    def receiving(self) -> AbstractAsyncContextManager[None]:
        """While something is written."""

    async def has_blob(self, descriptor: Descriptor) -> bool: ...
    async def put_blob(self, descriptor: Descriptor, source: Source, tell: Told) -> None:
        """Take a blob from a source, verified."""

    async def put_document(self, content: bytes, descriptor: Descriptor) -> None: ...
    async def finish(self, content: bytes, root: Descriptor) -> None:
        """Everything is there: from now on this is the image."""


class Place(Source, Target, Protocol):
    """Both."""


class FolderPlace:
    """An OCI layout."""

    def __init__(self, folder: Path) -> None:
        self.layout: Final = Layout(folder)

    def __str__(self) -> str:
        return str(self.layout.folder)

    async def root(self) -> Descriptor:
        return await in_thread(self.layout.root)

    async def document(self, descriptor: Descriptor) -> bytes:
        return await in_thread(self.layout.read, descriptor)

    async def blob(self, descriptor: Descriptor, offset: int = 0) -> AsyncGenerator[bytes]:
        region = self.layout.region(descriptor)
        with region.open() as file:
            file.seek(offset)
            while chunk := await in_thread(file.read, CHUNK):
                yield chunk

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        while True:
            with self.layout.writing_at_once() as ours:
                if ours:
                    yield
                    return
            await asyncio.sleep(_OTHERS)

    async def has_blob(self, descriptor: Descriptor) -> bool:
        return await in_thread(self.layout.has_whole, descriptor)

    async def put_blob(self, descriptor: Descriptor, source: Source, tell: Told) -> None:
        path = self.layout.partial(descriptor.digest)
        left_over = await in_thread(path.exists)
        found = await self._gathered(path, descriptor, source, tell)
        if found != descriptor.digest and left_over:
            # What an earlier try left may have been of no use; what comes now is not.
            await in_thread(path.unlink)
            found = await self._gathered(path, descriptor, source, tell)
        if found != descriptor.digest:
            await in_thread(path.unlink)
            raise PayloadDamaged(f"{source} hands out other bytes for {descriptor.digest}: they have {found}")
        await in_thread(path.rename, self.layout.path(descriptor.digest))

    async def put_document(self, content: bytes, descriptor: Descriptor) -> None:
        await in_thread(self.layout.add, content, descriptor.media_type)

    async def finish(self, content: bytes, root: Descriptor) -> None:
        await self.put_document(content, root)
        await in_thread(self.layout.point_to, root)

    async def _gathered(self, path: Path, descriptor: Descriptor, source: Source, tell: Told) -> Digest:
        """Go on with what is there of a blob: the digest of all of it."""
        hasher = hashlib.sha256()
        with writing_to(self.layout.folder), path.open("ab") as file:
            if (at := file.tell()) > descriptor.size:
                at = file.truncate(0)
            await in_thread(_hash_file, path, hasher)
            async with aclosing(source.blob(descriptor, at)) as chunks:
                async for chunk in chunks:
                    await in_thread(_take, chunk, file.fileno(), hasher)
                    at += len(chunk)
                    tell(at)
            await in_thread(settle, file)
        return Digest(f"sha256:{hasher.hexdigest()}")


@dataclass(frozen=True, slots=True)
class RegistryPlace:
    """A repository of a registry, at a tag or digest."""

    session: RegistrySession
    reference: Reference

    def __str__(self) -> str:
        return str(self.reference)

    @property
    def repository(self) -> Repository:
        return Repository(self.session, self.reference)

    async def root(self) -> Descriptor:
        return await self.repository.resolve()

    async def document(self, descriptor: Descriptor) -> bytes:
        if descriptor.media_type in (*MediaType.INDEXES, *MediaType.MANIFESTS):
            return await self.repository.document(descriptor)
        return await self.repository.small_blob(descriptor)

    def blob(self, descriptor: Descriptor, offset: int = 0) -> AsyncGenerator[bytes]:
        return self.repository.blob(descriptor, offset)

    @asynccontextmanager
    async def receiving(self) -> AsyncIterator[None]:
        if self.reference.digest is not None:
            raise PayloadError(
                f"{self.reference}: a digest names what is there already; give a tag to write to"
            )
        yield

    async def has_blob(self, descriptor: Descriptor) -> bool:
        return await self.repository.has_blob(descriptor)

    async def put_blob(self, descriptor: Descriptor, source: Source, tell: Told) -> None:
        verified = _Verified(descriptor, source, tell)
        mount_from = None
        if isinstance(source, RegistryPlace) and source.reference.registry == self.reference.registry:
            mount_from = source.reference
        await self.repository.put_blob(descriptor, verified.chunks, mount_from)

    async def put_document(self, content: bytes, descriptor: Descriptor) -> None:
        await self.repository.put_document(content, descriptor)

    async def finish(self, content: bytes, root: Descriptor) -> None:
        await self.repository.put_document(content, root, self.reference.tag or "latest")


def place_of(text: str, session: RegistrySession) -> FolderPlace | RegistryPlace:
    """What a person means: `./folder`, `/folder`, `oci:folder` and what has no registry in front are folders."""
    if not names_registry(text):
        return FolderPlace(Path(text.removeprefix("oci:")))
    return RegistryPlace(session, parse_reference(text.removeprefix("docker://")))


def names_registry(text: str) -> bool:
    """Whether a person means an image in a registry."""
    first, slash, _ = text.partition("/")
    is_host = bool(slash) and ("." in first.strip(".") or ":" in first or first == "localhost")
    return is_host and not text.startswith("oci:")


class _Verified:
    """The bytes of a blob, hashed on their way; it ends with an error when they are not those of the digest."""

    def __init__(self, descriptor: Descriptor, source: Source, tell: Told) -> None:
        self._blob = descriptor
        self._source = source
        self._tell = tell
        self._hasher = hashlib.sha256()
        self._hashed = 0

    async def chunks(self, offset: int) -> AsyncGenerator[bytes]:
        begin = min(offset, self._hashed)  # never beyond what was hashed, so that nothing is left out
        at = begin
        async with aclosing(self._source.blob(self._blob, begin)) as chunks:
            async for chunk in chunks:
                fresh = chunk[max(0, self._hashed - at) :]
                await in_thread(self._hasher.update, fresh)
                self._hashed += len(fresh)
                at += len(chunk)
                if at >= self._blob.size and f"sha256:{self._hasher.hexdigest()}" != self._blob.digest:
                    raise PayloadDamaged(f"{self._source} hands out other bytes for {self._blob.digest}")
                if at > offset:
                    yield chunk[max(0, len(chunk) - (at - offset)) :]
                    self._tell(at)


def _hash_file(path: Path, hasher: hashlib._Hash) -> None:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            hasher.update(chunk)


def _take(chunk: bytes, handle: int, hasher: hashlib._Hash) -> None:
    hasher.update(chunk)
    view = memoryview(chunk)
    while view:
        view = view[os.write(handle, view) :]
