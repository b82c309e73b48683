"""One HTTP request: through the proxy that the environment names, along redirects, never from https down to http.

Owns the connection and its trust. Whatever goes wrong on the way is an `Interrupted`, which may be tried again; what is
refused on purpose is a `Refused`. URLs are shown without user, password and query: some of them carry a key.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Self

import aiohttp
from yarl import URL

from ingot.images.fetching.errors import Refused, Unwritable
from ingot.images.fetching.proxies import proxy_for
from ingot.images.fetching.wanted import FetchSettings

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 10
_CONNECTING: Final = 30.0
_BUFFER: Final = 1 << 20


class Interrupted(Exception):
    """The connection could not be made, or was cut."""


def shown(url: str | URL) -> str:
    """A URL as it may be logged and printed."""
    try:
        parsed = URL(str(url), encoded=True)
        plain = parsed.with_user(None) if parsed.absolute else parsed
        return str(plain.with_query(None).with_fragment(None))
    except ValueError:
        return "a URL that is none"


class Web:
    """The way out; one for many requests."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECTING, sock_read=self._settings.stall, connect=2 * _CONNECTING
        )
        self._session = await self._stack.enter_async_context(
            aiohttp.ClientSession(
                timeout=timeout,
                # The digest is that of the file as it lies there, not of something packed on the way.
                headers={"Accept-Encoding": "identity", "User-Agent": "ingot"},
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=_BUFFER,
            )
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a GET, at the end of all redirects, whatever its status."""
        try:
            async with AsyncExitStack() as stack:
                here = _parsed(url)
                for _ in range(_MOST_REDIRECTS + 1):
                    answer = await self._ask(here, headers)
                    stack.push_async_exit(answer)
                    if answer.status not in _REDIRECTS:
                        yield answer
                        return
                    here = _redirected(here, answer.headers.get("Location"))
                raise Refused(
                    f"{shown(url)} leads from one redirect to the next, more than {_MOST_REDIRECTS} times"
                )
        except aiohttp.ClientConnectorCertificateError as error:
            # Trying again does not mend a certificate.
            raise Refused(
                f"{shown(url)}: the certificate of {error.host} is not trusted ({error.certificate_error}). Name the file with "
                "its certificate authority, or mend the clock"
            ) from error
        except (aiohttp.ClientError, TimeoutError, ConnectionError, asyncio.IncompleteReadError) as error:
            raise Interrupted(_reason(error)) from error

    async def _ask(self, url: URL, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        assert self._session is not None, "the way out is opened with `async with`"
        proxy = proxy_for(url, os.environ)
        trusted = await self._trusted("https" in (url.scheme, proxy.url.scheme if proxy else ""))
        if proxy is None:
            return await self._session.get(url, headers=headers, allow_redirects=False, ssl=trusted)
        return await self._session.get(
            url,
            headers=proxy.request_headers(url, headers),
            allow_redirects=False,
            ssl=trusted,
            proxy=proxy.url,
            proxy_headers=proxy.headers,
        )

    async def _trusted(self, needed: bool) -> ssl.SSLContext | bool:
        """Whom we trust; it is read once, and only if there is somebody to be trusted: it takes a tenth of a second."""
        if needed and self._tls is None:
            self._tls = await asyncio.to_thread(self._authorities)
        return self._tls or True

    def _authorities(self) -> ssl.SSLContext:
        trusted = ssl.create_default_context()
        if self._settings.authorities is not None:
            try:
                trusted.load_verify_locations(self._settings.authorities)
            except ssl.SSLError as error:
                raise Unwritable(
                    f"{self._settings.authorities} holds no certificates (PEM): {error.reason}"
                ) from error
            except OSError as error:
                raise Unwritable(f"{self._settings.authorities}: {error.strerror}") from error
        return trusted


def _parsed(url: str) -> URL:
    try:
        parsed = URL(url, encoded=True)
        if parsed.scheme in ("http", "https") and parsed.host:
            return parsed
    except ValueError:
        pass
    raise Refused(f"{shown(url)[:200]} is not an http or https URL")


def _redirected(here: URL, location: str | None) -> URL:
    if not location:
        raise Refused(f"{shown(here)} redirects without saying where to")
    try:
        there = here.join(URL(location, encoded=True))
    except ValueError as error:
        raise Refused(f"{shown(here)} redirects to something that is no URL") from error
    if there.scheme not in ("http", "https") or not there.host:
        raise Refused(f"{shown(here)} redirects to a URL of the kind {there.scheme}, which is not followed")
    if here.scheme == "https" and there.scheme == "http":
        raise Refused(f"{shown(here)} redirects from https to http ({shown(there)}), which is not followed")
    return there


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers HTTP {error.status}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host} port {error.port}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, TimeoutError):
        return "nothing came for too long"
    return (
        "the connection was cut"
        if isinstance(error, aiohttp.ClientPayloadError)
        else str(error) or type(error).__name__
    )
