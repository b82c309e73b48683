"""The agent's calls to Ironic: inspection data, the API's version, look-up, heartbeat.

One try each; what an answer means for the next try is the agent's to decide. TLS is verified against the CA that came with
the ramdisk and no other, unless the ramdisk says not to. Which version of the API is spoken is found out as the real agent does
it, once.
"""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from ingot.lab.errors import BootFailure

AGENT_VERSION: Final = "13.0.0"
_LOOKUP_VERSION: Final = (1, 62)
"""The newest that the agent asks look-up for."""
_NEWEST: Final = (1, 68)
_VERIFY_CA: Final = (1, 68)


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The call did not succeed: the HTTP status, or 0 when there was no answer."""

    status: int
    why: str


class Config(msgspec.Struct, kw_only=True):
    """What Ironic tells the agent at look-up."""

    heartbeat_timeout: float = 300.0
    agent_token: str = ""
    agent_md5_checksum_enable: bool = False


class _Node(msgspec.Struct):
    uuid: str


class Lookup(msgspec.Struct):
    node: _Node
    config: Config


class _Version(msgspec.Struct):
    version: str


class _Root(msgspec.Struct):
    default_version: _Version


class _Inspected(msgspec.Struct):
    uuid: str = ""


class IronicApi:
    def __init__(self, *, api_url: str, inspection_url: str, ca: str, insecure: bool = False) -> None:
        self.api_url: Final = api_url.rstrip("/")
        self.inspection_url: Final = inspection_url
        self.trusted: Final = _context(ca, insecure=insecure)
        self._version: tuple[int, int] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=60, connect=10)
        # Without a connection kept open: a heartbeat comes too seldom for one, and a restarted Ironic would have closed it.
        connector = aiohttp.TCPConnector(ssl=self.trusted, force_close=True)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def post_inspection(self, data: dict[str, Any]) -> str | NotTaken:
        """Give Ironic the inspection data; the node's UUID, when it says it."""
        answer = await self._call("POST", self.inspection_url, json=data)
        if isinstance(answer, NotTaken):
            return answer
        try:
            return msgspec.json.decode(answer, type=_Inspected).uuid
        except msgspec.DecodeError:
            return ""

    async def lookup(self, macs: list[str], node: str = "") -> Lookup | NotTaken:
        params = {"addresses": ",".join(macs)} | ({"node_uuid": node} if node else {})
        version = min(await self._spoken(), _LOOKUP_VERSION)
        answer = await self._call("GET", f"{self.api_url}/v1/lookup", params=params, version=version)
        if isinstance(answer, NotTaken):
            return answer
        try:
            return msgspec.json.decode(answer, type=Lookup)
        except msgspec.DecodeError as error:
            return NotTaken(200, f"the answer cannot be read: {error}")

    async def heartbeat(
        self, node: str, *, callback_url: str, token: str, certificate: str
    ) -> NotTaken | None:
        version = min(await self._spoken(), _NEWEST)
        body = {"callback_url": callback_url, "agent_token": token, "agent_version": AGENT_VERSION}
        if version >= _VERIFY_CA:
            body["agent_verify_ca"] = certificate
        answer = await self._call("POST", f"{self.api_url}/v1/heartbeat/{node}", json=body, version=version)
        return answer if isinstance(answer, NotTaken) else None

    async def _spoken(self) -> tuple[int, int]:
        if self._version is None:
            answer = await self._call("GET", f"{self.api_url}/")
            if isinstance(answer, NotTaken):
                return _NEWEST  # whatever is wrong, the call itself will say so
            try:
                major, _, minor = msgspec.json.decode(answer, type=_Root).default_version.version.partition(
                    "."
                )
                self._version = int(major), int(minor)
            except (msgspec.DecodeError, ValueError):
                return _NEWEST
        return self._version

    async def _call(
        self,
        method: str,
        url: str,
        *,
        json: dict[str, Any] | None = None,
        params: dict[str, str] | None = None,
        version: tuple[int, int] | None = None,
    ) -> bytes | NotTaken:
        assert self._session is not None
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if version is not None:
            headers["X-OpenStack-Ironic-API-Version"] = f"{version[0]}.{version[1]}"
        try:
            async with self._session.request(
                method, url, json=json, params=params, headers=headers
            ) as answer:
                body = await answer.read()
                if answer.status >= 300:
                    return NotTaken(answer.status, f"HTTP {answer.status}")
                return body
        except (aiohttp.ClientError, TimeoutError) as error:
            return NotTaken(0, str(error) or type(error).__name__)


@functools.lru_cache(maxsize=32)
def _context(ca: str, *, insecure: bool) -> ssl.SSLContext:
    """Whom a ramdisk with this CA trusts. Agents of one farm mostly have the same, and a context is not small."""
    try:
        context = ssl.create_default_context(cadata=ca or None)
    except ssl.SSLError as error:
        raise BootFailure(f"the CA certificate in the ramdisk cannot be read: {error}") from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
