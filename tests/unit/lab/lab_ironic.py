"""Ironic as the simulated agent knows it: look-up, heartbeat, inspection, over TLS, and able to misbehave.

`order` sends a command to the agent as Ironic does: with the token, verifying the certificate that the heartbeat brought.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from ingot.trust import Authority

NODE = "11111111-2222-3333-4444-555555555555"
TOKEN = "a-token-of-forty-three-characters-or-so-xyz"
DEADLINE = 120.0


@dataclass
class LabIronic:
    expects_inspection: bool = True
    token: str = TOKEN
    """What look-up hands out."""
    md5: bool = False
    heartbeat_timeout: float = 300.0
    refuse_heartbeats: int = 0
    refuse_lookups: int = 0
    inspections: list[dict[str, Any]] = field(default_factory=list)
    inspection_tries: int = 0
    refuse_inspections: int = 0
    lookups: list[str] = field(default_factory=list)
    heartbeats: list[dict[str, Any]] = field(default_factory=list)
    heard_at: list[float] = field(default_factory=list)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self, state: Path, port: int = 0) -> None:
        app = web.Application()
        app.router.add_post("/v1/continue_inspection", self._inspection)
        app.router.add_get("/v1/lookup", self._lookup)
        app.router.add_post("/v1/heartbeat/{node}", self._heartbeat)
        made = Authority(state / "ca").issue(state / "ironic", "api", ["127.0.0.1"])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=made.server_context()).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def order(
        self, name: str, params: dict[str, Any], *, wait: bool = False, token: str | None = None
    ) -> Any:
        """The agent's answer: HTTP status and body, which is text where it is no JSON."""
        beat = self.heartbeats[-1]
        query = {"wait": str(wait).lower(), "agent_token": beat["agent_token"] if token is None else token}
        async with (
            self._to_agent() as session,
            session.post(
                f"{beat['callback_url']}/v1/commands/", params=query, json={"name": name, "params": params}
            ) as answer,
        ):
            in_json = answer.content_type == "application/json"
            return answer.status, await (answer.json() if in_json else answer.text())

    async def results(self) -> list[dict[str, Any]]:
        beat = self.heartbeats[-1]
        query = {"agent_token": beat["agent_token"]}
        async with (
            self._to_agent() as session,
            session.get(f"{beat['callback_url']}/v1/commands/", params=query) as answer,
        ):
            return list((await answer.json())["commands"])

    async def finished(self) -> dict[str, Any]:
        """The last command, once it has ended."""
        async with asyncio.timeout(DEADLINE):
            while True:  # as Ironic does: it asks until the command has ended
                last = (await self.results())[-1]
                if last["command_status"] != "RUNNING":
                    return last
                await asyncio.sleep(0.02)

    def _to_agent(self) -> aiohttp.ClientSession:
        context = ssl.create_default_context(cadata=self.heartbeats[-1]["agent_verify_ca"])
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))

    async def _inspection(self, request: web.Request) -> web.Response:
        self.inspection_tries += 1
        if self.refuse_inspections:
            self.refuse_inspections -= 1
            return web.json_response({"error_message": "Resource temporarily unavailable."}, status=503)
        if not self.expects_inspection:
            return web.json_response({"error_message": "Resource could not be found."}, status=404)
        self.inspections.append(await request.json())
        return web.json_response({"uuid": NODE}, status=202)

    async def _lookup(self, request: web.Request) -> web.Response:
        if self.refuse_lookups:
            self.refuse_lookups -= 1
            return web.json_response({"error_message": "locked"}, status=409)
        self.lookups.append(request.query["addresses"])
        config = {
            "heartbeat_timeout": self.heartbeat_timeout,
            "agent_token": self.token,
            "agent_md5_checksum_enable": self.md5,
        }
        self.token = "******"  # handed out once
        return web.json_response({"node": {"uuid": NODE}, "config": config})

    async def _heartbeat(self, request: web.Request) -> web.Response:
        if self.refuse_heartbeats:
            self.refuse_heartbeats -= 1
            return web.json_response({"error_message": "locked"}, status=409)
        self.heartbeats.append(await request.json())
        self.heard_at.append(asyncio.get_running_loop().time())
        return web.Response(status=202)
