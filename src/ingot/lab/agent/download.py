"""Fetching what the agent needs: images, checksum files, config drives.

Owns trying again, credentials and the digest of what arrived. Errors of the server below 500 are final, as in
ironic-python-agent; others are tried again a few times.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import aiohttp
import msgspec

from ingot.lab.agent.checksum import Checksum, checksum_in_file, expected_checksum
from ingot.lab.agent.failures import checksum_wrong, download_failed
from ingot.lab.errors import StepFailed
from ingot.lab.fetching import AS_IT_IS

TRIES: Final = 3
"""The real agent tries ten times; a practice server's images are near."""
_CHUNK: Final = 1 << 20
_LARGEST_TEXT: Final = 64 << 20


class ImageInfo(msgspec.Struct, kw_only=True):
    """What Ironic tells the agent about an image; what is not used here is left out."""

    id: str
    urls: list[str]
    disk_format: str | None = None
    checksum: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None
    image_type: str | None = None
    stream_raw_images: bool = False
    configdrive: str | None = None
    image_request_authorization: str | None = None
    """The value of a whole Authorization header, in base64."""
    image_server_auth_strategy: str | None = None
    image_server_user: str | None = None
    image_server_password: str | None = None

    @property
    def partition(self) -> bool:
        return self.image_type == "partition"


class _Final(Exception):
    """Trying again is no use."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where to fetch from: whom to trust, and how long to wait between two tries."""

    trusted: ssl.SSLContext
    pause: float
    md5_allowed: bool

    async def image(self, info: ImageInfo, take: Callable[[AsyncIterator[bytes]], Awaitable[None]]) -> str:
        """Give the image's bytes to `take`, from the start at each try, and compare the digest of what arrived; its sha256."""
        try:
            wanted = await self._checksum(info)
        except (aiohttp.ClientError, TimeoutError, ValueError, _Final) as error:
            raise download_failed(info.id, str(error) or type(error).__name__) from error
        left = TRIES
        while True:
            left -= 1
            try:
                found, sha256 = await self._once(info, wanted, take)
            except _Final as error:
                raise download_failed(info.id, str(error), fatal=True) from error
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                if not left:
                    raise download_failed(info.id, str(error) or type(error).__name__) from error
            else:
                if found == wanted.value.lower():
                    return sha256
                raise checksum_wrong(url=info.urls[0], image=info.id, wanted=wanted.value, found=found)
            await asyncio.sleep(self.pause)

    async def content(self, url: str, what: str) -> bytes:
        """A small file; `StepFailed` when it cannot be had."""
        try:
            return await self._small(url, {})
        except (aiohttp.ClientError, TimeoutError, ValueError, _Final) as error:
            raise StepFailed(
                f"{what} cannot be fetched: {error or type(error).__name__}",
                kind="InstanceDeployFailure",
                summary="Config drive cannot be written",
            ) from error

    async def _checksum(self, info: ImageInfo) -> Checksum:
        wanted = expected_checksum(
            algorithm=info.os_hash_algo,
            value=info.os_hash_value,
            short=info.checksum,
            md5_allowed=self.md5_allowed,
        )
        if not wanted.is_url:
            return wanted
        text = (await self._small(wanted.value, authorization(info))).decode("utf-8", "replace")
        return checksum_in_file(
            text, image_url=info.urls[0], algorithm=wanted.algorithm, md5_allowed=self.md5_allowed
        )

    async def _once(
        self, info: ImageInfo, wanted: Checksum, take: Callable[[AsyncIterator[bytes]], Awaitable[None]]
    ) -> tuple[str, str]:
        digest = hashlib.new(wanted.algorithm, usedforsecurity=False)
        sha256 = digest if wanted.algorithm == "sha256" else hashlib.sha256()

        def update(piece: bytes) -> None:
            digest.update(piece)
            if sha256 is not digest:
                sha256.update(piece)

        async with (
            self._session() as session,
            session.get(info.urls[0], headers=authorization(info)) as answer,
        ):
            _expect_200(answer)
            await take(_pieces(answer, update))
        return digest.hexdigest(), sha256.hexdigest()

    async def _small(self, url: str, headers: dict[str, str]) -> bytes:
        async with self._session() as session, session.get(url, headers=headers) as answer:
            _expect_200(answer)
            content = b""
            async for piece in answer.content.iter_chunked(_CHUNK):
                content += piece
                if len(content) > _LARGEST_TEXT:
                    raise ValueError(f"{url} has more than {_LARGEST_TEXT} bytes")
            return content

    def _session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, connect=30, sock_read=60)
        connector = aiohttp.TCPConnector(ssl=self.trusted)
        return aiohttp.ClientSession(timeout=timeout, connector=connector, headers=AS_IT_IS)


async def _pieces(answer: aiohttp.ClientResponse, update: Callable[[bytes], None]) -> AsyncIterator[bytes]:
    """The body in large pieces, each counted in the digest; fewer bytes than announced are an error."""
    received, gathered = 0, bytearray()
    async for piece in answer.content.iter_chunked(_CHUNK):
        received += len(piece)
        gathered += piece
        if len(gathered) >= _CHUNK:
            await asyncio.to_thread(update, bytes(gathered))
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        update(bytes(gathered))
        yield bytes(gathered)
    if answer.content_length is not None and received != answer.content_length:
        raise ValueError(f"{received} of {answer.content_length} bytes arrived")


def authorization(info: ImageInfo) -> dict[str, str]:
    """The header that the image's server wants; a whole one goes before name and password."""
    if info.image_request_authorization:
        try:
            return {"Authorization": base64.b64decode(info.image_request_authorization).decode("latin-1")}
        except ValueError as error:
            raise ValueError("image_request_authorization is not base64") from error
    if info.image_server_auth_strategy != "http_basic":
        return {}
    missing = [name for name in ("user", "password") if not getattr(info, f"image_server_{name}")]
    if missing:
        raise ValueError(f"Missing {missing} fields from HTTP(S) basic auth config")
    login = f"{info.image_server_user}:{info.image_server_password}".encode()
    return {"Authorization": "Basic " + base64.b64encode(login).decode()}


def _expect_200(answer: aiohttp.ClientResponse) -> None:
    if answer.status != 200:
        message = f"Received status code {answer.status} from {answer.url}, expected 200."
        raise _Final(message) if answer.status < 500 else ValueError(message)
