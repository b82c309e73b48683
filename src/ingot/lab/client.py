"""Talking to a farm's control face: for tests, benches and `ingot up`.

    async with Lab.open(state) as lab:
        server = await lab.server("server-1")

`open` finds address, token and CA in the state folder of the farm.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from ingot.lab import labfile
from ingot.lab.errors import LabError
from ingot.lab.faults import Faults, Planned
from ingot.lab.labfile import LabFile
from ingot.lab.record import PowerState
from ingot.lab.views import AddedImage, BmcReset, Change, Changed, Hold, NewPassword, Runs, ServerView
from ingot.trust import Secret, client_context


class Lab:
    def __init__(self, session: aiohttp.ClientSession, state: Path) -> None:
        self._session = session
        self.state: Final = state

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, state: Path) -> AsyncIterator[Self]:
        """The lab of this state folder."""
        labfile.load(state)
        try:
            token = Secret((state / "lab" / "token").read_text().strip())
        except FileNotFoundError:
            raise LabError(f"the lab in {state} is not built to its end; start it again") from None
        connector = aiohttp.TCPConnector(ssl=client_context(state / "ca" / "ca.crt"))
        headers = {"Authorization": f"Bearer {token.reveal()}"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield cls(session, state)

    @property
    def file(self) -> LabFile:
        """What was built: plates with passwords, the ramdisk's URL, the sample images."""
        return labfile.load(self.state)

    async def servers(
        self,
        name: str = "*",
        *,
        power: PowerState | None = None,
        runs: Runs | None = None,
        history: bool = True,
    ) -> list[ServerView]:
        """Those whose name matches the pattern; with a thousand of them, ask without their history."""
        query = {"name": name, "power": power, "runs": runs, "history": str(history).lower()}
        given = urlencode({key: value for key, value in query.items() if value is not None})
        return msgspec.json.decode(await self._call("GET", f"/servers?{given}"), type=list[ServerView])

    async def server(self, name: str) -> ServerView:
        return msgspec.json.decode(await self._call("GET", _path(name)), type=ServerView)

    async def change(self, pattern: str, change: Change) -> list[str]:
        """Change all servers whose name matches; the names of those. What the change does not give stays."""
        path = f"/servers?{urlencode({'name': pattern})}"
        return msgspec.json.decode(await self._call("PUT", path, body=change), type=Changed).names

    async def set_faults(self, name: str, faults: Faults) -> ServerView:
        """Replace the server's steady faults; `Faults()` is good behaviour."""
        answer = await self._call("PUT", f"{_path(name)}/faults", body=faults)
        return msgspec.json.decode(answer, type=ServerView)

    async def set_plan(self, name: str, *plan: Planned) -> ServerView:
        """Replace the server's plan of faults, which counts from now on; nothing planned ends it."""
        answer = await self._call("PUT", f"{_path(name)}/plan", body=list(plan))
        return msgspec.json.decode(answer, type=ServerView)

    async def hold(self, name: str, place: str) -> ServerView:
        """Let the server wait when it comes to this place: "boot", "inspection", or the name of an agent's step."""
        answer = await self._call("PUT", f"{_path(name)}/hold", body=Hold(place=place))
        return msgspec.json.decode(answer, type=ServerView)

    async def release(self, name: str) -> ServerView:
        """Let the server go on from where it is held."""
        return await self.hold(name, "")

    async def reset_bmc(self, name: str, seconds: float = 5.0) -> None:
        """The BMC is away for so long, and forgets its sessions. Returns at once."""
        await self._call("POST", f"{_path(name)}/bmc/reset", body=BmcReset(seconds=seconds))

    async def set_password(self, name: str, password: str) -> None:
        await self._call("POST", f"{_path(name)}/password", body=NewPassword(password=password))

    async def add_image(self, content: bytes, *, name: str = "image.raw") -> AddedImage:
        answer = await self._call("POST", f"/images?{urlencode({'name': name})}", body=content)
        return msgspec.json.decode(answer, type=AddedImage)

    async def _call(self, method: str, path: str, *, body: Any = None) -> bytes:
        base = self.file.control_url
        data = io.BytesIO(body if isinstance(body, bytes) else msgspec.json.encode(body))
        try:
            async with self._session.request(
                method, f"{base}/lab/v1{path}", data=None if body is None else data
            ) as answer:
                content = await answer.read()
                if answer.status >= 300:
                    raise LabError(_told(answer.status, content))
                return content
        except (aiohttp.ClientError, TimeoutError) as error:
            raise LabError(f"the lab at {base} does not answer ({error}); is the farm running?") from error


def _path(name: str) -> str:
    return f"/servers/{quote(name, safe='')}"


class _Error(msgspec.Struct):
    error: str


def _told(status: int, content: bytes) -> str:
    """The farm's own sentence, where it has one."""
    try:
        return msgspec.json.decode(content, type=_Error).error
    except msgspec.DecodeError:
        return f"the lab answers HTTP {status}: {content.decode('utf-8', 'replace')[:500]}"
