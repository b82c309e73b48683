"""HTTP to one API server: who we are in every request, retries, and errors with words.

Owns the rules of repetition. Repeated is only what is safe: reads; anything that the server put off as one too many (429 with
`Retry-After`); anything that never left this machine because no connection came about; and once, what the server refused
because it did not know us (401), or we it, where there is a new identity or authority since. Redirects are not followed, so that
a token goes to the server it is meant for and to no other. What the bytes mean is the business of `client` and `watching`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import yarl

from ingot.kube.access import Access
from ingot.kube.calls import Call
from ingot.kube.connections import Connections
from ingot.kube.errors import (
    ApiError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Untrusted,
    error_from,
    read_status,
)
from ingot.kube.identity import Identity
from ingot.kube.metrics import API_REQUESTS

log = logging.getLogger(__name__)

ATTEMPTS: Final = 5
LONGEST_RETRY_AFTER: Final = 30.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60, sock_connect=10)
_STREAM_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10)
_HEADERS_DEADLINE: Final = 30.0
# Warnings may quote names; an endless variety of them must not fill the memory.
_TOLD_AT_MOST: Final = 1_000


Guard = Callable[[], None]
"""Raises when nothing may be changed now."""


def anybody() -> None:
    """The guard of those who need no leave."""


class Transport:
    """The way to one API server. Opened by the first call; `close` ends it."""

    def __init__(self, access: Access, *, user_agent: str, guard: Guard = anybody) -> None:
        self._access = access
        self._guard = guard
        self._host = yarl.URL(access.server).authority
        self._connections = Connections(access, user_agent=user_agent)
        self._told: set[str] = set()
        self.under_way = 0
        """Requests that are not answered yet; streams do not count."""

    async def close(self) -> None:
        await self._connections.close()

    async def request(self, call: Call) -> bytes:
        """The body of the answer; an `ApiError` for every answer that is not a success, and for none."""
        attempt = 0
        while True:
            attempt += 1
            identity = await self._access.identity.identity()
            try:
                return await self._once(call, identity)
            except ApiError as error:
                delay = retry_delay(error, method=call.method, attempt=attempt)
                if delay is None and not (attempt == 1 and await self._is_renewed(error, identity)):
                    raise
                log.debug("%s; attempt %d, again in %.2f s", error, attempt, delay or 0)
            await asyncio.sleep(delay or 0)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[aiohttp.StreamReader]:
        """The answer as it comes in. No retries: whoever reads a stream knows where to go on."""
        identity = await self._access.identity.identity()
        async with self._connections.session(identity.certificate) as session:
            try:
                async with asyncio.timeout(_HEADERS_DEADLINE):
                    response = await session.request(
                        **self._arguments(call, identity), timeout=_STREAM_TIMEOUT
                    )
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise await self._looked_into(self._unavailable(error, call), identity) from error
            try:
                await self._check(response, call)
                yield response.content
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise self._unavailable(error, call) from error
            except Unauthorized as error:
                raise await self._looked_into(error, identity) from None
            finally:
                _leave(response)

    async def _once(self, call: Call, identity: Identity) -> bytes:
        if call.method != "GET":
            self._guard()
        self.under_way += 1
        try:
            async with (
                self._connections.session(identity.certificate) as session,
                session.request(**self._arguments(call, identity), timeout=_TIMEOUT) as response,
            ):
                await self._check(response, call)
                return await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unavailable(error, call) from error
        finally:
            self.under_way -= 1

    async def _check(self, response: aiohttp.ClientResponse, call: Call) -> None:
        self._count(call, str(response.status))
        for warning in response.headers.getall("Warning", []):
            self._pass_on(call, warning)
        if 200 <= response.status < 300:
            return
        status = read_status(response.status, await response.read())
        raise error_from(
            status,
            code=response.status,
            doing=call.doing,
            retry_after=_seconds(response.headers.get("Retry-After")),
        )

    def _pass_on(self, call: Call, warning: str) -> None:
        """Tell a warning once: the API repeats it with every write, and a log that repeats it too is one nobody reads."""
        if warning not in self._told and len(self._told) < _TOLD_AT_MOST:
            self._told.add(warning)
            log.warning("%s: the API warns: %s", call.doing, warning)
        else:
            log.debug("%s: the API warns again: %s", call.doing, warning)

    def _arguments(self, call: Call, identity: Identity) -> dict[str, Any]:
        headers = {"Accept": call.accept}
        if identity.token:
            headers["Authorization"] = f"Bearer {identity.token.reveal()}"
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        return {
            "method": call.method,
            # The path is made of checked names; encoding it again would only hide a mistake.
            "url": yarl.URL(self._access.server + call.path, encoded=True).update_query(call.params),
            "headers": headers,
            "data": call.body,
            "allow_redirects": False,
            "server_hostname": self._access.server_name or None,
            "proxy": self._access.proxy or None,
        }

    async def _is_renewed(self, error: ApiError, identity: Identity) -> bool:
        """Whether the next try would be made as somebody else, or would believe somebody else."""
        match error:
            case Unauthorized():
                return await self._access.identity.refused(identity)
            case Untrusted():
                return self._access.trust.look_again()
            case _:
                return False

    async def _looked_into(self, error: ApiError, identity: Identity) -> ApiError:
        """The error of a stream, which is not tried again here: but the next one shall be tried with what is new."""
        await self._is_renewed(error, identity)
        return error

    def _unavailable(self, error: Exception, call: Call) -> Unavailable:
        self._count(call, "<error>")
        connected = not isinstance(
            error,
            aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.ClientHttpProxyError,
        )
        kind = Untrusted if isinstance(error, aiohttp.ClientConnectorCertificateError) else Unavailable
        return kind(0, "Unavailable", self._sentence(error), doing=call.doing, sent=connected)

    def _count(self, call: Call, code: str) -> None:
        API_REQUESTS.labels(code, self._host, call.method, call.kind).inc()

    def _sentence(self, error: Exception) -> str:
        server = self._access.server
        match error:
            case aiohttp.ClientConnectorCertificateError():
                return (
                    f"the certificate of {server} is not to be trusted: {error.certificate_error}. "
                    "Check that the kubeconfig names this server and its certificate authority."
                )
            case aiohttp.ClientHttpProxyError():
                return f"the proxy does not connect us to {server}: {error.status} {error.message}"
            case aiohttp.ClientProxyConnectionError():
                return f"no connection to the proxy on the way to {server}: {error.os_error.strerror or error.os_error}"
            case aiohttp.ClientConnectorError():
                return f"no connection to {server}: {error.os_error.strerror or error.os_error}. Is the API running?"
            case TimeoutError():
                return f"{server} did not answer in time"
            case _:
                return f"the connection to {server} broke: {error or type(error).__name__}"


def _leave(response: aiohttp.ClientResponse) -> None:
    """End the connection of a stream that is not at its end, at once: TLS would exchange farewells, which outlive the session."""
    if (connection := response.connection) is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def retry_delay(error: ApiError, *, method: str, attempt: int) -> float | None:
    """Seconds to wait before the same request is sent again; None: it must not be."""
    if attempt >= ATTEMPTS:
        return None
    match error:
        case Untrusted():
            return None
        case TooManyRequests(retry_after=float(seconds)):
            return _asked_for(seconds)
        case Unavailable(retry_after=float(seconds)) if method == "GET":
            return _asked_for(seconds)
        case Unavailable() if method == "GET" or not error.sent:
            return 0.1 * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        case _:
            return None


def _asked_for(seconds: float) -> float:
    return min(seconds, LONGEST_RETRY_AFTER) * random.uniform(1.0, 1.2)  # noqa: S311 - jitter


def _seconds(header: str | None) -> float | None:
    """Retry-After in seconds. Its date form is for web pages; Kubernetes sends numbers."""
    return float(header) if header and header.isdecimal() else None
