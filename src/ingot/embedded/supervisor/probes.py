"""Questions that show whether a part is well. Each makes a probe: no answer means yes, otherwise it says what is missing."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from ingot.embedded.supervisor.part import Probe
from ingot.trust import client_context

PATIENCE = 5.0


def answers(
    url: str, ca_file: Path, *, headers: Mapping[str, str] | None = None, patience: float = PATIENCE
) -> Probe:
    """GET `url` is answered with success by a server that this CA vouches for."""

    async def probe() -> str:
        timeout = aiohttp.ClientTimeout(total=patience)
        try:
            connector = aiohttp.TCPConnector(ssl=client_context(ca_file))
            async with (
                aiohttp.ClientSession(timeout=timeout, connector=connector, headers=headers) as session,
                session.get(url) as response,
            ):
                return "" if response.ok else f"GET {url} is answered with HTTP {response.status}"
        except TimeoutError:
            return f"GET {url} is not answered within {patience:g} s"
        except (aiohttp.ClientError, OSError) as problem:
            return _refused(problem, urlsplit(url).netloc, f"GET {url}")

    return probe


def connects(port: int, ca_file: Path, *, patience: float = PATIENCE) -> Probe:
    """A TLS server that this CA vouches for accepts connections on the port."""

    async def probe() -> str:
        try:
            async with asyncio.timeout(patience):
                _, writer = await asyncio.open_connection(
                    "127.0.0.1", port, ssl=client_context(ca_file), server_hostname="127.0.0.1"
                )
                writer.close()
                await writer.wait_closed()
        except TimeoutError:
            return f"127.0.0.1:{port} does not answer within {patience:g} s"
        except (OSError, ssl.SSLError) as problem:
            return _refused(problem, f"127.0.0.1:{port}", "connecting to it")
        return ""

    return probe


def may_be_busy(answers: Probe, connects: Probe, *, busy_for: float) -> Probe:
    """Content, too, with a part that answered before and now takes connections only: it has more to do than it can.

    To end it for that would make it worse. After `busy_for` seconds without an answer it counts as hung.
    """
    answered: float | None = None

    async def probe() -> str:
        nonlocal answered
        missing, clock = await answers(), asyncio.get_running_loop().time
        if not missing:
            answered = clock()
            return ""
        if answered is None or clock() - answered > busy_for:
            return missing
        if gone := await connects():
            # Whoever comes in its place has not answered yet.
            answered = None
            return gone
        return ""

    return probe


def _refused(problem: Exception, where: str, asked: str) -> str:
    """The usual one in plain words, for everybody sees it at every start; libraries write it with sockets and tuples."""
    if isinstance(getattr(problem, "os_error", problem), ConnectionRefusedError):
        return f"nothing listens at {where}"
    return f"{asked} does not work: {problem}"
