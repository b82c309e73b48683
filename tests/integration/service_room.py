"""One Ironic service as a process of its own, with a push receiver beside it: what tests of the service share.

No BMC is needed: a Redfish node whose BMC refuses connections goes through enough states to see what is pushed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from ingot.services.environment import ensure
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority, Certificate, Secret, client_context, kept_token

DEADLINE = 90.0
BMC_PASSWORD = "correct-horse-battery"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def until(what: Callable[[], Awaitable[Any]], why: str | Callable[[], str]) -> Any:
    """Ask until the answer is true, and return it."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if answer := await what():
            return answer
        await asyncio.sleep(0.1)
    raise AssertionError(f"after {DEADLINE:.0f} s still not: {why if isinstance(why, str) else why()}")


class Receiver:
    """The operator's end of push: wants the token, keeps what it hears."""

    def __init__(self, certificate: Certificate, token: Secret, port: int) -> None:
        self.messages: list[dict[str, Any]] = []
        self._certificate, self._token, self._port = certificate, token, port

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for message in self.messages for event in message["events"]]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Receiver]:
        app = web.Application()
        app.router.add_post("/v1/push", self._take)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(
            runner, "127.0.0.1", self._port, ssl_context=self._certificate.server_context()
        ).start()
        try:
            yield self
        finally:
            await runner.cleanup()

    async def hears(self, wanted: Callable[[dict[str, Any]], bool], why: str) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            return next((event for event in self.events if wanted(event)), None)

        found: dict[str, Any] = await until(look, f"pushed: {why}")
        return found

    async def _take(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self._token.reveal()}":
            return web.Response(status=401)
        self.messages.append(await request.json())
        return web.Response(status=204)


class Ironic:
    """One installation of Ironic in a folder, and the process that serves it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        authority = Authority(folder / "ca")
        certificate = authority.issue(folder / "tls", "ironic", ["127.0.0.1"])
        push_port = free_port()
        self.password = kept_token(folder / "password")
        token_file = folder / "operator" / "push-token"
        self.receiver = Receiver(
            authority.issue(folder / "operator", "push", ["127.0.0.1"]), kept_token(token_file), push_port
        )
        self.settings = IronicSettings(
            paths=IronicPaths.below(folder / "ironic"),
            cert_file=certificate.cert_file,
            key_file=certificate.key_file,
            ca_file=certificate.ca_file,
            username="ingot",
            password_file=folder / "password",
            listen_port=free_port(),
            push_url=f"https://127.0.0.1:{push_port}/v1/push",
            push_ca_file=authority.ca_file,
            push_token_file=token_file,
            bmc_ca_file=authority.ca_file,
            **settings,
        )
        self.log = folder / "ironic.log"
        self.programs = folder / "bin"
        self.process: subprocess.Popen[bytes] | None = None
        self.front: subprocess.Popen[bytes] | None = None
        # Ironic may be killed between two calls; a connection kept alive would be the old one's.
        socket = self.settings.api_socket
        self.session = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(str(socket), force_close=True)
            if socket
            else aiohttp.TCPConnector(ssl=client_context(self.settings.ca_file), force_close=True)
        )

    def command(self, service: str = "ironic") -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(Path(sys.executable).with_name("ingot")), "service", service],
                env={
                    **os.environ,
                    **self.settings.to_environment(),
                    "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def start(self) -> None:
        # Making its environment can take minutes; that is not what a test is patient about.
        await asyncio.to_thread(ensure, self.settings.version)
        self.process = self.command()
        await until(self.answers, self._log_of("Ironic"))

    async def start_front(self) -> None:
        self.front = self.command("front")
        await until(self.front_answers, self._log_of("the front server"))

    def _log_of(self, who: str) -> Callable[[], str]:
        return lambda: f"an answer from {who}; the log:\n{self.log.read_text()[-3000:]}"

    async def front_answers(self) -> bool:
        try:
            return (await self.call_front("GET", "/healthz"))[0] == 200
        except aiohttp.ClientConnectionError:
            return False

    async def call_front(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """As an agent would: over TLS, without a password."""
        async with self.session.request(method, self.settings.base_url + path, json=body) as answer:
            return answer.status, await answer.text()

    def program(self, name: str) -> None:
        """A program that does nothing, on the PATH of Ironic."""
        self.programs.mkdir(exist_ok=True)
        file = self.programs / name
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)

    async def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            return (await self.call("GET", "/", auth=False))[0] == 200
        except aiohttp.ClientConnectionError:
            return False

    async def call(
        self, method: str, path: str, body: Any = None, *, auth: bool = True, version: str = "1.109"
    ) -> tuple[int, Any]:
        headers = {"X-OpenStack-Ironic-API-Version": version}
        if auth:
            headers["Authorization"] = aiohttp.encode_basic_auth("ingot", self.password.reveal())
        async with self.session.request(
            method, self.settings.api_url + path, json=body, headers=headers
        ) as answer:
            text = await answer.text()
            return answer.status, (
                await answer.json() if text and answer.content_type == "application/json" else text
            )

    async def create_node(self, name: str) -> str:
        status, node = await self.call(
            "POST",
            "/v1/nodes",
            {
                "name": name,
                "driver": "redfish",
                "driver_info": {
                    "redfish_address": f"https://127.0.0.1:{free_port()}",
                    "redfish_system_id": "/redfish/v1/Systems/1",
                    "redfish_username": "admin",
                    "redfish_password": BMC_PASSWORD,
                },
            },
        )
        assert status == 201, node
        return str(node["uuid"])

    async def close(self) -> None:
        await self.session.close()
        for process in (self.front, self.process):
            if process is not None:
                await asyncio.to_thread(self._stop, process)

    @staticmethod
    def _stop(process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
