"""Asking a webhook over HTTPS.

One pool of connections for all webhooks. Each may have many, so that a slow one cannot take everything and one that writes itself
before it answers does not wait for those who wait for it. The server's certificate is
verified against the bundle of the configuration; a redirect is not followed. Whatever goes wrong is `Misbehaved`, in words that
users of Kubernetes have seen before.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

import aiohttp
from yarl import URL

from ingot.embedded.server.dialing import why
from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.writes.webhooks.hooks import Hook, Service
from ingot.embedded.server.writes.webhooks.reviews import Misbehaved
from ingot.embedded.server.writes.webhooks.services import Services

# As many as Kubernetes lets changes be under way. Fewer would do for most; but a webhook may write objects about which it is
# asked itself, while all the writes that hold a connection wait for it.
_CONNECTIONS_TO_ONE: Final = 200
_ANSWER_LIMIT: Final = 8 * 1024 * 1024
_SHOWN: Final = 200
_HEADERS: Final = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}


class Caller:
    """The one who asks. It can be closed when nobody writes any more."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[bytes, ssl.SSLContext] = {}

    async def ask(self, hook: Hook, review: Document) -> bytes:
        """The webhook's answer, unread. Raises `Misbehaved`."""
        shown = _shown_url(hook)
        try:
            async with asyncio.timeout(hook.timeout):
                body = encode(review)
                try:
                    return await self._post(hook, body)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                    if isinstance(error, aiohttp.ClientConnectorError):
                        raise
                    # It tired of a connection that it had kept in the moment in which it was asked. To be asked twice is
                    # nothing new to a webhook.
                    return await self._post(hook, body)
        except TimeoutError:
            raise _failed(shown, "context deadline exceeded") from None
        except (aiohttp.ClientError, ConnectionError, ssl.SSLError, ValueError) as error:
            raise _failed(shown, why(error)) from None

    def forget(self) -> None:
        """The configurations changed: certificates that nobody needs any more are let go."""
        self._contexts.clear()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _post(self, hook: Hook, body: bytes) -> bytes:
        url, name = self._target(hook)
        context = self._contexts.get(hook.ca_bundle)
        if context is None:
            context = self._contexts[hook.ca_bundle] = await asyncio.to_thread(_trusting, hook.ca_bundle)
        async with self._connected().post(
            url, data=body, headers=_HEADERS, ssl=context, server_hostname=name, allow_redirects=False
        ) as response:
            answer = await _read(response)
            if response.status != 200:
                raise Misbehaved(f"failed to call webhook: {_refusal(response.status, answer)}")
            return answer

    def _target(self, hook: Hook) -> tuple[URL, str | None]:
        """Where to connect, and whom to expect there when that is not the same."""
        query = {"timeout": f"{hook.timeout}s"}
        if isinstance(hook.place, str):
            return URL(hook.place).update_query(query), None
        try:
            host, port = self._services.address(hook.place)
        except Misbehaved as error:
            raise _failed(_shown_url(hook), str(error)) from None
        url = URL.build(scheme="https", host=host, port=port, path=hook.place.path, query=query)
        return url, f"{hook.place.name}.{hook.place.namespace}.svc"

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, limit_per_host=_CONNECTIONS_TO_ONE)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def _trusting(bundle: bytes) -> ssl.SSLContext:
    """Without a bundle, what the machine trusts."""
    if not bundle:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=bundle.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise ValueError("unable to load root certificates: unable to parse bytes as PEM block") from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_chunked(65_536):
        parts.append(part)
        size += len(part)
        if size > _ANSWER_LIMIT:
            raise Misbehaved(f"failed to call webhook: the answer is larger than {_ANSWER_LIMIT} bytes")
    return b"".join(parts)


def _refusal(status: int, answer: bytes) -> str:
    if status == 404:
        return "the server could not find the requested resource"
    text = answer[:_SHOWN].decode(errors="replace").strip() or f"HTTP {status}"
    return f'an error on the server ("{text}") has prevented the request from succeeding'


def _shown_url(hook: Hook) -> str:
    if isinstance(hook.place, Service):
        place = hook.place
        return f"https://{place.name}.{place.namespace}.svc:{place.port}{place.path}?timeout={hook.timeout}s"
    return f"{hook.place}?timeout={hook.timeout}s"


def _failed(url: str, why: str) -> Misbehaved:
    return Misbehaved(f'failed to call webhook: Post "{url}": {why}')
