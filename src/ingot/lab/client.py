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
from typing import Self
from urllib.parse import quote

import aiohttp
import msgspec

from ingot.lab import labfile
from ingot.lab.errors import LabError
from ingot.lab.faults import Faults
from ingot.lab.labfile import LabFile
from ingot.lab.views import AddedImage, NewPassword, ServerView
from ingot.trust import Secret, client_context


class Lab:
    def __init__(self, session: aiohttp.ClientSession, state: Path) -> None:
        self._session = session
        self._state = state

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
        return labfile.load(self._state)

    async def servers(self) -> list[ServerView]:
        return msgspec.json.decode(await self._call("GET", "/servers"), type=list[ServerView])

    async def server(self, name: str) -> ServerView:
        return msgspec.json.decode(
            await self._call("GET", f"/servers/{quote(name, safe='')}"), type=ServerView
        )

    async def set_faults(self, name: str, faults: Faults) -> ServerView:
        """Replace the server's faults; `Faults()` is good behaviour."""
        path = f"/servers/{quote(name, safe='')}/faults"
        return msgspec.json.decode(
            await self._call("PUT", path, body=msgspec.json.encode(faults)), type=ServerView
        )

    async def set_password(self, name: str, password: str) -> None:
        body = msgspec.json.encode(NewPassword(password=password))
        await self._call("POST", f"/servers/{quote(name, safe='')}/password", body=body)

    async def add_image(self, content: bytes, *, name: str = "image.raw") -> AddedImage:
        answer = await self._call("POST", f"/images?name={quote(name, safe='')}", body=io.BytesIO(content))
        return msgspec.json.decode(answer, type=AddedImage)

    async def _call(self, method: str, path: str, *, body: bytes | io.BytesIO | None = None) -> bytes:
        base = self.file.control_url
        try:
            async with self._session.request(method, f"{base}/lab/v1{path}", data=body) as answer:
                content = await answer.read()
                if answer.status >= 300:
                    text = content.decode("utf-8", "replace")[:500]
                    raise LabError(f"the lab answers HTTP {answer.status}: {text}")
                return content
        except (aiohttp.ClientError, TimeoutError) as error:
            raise LabError(f"the lab at {base} does not answer ({error}); is the farm running?") from error
