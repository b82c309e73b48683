"""Pools of connections: one for who we are and whom we believe, replaced when either changes.

What is under way on an old pool goes on; a pool that was replaced is closed when its last user is through.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from ingot.kube.access import Access
from ingot.kube.errors import CredentialError
from ingot.kube.identity import ClientCertificate
from ingot.kube.tls import client_context

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Pool:
    session: aiohttp.ClientSession
    authority: bytes
    certificate: ClientCertificate | None
    users: int = 0


class Connections:
    """The connections to one server. Opened by the first use; `close` ends them."""

    def __init__(self, access: Access, *, user_agent: str) -> None:
        self._access = access
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._pool: _Pool | None = None

    @asynccontextmanager
    async def session(self, certificate: ClientCertificate | None) -> AsyncIterator[aiohttp.ClientSession]:
        """A session whose connections show this certificate."""
        before, pool = self._pool, self._for(certificate)
        # Counted before anything is waited for: a pool without users may be closed by whoever replaces it.
        pool.users += 1
        try:
            if before is not None and before is not pool and not before.users:
                await before.session.close()
            yield pool.session
        finally:
            pool.users -= 1
            if pool is not self._pool and not pool.users:
                await pool.session.close()

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.session.close()

    def _for(self, certificate: ClientCertificate | None) -> _Pool:
        authority, known = self._access.trust.read(), self._pool
        if known is not None and (known.authority, known.certificate) == (authority, certificate):
            return known
        try:
            self._pool = _Pool(self._opened(certificate), authority, certificate)
        except CredentialError as error:
            if known is None:
                raise
            # Certificate and key are replaced one after the other: in between they do not fit.
            log.warning("%s; going on with what was used before", error)
            return known
        return self._pool

    def _opened(self, certificate: ClientCertificate | None) -> aiohttp.ClientSession:
        secure = self._access.server.startswith("https://")
        connector = aiohttp.TCPConnector(
            limit=0,
            ssl=client_context(self._access.trust, certificate) if secure else True,
            socket_factory=_watchful_socket,
        )
        return aiohttp.ClientSession(
            connector=connector, headers=self._headers, cookie_jar=aiohttp.DummyCookieJar()
        )


def _watchful_socket(address: Any) -> socket.socket:
    """A socket that notices within half a minute that the other machine is gone.

    A watch is mostly silent, and the system's own keepalive would wait two hours before it looks.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
