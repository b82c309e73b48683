"""An Ironic that writes down what agents ask of it, over TLS."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from ingot.trust import Authority

NODE = "11111111-2222-3333-4444-555555555555"
TOKEN = "a-token-of-forty-three-characters-or-so-xyz"
_MEANT = ("X-OpenStack-Ironic-API-Version", "Accept", "Content-Type")


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Recorder:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """There was a heartbeat."""

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, state: Path) -> AsyncIterator[Recorder]:
        recorder = cls()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", recorder._any)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        made = Authority(state / "ca").issue(state / "recorder", "api", ["127.0.0.1"])
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.server_context()).start()
        recorder.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield recorder
        finally:
            await runner.cleanup()

    async def _any(self, request: web.Request) -> web.Response:
        headers = {name: request.headers[name] for name in _MEANT if name in request.headers}
        body = await request.json() if request.can_read_body else None
        self.asked.append(Asked(request.method, request.path, dict(request.query), headers, body))
        match request.path:
            case "/":
                return web.json_response({"default_version": {"id": "v1", "version": "1.115"}})
            case "/v1/continue_inspection":
                return web.json_response({"uuid": NODE}, status=202)
            case "/v1/lookup":
                config = {"heartbeat_timeout": 300, "agent_token": TOKEN, "agent_md5_checksum_enable": False}
                return web.json_response({"node": {"uuid": NODE}, "config": config})
        self.heard.set()
        return web.Response(status=202)
