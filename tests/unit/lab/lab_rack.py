"""A rack: one farm with several servers, shared by the tests of a module; each test takes a server and an Ironic of its own.

The medium of a server says which Ironic its agent calls, so agents of one farm can have different ones.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web
from lab_bench import FAST, Bench
from lab_ironic import LabIronic

from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.samples import ramdisk_iso
from ingot.lab.settings import FarmSettings
from ingot.trust import Authority


class Rack:
    def __init__(self, state: Path, lab: Lab, site: Site) -> None:
        self.state = state
        self.lab = lab
        self.site = site
        self._taken = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, state: Path, *, servers: int) -> AsyncIterator[Rack]:
        async with Site.running(state) as site:
            settings = FarmSettings(
                state=state,
                servers=servers,
                agent_api="https://127.0.0.1:1",
                ipxe_url=f"{site.url}/boot.ipxe",
                timings=FAST,
            )
            async with Farm.running(settings), Lab.open(state) as lab:
                yield cls(state, lab, site)

    @contextlib.asynccontextmanager
    async def bench(self) -> AsyncIterator[Bench]:
        number, self._taken = self._taken, self._taken + 1
        ironic = LabIronic()
        await ironic.start(self.state)
        ca = await asyncio.to_thread((self.state / "ca" / "ca.crt").read_bytes)
        medium = await self.lab.add_image(ramdisk_iso(agent_api=ironic.url, ca=ca), name="own.iso")
        try:
            yield Bench(self.state, self.lab, ironic, number, medium.url)
        finally:
            await ironic.stop()


class Site:
    """A web server with whatever files a test puts there; it remembers who asked for them, and how."""

    def __init__(self) -> None:
        self.url = ""
        self.files: dict[str, bytes | int] = {}
        """By path; a number is the status of an answer without anything."""
        self.asked: list[tuple[str, str | None]] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, state: Path) -> AsyncIterator[Site]:
        site = cls()
        app = web.Application()
        app.router.add_get("/{path:.*}", site._any)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        made = Authority(state / "ca").issue(state / "site", "x", ["127.0.0.1"])
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.server_context()).start()
        site.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield site
        finally:
            await runner.cleanup()

    def put(self, path: str, content: bytes | int) -> str:
        self.files[path] = content
        return f"{self.url}/{path}"

    async def _any(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        self.asked.append((path, request.headers.get("Authorization")))
        found = self.files.get(path, 404)
        return web.Response(status=found) if isinstance(found, int) else web.Response(body=found)
