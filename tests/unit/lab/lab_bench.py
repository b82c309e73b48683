"""A farm with one server on the bench, and hands for its BMC: what a test of the lab works with."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import http.client
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from lab_ironic import DEADLINE, LabIronic

from ingot.formats.iso9660 import build_iso
from ingot.lab.client import Lab
from ingot.lab.labfile import Plate
from ingot.lab.settings import Timings
from ingot.lab.views import ServerView
from ingot.trust import Authority, client_context

FAST = Timings(
    boot=0.02,
    boot_unwatched=0.2,
    task=0.05,
    bmc_restart=0.2,
    shutdown=0.05,
    heartbeat_gap=0.2,
    step=0.0,
)
"""Safe here because the Ironic of these tests has no races."""


@dataclass
class Bench:
    state: Path
    lab: Lab
    ironic: LabIronic
    number: int = 0
    """Which of the farm's servers is on the bench."""
    ramdisk_url: str = ""
    """A ramdisk of its own; the farm's when there is none."""

    @property
    def plate(self) -> Plate:
        return self.lab.file.servers[self.number]

    async def server(self) -> ServerView:
        return await self.lab.server(self.plate.name)

    async def said(self, text: str) -> str:
        """The line of the server's log with this text, once it is there."""
        line = ""

        async def there() -> bool:
            nonlocal line
            line = next((entry.text for entry in (await self.server()).log if text in entry.text), "")
            return bool(line)

        await until(there, f"a log line with {text!r}")
        return line

    async def bmc(
        self, method: str, path: str = "", body: Any = None, **options: Any
    ) -> tuple[int, Any, Any]:
        """Call the BMC with the right password unless `auth` or `headers` say otherwise: status, JSON, headers."""
        plate = self.plate
        if not path.startswith("/"):
            path = f"/redfish/v1/Systems/{plate.system_id}" + (f"/{path}" if path else "")
        headers = dict(options.pop("headers", {}))
        login: tuple[str, str] | None = options.pop("auth", (plate.username, plate.password))
        if login is not None:
            headers["Authorization"] = aiohttp.encode_basic_auth(*login)
        connector = aiohttp.TCPConnector(ssl=client_context(self.state / "ca" / "ca.crt"))
        url = f"https://{plate.host}:{plate.bmc_port}{path}"
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, url, json=body, headers=headers, **options) as answer,
        ):
            text = await answer.read()
            return answer.status, (await answer.json() if text else None), answer.headers

    async def reset(self, kind: str) -> None:
        status, body, _ = await self.bmc("POST", "Actions/ComputerSystem.Reset", {"ResetType": kind})
        assert status == 204, body

    async def insert(self, url: str, slot: str = "Cd") -> None:
        path = f"/redfish/v1/Managers/1/VirtualMedia/{slot}/Actions/VirtualMedia.InsertMedia"
        status, body, _ = await self.bmc("POST", path, {"Image": url})
        assert status == 204, body

    async def boot_next(self, target: str, enabled: str = "Once") -> None:
        boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled}
        status, body, _ = await self.bmc("PATCH", "", {"Boot": boot})
        assert status == 204, body

    async def boot_medium(self, url: str) -> None:
        await self.insert(url)
        await self.boot_next("Cd")
        await self.reset("On")
        await self.bmc("GET")

    async def boot_ramdisk(self) -> None:
        """Switch on into the ramdisk and return when its agent was heard."""
        heard = len(self.ironic.heartbeats)
        await self.boot_medium(self.ramdisk_url or self.lab.file.ramdisk_url)

        async def spoke() -> bool:
            return len(self.ironic.heartbeats) > heard

        await until(spoke, "a heartbeat")

    async def deploy(
        self, image_info: dict[str, Any], *, config_drive: bytes | None = None
    ) -> dict[str, Any]:
        """Order write_image and wait for its end."""
        args: dict[str, Any] = {"image_info": {"id": "image", **image_info}}
        if config_drive is not None:
            args["configdrive"] = base64.b64encode(gzip.compress(config_drive)).decode()
        step = {"interface": "deploy", "step": "write_image", "args": args}
        status, body = await self.ironic.order(
            "deploy.execute_deploy_step", {"step": step, "node": {}, "ports": []}
        )
        assert status == 200, body
        return await self.ironic.finished()

    async def deploy_sample(
        self, format_name: str = "raw", config_drive: bytes | None = None
    ) -> dict[str, Any]:
        image = self.lab.file.image(format_name)
        info = {
            "urls": [image.url],
            "os_hash_algo": "sha256",
            "os_hash_value": image.sha256,
            "disk_format": image.format,
        }
        return await self.deploy(info, config_drive=config_drive)


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(DEADLINE):
            while True:  # across processes there is nothing to wait on but the condition itself
                if await condition():
                    return
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"waited {DEADLINE:.0f} s in vain for {what}") from None


def status_of(bench: Bench, url: str, headers: dict[str, str]) -> int:
    """The answer to a GET whose headers travel byte by byte (Latin-1), as a rude client sends them. Blocks."""
    parts = urlsplit(url)
    context = client_context(bench.state / "ca" / "ca.crt")
    with contextlib.closing(
        http.client.HTTPSConnection(str(parts.hostname), parts.port, context=context)
    ) as connection:
        connection.request("GET", parts.path, headers=headers)
        return connection.getresponse().status


@contextlib.asynccontextmanager
async def serving(
    state: Path, handler: Callable[[web.Request], Awaitable[web.StreamResponse]], ca: str = "ca"
) -> AsyncIterator[str]:
    """A URL that this handler answers, with a certificate of the authority in that folder of the state."""
    app = web.Application()
    app.router.add_get("/file", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    made = Authority(state / ca).issue(state / f"{ca}-served", "x", ["127.0.0.1"])
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.server_context()).start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}/file"
    finally:
        await runner.cleanup()


def config_drive(*, user_data: str, hostname: str) -> bytes:
    files = {
        "/openstack/latest/meta_data.json": f'{{"hostname": "{hostname}"}}'.encode(),
        "/openstack/latest/user_data": user_data.encode(),
        "/openstack/latest/network_data.json": b'{"links": []}',
    }
    return build_iso(files, label="config-2", made_at=datetime(2026, 1, 1, tzinfo=UTC))
