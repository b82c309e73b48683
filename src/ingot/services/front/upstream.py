"""Ironic, as the front server reaches it: on loopback over TLS, or on a Unix socket."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Final, Self

import aiohttp
import msgspec

from ingot.services.front.calls import AgentCall
from ingot.services.settings import IronicSettings
from ingot.trust import client_context

PATIENCE: Final = 60.0
LARGEST_ANSWER: Final = 4 * 1024 * 1024
_TOLD: Final = (
    "X-OpenStack-Ironic-API-Version",
    "X-OpenStack-Ironic-API-Minimum-Version",
    "X-OpenStack-Ironic-API-Maximum-Version",
    "OpenStack-Request-ID",
)


class Unreachable(Exception):
    """Ironic does not answer, or not with anything to pass on."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]


class Upstream:
    """One Ironic. Use as a context manager."""

    def __init__(self, settings: IronicSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        socket = self._settings.api_socket
        # No connection is kept: Ironic is restarted now and then, and a connection may die unseen with it.
        connector = (
            aiohttp.UnixConnector(str(socket), force_close=True)
            if socket
            else aiohttp.TCPConnector(ssl=client_context(self._settings.ca_file), force_close=True)
        )
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=PATIENCE), auto_decompress=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(self, call: AgentCall) -> Answer:
        assert self._session is not None
        headers = {**call.headers, **({"Content-Type": "application/json"} if call.body is not None else {})}
        try:
            async with self._session.request(
                call.method,
                self._settings.api_url + call.path,
                params=call.query,
                data=io.BytesIO(call.body) if call.body is not None else None,
                headers=headers,
                allow_redirects=False,
            ) as answer:
                body = await answer.content.read(LARGEST_ANSWER + 1)
                while len(body) <= LARGEST_ANSWER and (more := await answer.content.read(LARGEST_ANSWER)):
                    body += more
                told = {name: answer.headers[name] for name in _TOLD if name in answer.headers}
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        if len(body) > LARGEST_ANSWER:
            raise Unreachable("the answer is too long")
        return Answer(answer.status, body, told)

    async def version(self) -> dict[str, Any]:
        """What an agent wants to know before its first call; nothing else of what Ironic says of itself."""
        answer = await self.call(AgentCall("GET", "/", ""))
        try:
            told = msgspec.json.decode(answer.body, type=dict[str, Any])["default_version"]
            kept = {name: str(told[name]) for name in ("id", "status", "min_version", "version")}
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            raise Unreachable("its version cannot be read") from error
        return {"name": "Ironic, for agents", "default_version": kept}
