"""Taking an image from place to place, with all its architectures: what is there and right is not copied again.

Blobs go first, then the documents that name them, then the name of the whole: who reads the target meanwhile finds the old image
or the new one. Every byte is hashed on its way. Interrupted at any moment, the next try goes on with what is missing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from ingot.formats import FormatError
from ingot.formats.oci import Descriptor, Digest, Index, Manifest, MediaType, decode_document
from ingot.images.fetching import Progress
from ingot.images.release.errors import PayloadError
from ingot.images.release.places import Source, Target

DOCUMENTS: Final = (*MediaType.INDEXES, *MediaType.MANIFESTS)
_MOST_DOCUMENTS: Final = 1000
_MOST_BYTES: Final = 64 << 20
"""Of all documents together: they are held in memory. Those of a payload have some kilobytes."""

Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """What came of it."""

    digest: Digest
    copied: int
    """Blobs that were missing."""
    copied_bytes: int
    kept: int
    """Blobs that were there."""


async def mirror(source: Source, target: Target, tell: Tell = lambda _: None) -> Mirrored:
    root = await source.root()
    documents = [(found, content) async for found, content in walk(source, root)]
    blobs = {blob.digest: blob for found, content in documents for blob in blobs_of(found, content)}
    copied = copied_bytes = 0
    async with target.receiving():
        for blob in blobs.values():
            if await target.has_blob(blob):
                continue
            await target.put_blob(blob, source, _teller(blob, tell))
            copied, copied_bytes = copied + 1, copied_bytes + blob.size
        # From the leaves to the root: a registry refuses a document that names what it has not.
        for found, content in reversed(documents[1:]):
            await target.put_document(content, found)
        await target.finish(documents[0][1], root)
    return Mirrored(digest=root.digest, copied=copied, copied_bytes=copied_bytes, kept=len(blobs) - copied)


async def walk(source: Source, root: Descriptor) -> AsyncIterator[tuple[Descriptor, bytes]]:
    """The documents of an image, each before those that it names."""
    waiting, seen, size = [root], {root.digest}, 0
    while waiting:
        descriptor = waiting.pop(0)
        content = await source.document(descriptor)
        if (size := size + len(content)) > _MOST_BYTES:
            raise PayloadError(f"{source} has more than {_MOST_BYTES} bytes of documents")
        yield descriptor, content
        for child in _decoded(descriptor, content):
            if child.media_type in DOCUMENTS and child.digest not in seen:
                seen.add(child.digest)
                waiting.append(child)
        if len(seen) > _MOST_DOCUMENTS:
            raise PayloadError(f"{source} consists of more than {_MOST_DOCUMENTS} documents")


def blobs_of(descriptor: Descriptor, content: bytes) -> list[Descriptor]:
    """What a document names that is no document: configuration and layers."""
    return [child for child in _decoded(descriptor, content) if child.media_type not in DOCUMENTS]


def _decoded(descriptor: Descriptor, content: bytes) -> tuple[Descriptor, ...]:
    try:
        match decode_document(content, descriptor.media_type):
            case Index(manifests=manifests):
                return manifests
            case Manifest(config=config, layers=layers):
                return (config, *layers)
    except FormatError as error:
        raise PayloadError(f"{descriptor.digest}: {error}") from error


def _teller(blob: Descriptor, tell: Tell) -> Callable[[int], None]:
    name = blob.digest.removeprefix("sha256:")[:12]
    return lambda done: tell(Progress(name=name, done=done, total=blob.size))
