"""One HTTP request: through the proxy that the environment names, verified, with errors that say whether trying again helps."""

from __future__ import annotations

import asyncio
import io
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import aiohttp
import msgspec
from yarl import URL

from ingot.formats.oci import Reference
from ingot.images.fetching import FetchError
from ingot.images.fetching.proxies import proxy_for
from ingot.images.release.errors import RegistryRefused, ReleaseError

_SMALL: Final = 4 << 20
"""Documents and errors; registries take no larger manifests."""
_CONNECTING: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A small answer, all of it."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Interrupted(Exception):
    """The connection could not be made, or was cut; or the registry says: later, and perhaps when."""

    def __init__(self, why: str, wish: float | None = None) -> None:
        super().__init__(why)
        self.wish = wish


class Wire:
    """The way out; one for many requests."""

    def __init__(self, authorities: Path | None, stall: float) -> None:
        self._authorities = authorities
        self._stall = stall
        self._stack = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        trusted = await asyncio.to_thread(self._trusted)
        timeout = aiohttp.ClientTimeout(
            total=None, connect=2 * _CONNECTING, sock_connect=_CONNECTING, sock_read=self._stall
        )
        self._session = await self._stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=trusted),
                timeout=timeout,
                headers={"User-Agent": "ingot", "Accept-Encoding": "identity"},
                auto_decompress=False,  # a digest is that of the bytes as they lie there
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=1 << 20,
            )
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def send(
        self, method: str, url: URL, *, headers: Mapping[str, str], data: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer, whatever its status; redirects are for the caller. What breaks while it is read is told the same way."""
        assert self._session is not None, "the way out is opened with `async with`"
        try:
            proxy = proxy_for(url, os.environ)
        except FetchError as error:
            raise RegistryRefused(str(error)) from error
        with _worded():
            async with self._session.request(
                method,
                url,
                headers=proxy.request_headers(url, headers) if proxy else headers,
                # As a file, it is sent piece by piece, and others get their turn in between.
                data=io.BytesIO(data) if data else data,
                allow_redirects=False,
                proxy=proxy.url if proxy else None,
                proxy_headers=proxy.headers if proxy else None,
            ) as answer:
                yield answer

    def _trusted(self) -> ssl.SSLContext:
        trusted = ssl.create_default_context()
        if self._authorities is not None:
            try:
                trusted.load_verify_locations(self._authorities)
            except ssl.SSLError as error:
                raise ReleaseError(f"{self._authorities} holds no certificates (PEM)") from error
            except OSError as error:
                raise ReleaseError(f"{self._authorities}: {error.strerror}") from error
        return trusted


async def read_small(answer: aiohttp.ClientResponse) -> Answer:
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > _SMALL:
            raise RegistryRefused(
                f"{answer.url.host} answers with more than {_SMALL} bytes to a small question"
            )
    return Answer(answer.status, answer.headers.copy(), bytes(content))


class _Problem(msgspec.Struct):
    code: str = ""
    message: str = ""


class _Problems(msgspec.Struct):
    errors: list[_Problem] = []


def refusal(reference: Reference, what: str, answer: Answer) -> RegistryRefused:
    """What a registry does not do, with the reason that it gives."""
    try:
        problems = msgspec.json.decode(answer.content, type=_Problems).errors
    except msgspec.DecodeError:
        problems = []
    said = "; ".join(f"{problem.code} {problem.message}".strip() for problem in problems)
    told = "".join(letter if letter.isprintable() else "?" for letter in said)
    return RegistryRefused(
        f"{reference.name} {what} (HTTP {answer.status}{f': {told[:300]}' if told else ''})"
    )


@contextmanager
def _worded() -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        # Trying again does not mend a certificate.
        raise RegistryRefused(
            f"the certificate of {error.host} is not trusted ({error.certificate_error}). Name the file with its certificate "
            "authority (--ca), or mend the clock"
        ) from error
    except aiohttp.ClientConnectorSSLError as error:
        raise RegistryRefused(
            f"{error.host} port {error.port} does not speak TLS as it should ({error.os_error})"
        ) from error
    except (aiohttp.ClientError, TimeoutError, ConnectionError, asyncio.IncompleteReadError) as error:
        raise Interrupted(_reason(error)) from error


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers HTTP {error.status}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host} port {error.port}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, TimeoutError):
        return "nothing came for too long"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection was cut"
    return str(error) or type(error).__name__
