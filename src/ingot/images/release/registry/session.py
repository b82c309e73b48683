"""Requests to registries: authenticated as they ask for it, along redirects, and again after bad weather.

`ask` is one request with an answer of any kind; `answer` is for small ones, and asks again while it makes sense. What authorizes
us goes to the registry alone: a redirect elsewhere is followed without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import aiohttp
from yarl import URL

from ingot.formats.oci import Reference
from ingot.images.fetching.patience import WEATHER, Patience, Tries, retry_after
from ingot.images.release.errors import RegistryRefused, RegistryUnreachable
from ingot.images.release.registry.authorizing import Authorizing, destination
from ingot.images.release.registry.pull_secrets import PullSecrets
from ingot.images.release.registry.wire import Answer, Interrupted, Wire, read_small

log = logging.getLogger(__name__)

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """How registries are talked to."""

    pull_secrets: PullSecrets = field(default_factory=PullSecrets)
    authorities: Path | None = None
    """More certificate authorities (PEM) that registries may have their certificates from."""
    plain_http: bool = False
    """Without TLS: nobody is verified, and credentials can be read on the way. What is copied is verified all the same."""
    patience: Patience = field(default_factory=Patience)
    stall: float = 180.0
    """Seconds without a byte after which a connection counts as cut. A registry may think that long over a gigabyte it got."""


class RegistrySession:
    """The way to registries; one for many requests."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._wire = Wire(settings.authorities, settings.stall)
        self._authorizing = Authorizing(self._wire, settings.pull_secrets)

    async def __aenter__(self) -> Self:
        await self._wire.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._wire.__aexit__()

    def url(self, reference: Reference, path: str) -> URL:
        """A URL below a repository. A reference is checked, so nothing in it needs quoting."""
        scheme = "http" if self._settings.plain_http else "https"
        host = "registry-1.docker.io" if reference.registry == "docker.io" else reference.registry
        return URL(f"{scheme}://{host}/v2/{reference.repository}/{path}", encoded=True)

    def tries(self) -> Tries:
        return Tries(self._settings.patience)

    async def pause(self, tries: Tries, what: str, error: Interrupted, reached: int = 0) -> None:
        """Wait after a failure with so many bytes done; raises when it is enough."""
        seconds = tries.pause(reached, error.wish)
        if seconds is None:
            raise RegistryUnreachable(
                f"{what}: {error}. It was tried {tries.failures} times; try again later"
            ) from error
        log.info("%s: %s; the next try is in %.1f s", what, error, seconds)
        await asyncio.sleep(seconds)

    async def answer(
        self,
        method: str,
        url: URL,
        reference: Reference,
        *,
        push: bool = False,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        """A small answer of any status but those that mean later. The request must be one that can be repeated."""
        tries = self.tries()
        while True:
            try:
                async with self.ask(method, url, reference, push=push, headers=headers, data=data) as answer:
                    return await read_small(answer)
            except Interrupted as error:
                await self.pause(tries, reference.name, error)

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        url: URL,
        reference: Reference,
        *,
        push: bool = False,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request. Raises `Interrupted` for what may be tried again, `RegistryRefused` where no trying helps."""
        home = self.url(reference, "")
        async with AsyncExitStack() as stack:
            answer = await self._sent(stack, method, url, reference, push, headers or {}, data)
            if answer.status in (401, 403) and answer.url.origin() != home.origin():
                # Whoever it is, our credentials are none of its business: it could send us to a token server of its own.
                raise RegistryRefused(
                    f"{reference.name} sends us to {answer.url.host}:{answer.url.port}, which refuses it (HTTP {answer.status})"
                )
            if answer.status == 401:
                asked = answer.headers.getall("WWW-Authenticate", [])
                if await self._authorizing.meet(asked, reference, home, push=push):
                    answer = await self._sent(stack, method, url, reference, push, headers or {}, data)
            if answer.status in (401, 403):
                raise self._authorizing.denied(answer.status, reference, push=push)
            if answer.status in WEATHER:
                wish = retry_after(answer.headers.get("Retry-After"), datetime.now(UTC))
                raise Interrupted(f"the registry answers HTTP {answer.status}", wish)
            yield answer

    async def _sent(
        self,
        stack: AsyncExitStack,
        method: str,
        url: URL,
        reference: Reference,
        push: bool,
        headers: Mapping[str, str],
        data: bytes | None,
    ) -> aiohttp.ClientResponse:
        home, here = self.url(reference, "").origin(), url
        for _ in range(_MOST_REDIRECTS + 1):
            sending = dict(headers)
            authorization = self._authorizing.header(reference, push=push)
            if authorization is not None and here.origin() == home:
                sending["Authorization"] = authorization
            answer = await stack.enter_async_context(
                self._wire.send(method, here, headers=sending, data=data)
            )
            if method not in ("GET", "HEAD") or answer.status not in _REDIRECTS:
                return answer
            here = destination(here, answer.headers.get("Location"), reference)
        raise RegistryRefused(f"{reference.name} leads from one redirect to the next")
