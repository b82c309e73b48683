"""How a blob goes up: begun, sent in pieces, ended with its digest. After an interruption the registry says how far it came.

`Upload` keeps where it stands between tries; `go_on` is one try, and raises `Interrupted` when another one makes sense.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from yarl import URL

from ingot.formats.oci import Descriptor, Reference
from ingot.images.release.errors import PayloadDamaged
from ingot.images.release.registry.authorizing import destination
from ingot.images.release.registry.session import RegistrySession
from ingot.images.release.registry.wire import Answer, Interrupted, read_small, refusal

PIECE: Final = 8 << 20
"""What is sent at once: little to lose, little memory, and few requests for a gigabyte."""
_BYTES: Final = {"Content-Type": "application/octet-stream"}
_RANGE: Final = re.compile(r"(?:bytes=)?0-(\d{1,19})", re.ASCII)

Content = Callable[[int], AsyncGenerator[bytes]]
"""The bytes of a blob from an offset on; may be asked for several times."""


class Upload:
    def __init__(
        self,
        session: RegistrySession,
        reference: Reference,
        descriptor: Descriptor,
        content: Content,
        mount_from: Reference | None,
    ) -> None:
        self.done = False
        self.furthest = 0
        self._session = session
        self._reference = reference
        self._blob = descriptor
        self._content = content
        self._mount_from = mount_from
        self._url: URL | None = None
        self._at = 0
        self._unsure = False

    async def go_on(self) -> None:
        """From where it stands to the end."""
        if self._unsure:
            await self._look()
        if self._url is None:
            await self._begin()
        self._unsure = True  # until all of this is over, an interruption leaves open how much arrived
        if not self.done and self._at < self._blob.size:
            await self._send()
        if not self.done:
            await self._end()

    async def _begin(self) -> None:
        url = self._session.url(self._reference, "blobs/uploads/")
        if self._mount_from is not None:
            url = url.with_query({"mount": self._blob.digest, "from": self._mount_from.repository})
        answer = await self._asked("POST", url)
        if answer.status == 201:
            self.done = True  # it has the blob in the other repository
        elif answer.status == 202:
            self._url, self._at = destination(url, answer.headers.get("Location"), self._reference), 0
        else:
            raise refusal(self._reference, "does not begin an upload", answer)

    async def _send(self) -> None:
        async with aclosing(self._content(self._at)) as chunks, aclosing(_pieces(chunks)) as pieces:
            async for piece in pieces:
                assert self._url is not None, "it was begun"
                headers = _BYTES | {"Content-Range": f"{self._at}-{self._at + len(piece) - 1}"}
                answer = await self._asked("PATCH", self._url, headers, piece)
                if answer.status in (404, 416):
                    raise Interrupted("the registry has another part of the upload than was sent, or none")
                if answer.status not in (202, 204):
                    raise refusal(self._reference, f"does not take a piece of {self._blob.digest}", answer)
                self._move(answer)
                self._at += len(piece)
                self.furthest = max(self.furthest, self._at)
        if self._at != self._blob.size:
            raise PayloadDamaged(f"the blob {self._blob.digest} has {self._at} bytes, not {self._blob.size}")

    async def _look(self) -> None:
        """How far it came, by what the registry says. Where it has forgotten the upload, all begins again."""
        if self._url is None:
            return
        answer = await self._asked("GET", self._url)
        if answer.status not in (202, 204):
            self._url, self._at = None, 0
            return
        self._move(answer)
        reached = _RANGE.fullmatch(answer.headers.get("Range", ""))
        # "0-0" is what a registry says of one byte, and of none.
        self._at = min(int(reached[1]) + 1, self._blob.size) if reached and reached[1] != "0" else 0

    async def _end(self) -> None:
        assert self._url is not None, "it was begun"
        answer = await self._asked("PUT", self._url.update_query({"digest": self._blob.digest}), _BYTES)
        if answer.status == 404:
            # Perhaps it has ended it already and the answer was lost.
            raise Interrupted("the registry knows nothing of the upload any more")
        if answer.status not in (201, 204):
            raise refusal(self._reference, f"does not take the blob {self._blob.digest}", answer)
        self.done = True

    def _move(self, answer: Answer) -> None:
        if (location := answer.headers.get("Location")) and self._url is not None:
            self._url = destination(self._url, location, self._reference)

    async def _asked(
        self, method: str, url: URL, headers: dict[str, str] | None = None, data: bytes = b""
    ) -> Answer:
        async with self._session.ask(
            method, url, self._reference, push=True, headers=headers, data=None if method == "GET" else data
        ) as answer:
            return await read_small(answer)


async def _pieces(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    piece = bytearray()
    async for chunk in chunks:
        piece += chunk
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)
