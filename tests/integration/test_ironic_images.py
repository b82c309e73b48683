"""What the real Ironic's image services do with the URLs that they are given, under the configuration that we write."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from ingot.services.environment import ensure
from ingot.services.ironic_conf import render
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.services.settings_rules import BLOCKED

SCRIPT = Path(__file__).with_name("ironic_images.py")


@pytest.fixture
def settings(tmp_path: Path) -> IronicSettings:
    made = IronicSettings(
        paths=IronicPaths.below(tmp_path / "ironic"),
        cert_file=tmp_path / "tls.crt",
        key_file=tmp_path / "tls.key",
        ca_file=tmp_path / "ca.crt",
        username="ingot",
        password_file=tmp_path / "password",
    )
    made.paths.http_root.mkdir(parents=True)
    made.paths.temporary.mkdir()
    return made


async def fetched(settings: IronicSettings, *urls: str) -> list[dict[str, Any]]:
    """What Ironic makes of each of these URLs."""
    settings.paths.config_file.write_text(render(settings, ("redfish", "idrac")))
    done = await asyncio.to_thread(
        subprocess.run,
        [str(ensure().program("python")), str(SCRIPT), str(settings.paths.config_file)],
        input="\n".join(urls),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def test_of_files_ironic_reads_what_hosts_boot_and_what_is_published(
    settings: IronicSettings, tmp_path: Path
) -> None:
    templates = tmp_path / "templates"
    templates.mkdir()
    for name in ("esp.img", "esp.img.other", "kernel-a", "ramdisk-a", "private"):
        (templates / name).write_text(name)
    (settings.paths.http_root / "published").write_text("published")
    chosen = replace(
        settings,
        bootloader=f"file://{templates}/esp.img",
        deploy_kernel_by_arch=f"aarch64:file://{templates}/kernel-a",
        deploy_ramdisk_by_arch=f"aarch64:file://{templates}/ramdisk-a",
    )
    allowed = [
        f"file://{templates}/esp.img",
        f"file://{templates}/kernel-a",
        f"file://{templates}/ramdisk-a",
        f"file://{settings.paths.http_root}/published",
    ]
    others = [
        f"file://{templates}/private",
        f"file://{templates}/esp.img.other",
        f"file://{templates}/esp.img/../private",
        f"file://{settings.paths.config_file}",
    ]
    read = await fetched(chosen, *allowed, *others)
    assert [answer.get("content") for answer in read] == [
        *("esp.img", "kernel-a", "ramdisk-a", "published"),
        *[None] * len(others),
    ]
    assert all("not allowed" in answer["refused"] for answer in read[len(allowed) :])


async def test_where_ironic_reads_nothing_we_refuse_the_setting(settings: IronicSettings) -> None:
    # Allowed by the list, and refused all the same: only then is it Ironic's own blocking that is seen.
    everywhere = replace(settings, paths=replace(settings.paths, http_root=Path("/etc")))
    blocked = await fetched(everywhere, *(f"file://{folder}/file" for folder in (*BLOCKED, "/srv")))
    assert ["not permitted" in answer["refused"] for answer in blocked] == [True] * len(BLOCKED) + [False]


@dataclass
class ImageServer:
    """Hands out an image, or sends to where it is; keeps the authorization that each caller brought."""

    url: str = ""
    elsewhere: str = ""
    authorizations: list[str | None] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.authorizations.append(request.headers.get("Authorization"))
        if self.elsewhere:
            raise web.HTTPFound(self.elsewhere + request.path)
        return web.Response(text="image")


@asynccontextmanager
async def serving(address: str, server: ImageServer) -> AsyncIterator[ImageServer]:
    app = web.Application()
    app.router.add_get("/{name}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, address, 0).start()
    server.url = f"http://{address}:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("address", ["127.0.0.2", "127.0.0.1"], ids=["another-host", "another-port"])
async def test_the_password_of_a_url_goes_to_no_other_server_that_a_redirect_names(
    settings: IronicSettings, address: str
) -> None:
    async with (
        serving(address, ImageServer()) as second,
        serving("127.0.0.1", ImageServer(elsewhere=second.url)) as first,
    ):
        url = first.url.replace("://", "://reader:hunter2@") + "/image.raw"
        [image] = await fetched(settings, url)
    assert image == {"size": 5, "content": "image"}
    # HEAD and GET, each sent on.
    assert first.authorizations == [aiohttp.encode_basic_auth("reader", "hunter2")] * 2
    assert second.authorizations == [None, None]
