"""The verbs of a repository: what a tag means, documents and blobs, read and written.

Reading: a document is compared with the digest it was asked by; a blob is streamed from any offset, and goes on after the
connection was cut; its digest is for whoever has seen all of it.
Writing: everything can be repeated; the registry itself refuses what does not have its digest. How a blob goes up is `uploading`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from yarl import URL

from ingot.formats.oci import Descriptor, MediaType, Reference, digest_of, parse_digest
from ingot.images.release.errors import PayloadDamaged, PayloadError, RegistryRefused
from ingot.images.release.registry.session import RegistrySession
from ingot.images.release.registry.uploading import Content, Upload
from ingot.images.release.registry.wire import Interrupted, refusal

_ACCEPTED: Final = ", ".join((*MediaType.INDEXES, *MediaType.MANIFESTS))
_CHUNK: Final = 1 << 20
_SMALL: Final = 4 << 20


class Repository:
    def __init__(self, session: RegistrySession, reference: Reference) -> None:
        self.reference: Final = reference
        self._session = session

    async def resolve(self) -> Descriptor:
        """What the reference means now."""
        content, media_type = await self._document(self.reference.wanted)
        if media_type not in (*MediaType.INDEXES, *MediaType.MANIFESTS):
            raise PayloadError(
                f"{self.reference} is no container image: the registry says that it is {media_type!r}"
            )
        digest = digest_of(content)
        if self.reference.digest not in (None, digest):
            raise PayloadDamaged(
                f"{self.reference}: the registry answers with a document of the digest {digest}"
            )
        return Descriptor(media_type=media_type, digest=digest, size=len(content))

    async def document(self, descriptor: Descriptor) -> bytes:
        content, _ = await self._document(descriptor.digest)
        if digest_of(content) != descriptor.digest or len(content) != descriptor.size:
            raise PayloadDamaged(
                f"{self.reference.at(descriptor.digest)}: the registry answers with a document of another digest or size"
            )
        return content

    async def small_blob(self, descriptor: Descriptor) -> bytes:
        if descriptor.size > _SMALL:
            raise PayloadError(
                f"{self.reference.at(descriptor.digest)} has {descriptor.size} bytes, too many for a document"
            )
        content = b"".join([chunk async for chunk in self.blob(descriptor)])
        if digest_of(content) != descriptor.digest:
            raise PayloadDamaged(
                f"{self.reference.at(descriptor.digest)}: the registry answers with other bytes"
            )
        return content

    async def blob(self, descriptor: Descriptor, offset: int = 0) -> AsyncGenerator[bytes]:
        """The bytes of a blob from an offset on; not more of them than it has."""
        at, tries = offset, self._session.tries()
        while at < descriptor.size:
            try:
                async with aclosing(self._part(descriptor, at)) as chunks:
                    async for chunk in chunks:
                        at += len(chunk)
                        if at > descriptor.size:
                            raise PayloadDamaged(
                                f"{self.reference.at(descriptor.digest)} is longer than it should be"
                            )
                        yield chunk
                if at < descriptor.size:
                    raise Interrupted("the answer ended too early")
            except Interrupted as error:
                await self._session.pause(tries, str(self.reference.at(descriptor.digest)), error, reached=at)

    async def has_blob(self, descriptor: Descriptor) -> bool:
        answer = await self._session.answer("HEAD", self._blob_url(descriptor), self.reference, push=True)
        return answer.status == 200

    async def put_blob(
        self, descriptor: Descriptor, content: Content, mount_from: Reference | None = None
    ) -> None:
        """Write a blob, or have the registry take it over from another repository that it has."""
        upload = Upload(self._session, self.reference, descriptor, content, mount_from)
        tries = self._session.tries()
        while not upload.done:
            try:
                await upload.go_on()
            except Interrupted as error:
                what = str(self.reference.at(descriptor.digest))
                await self._session.pause(tries, what, error, reached=upload.furthest)
                if await self.has_blob(descriptor):
                    return  # the last answer was lost, not what it was for

    async def put_document(self, content: bytes, descriptor: Descriptor, tag: str | None = None) -> None:
        """Write a document under its digest, or under a tag."""
        url = self._session.url(self.reference, f"manifests/{tag or descriptor.digest}")
        headers = {"Content-Type": descriptor.media_type}
        answer = await self._session.answer(
            "PUT", url, self.reference, push=True, headers=headers, data=content
        )
        if answer.status not in (200, 201, 202):
            raise refusal(self.reference, f"does not take the document {descriptor.digest}", answer)

    async def _document(self, wanted: str) -> tuple[bytes, str]:
        url = self._session.url(self.reference, f"manifests/{wanted}")
        answer = await self._session.answer("GET", url, self.reference, headers={"Accept": _ACCEPTED})
        if answer.status == 404:
            raise RegistryRefused(f"{self.reference.name} has no {wanted}")
        if answer.status != 200:
            raise refusal(self.reference, f"does not hand out {wanted}", answer)
        media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        return answer.content, media_type

    async def _part(self, descriptor: Descriptor, at: int) -> AsyncGenerator[bytes]:
        headers = {"Range": f"bytes={at}-"} if at else {}
        async with self._session.ask(
            "GET", self._blob_url(descriptor), self.reference, headers=headers
        ) as answer:
            if answer.status == 404:
                raise RegistryRefused(f"{self.reference.name} has no blob {descriptor.digest}")
            skip = 0
            if answer.status == 206 and at:
                if not answer.headers.get("Content-Range", "").startswith(f"bytes {at}-"):
                    raise RegistryRefused(
                        f"{self.reference.name} answers with other bytes than those that were asked for"
                    )
            elif answer.status == 200:
                skip = at  # it does not know ranges
            else:
                raise RegistryRefused(
                    f"{self.reference.name} does not hand out the blob {descriptor.digest} (HTTP {answer.status})"
                )
            async for chunk in answer.content.iter_chunked(_CHUNK):
                left = chunk[skip:]
                skip -= len(chunk) - len(left)
                if left:
                    yield left

    def _blob_url(self, descriptor: Descriptor) -> URL:
        return self._session.url(self.reference, f"blobs/{parse_digest(descriptor.digest)}")
