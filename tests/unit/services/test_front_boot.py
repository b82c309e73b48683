"""The boot listener: boot files for iPXE, without TLS, and nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from ingot.services.front.boot import BootListener
from ingot.services.front.limits import Buckets, Rate
from ingot.services.front.server import serve
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority

NODE = "0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11"
MAC = "52-54-00-00-00-01"


class Listening:
    def __init__(self, root: Path, **limits: Buckets) -> None:
        self.root = root
        self._runner = web.AppRunner(BootListener(root, **limits).app(), access_log=None, shutdown_timeout=0)

    async def __aenter__(self) -> Listening:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def publish(self, name: str, content: bytes = b"content") -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    async def call(
        self, method: str, path: str, headers: dict[str, str] | None = None, data: bytes | None = None
    ) -> tuple[int, bytes]:
        url = f"http://127.0.0.1:{self._runner.addresses[0][1]}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, headers=headers, data=data) as answer,
        ):
            assert answer.headers["Server"] == "ingot"
            return answer.status, await answer.read()


@pytest.fixture
async def listening(tmp_path: Path) -> AsyncIterator[Listening]:
    root = tmp_path / "html"
    root.mkdir()
    async with Listening(root) as made:
        yield made


@pytest.mark.parametrize(
    "name", ["boot.ipxe", "agent-ca.img", f"{NODE}/deploy_kernel", f"{NODE}/deploy_ramdisk"]
)
async def test_what_a_machine_boots_is_handed_out_in_pieces_too(listening: Listening, name: str) -> None:
    listening.publish(name, b"0123456789")
    assert await listening.call("GET", f"/{name}") == (200, b"0123456789")
    assert await listening.call("GET", f"/{name}", {"Range": "bytes=2-4"}) == (206, b"234")
    assert await listening.call("HEAD", f"/{name}") == (200, b"")


async def test_the_script_of_a_host_is_found_by_its_mac_while_there_is_one(listening: Listening) -> None:
    listening.publish(f"{NODE}/config", b"#!ipxe\n")
    link = listening.root / "pxelinux.cfg" / MAC
    link.parent.mkdir()
    link.symlink_to(f"../{NODE}/config")
    assert await listening.call("GET", f"/pxelinux.cfg/{MAC}") == (200, b"#!ipxe\n")
    (listening.root / NODE / "config").unlink()
    assert (await listening.call("GET", f"/pxelinux.cfg/{MAC}"))[0] == 404


@pytest.mark.parametrize(
    "name",
    [
        "",
        NODE,
        f"{NODE}/",
        f"{NODE}/config",
        f"{NODE}/boot_iso",
        "pxelinux.cfg",
        "pxelinux.cfg/",
        "pxelinux.cfg/default",
        f"redfish/configdrive-{NODE}",
        f"redfish/boot-{NODE}.iso",
        f"agent_images/{NODE}",
        "master_images/x",
        "../ironic.conf",
        "pxelinux.cfg/..%2f..%2fironic.conf",
        "%2e%2e/ironic.conf",
        f"{NODE}/deploy_kernel/..%2fconfig",
        f"{NODE}/deploy_kernel%00",
    ],
)
async def test_nothing_else_is_handed_out_and_nothing_is_listed(listening: Listening, name: str) -> None:
    (listening.root.parent / "ironic.conf").write_text("secret")
    for kept in (
        f"{NODE}/config",
        f"{NODE}/boot_iso",
        f"{NODE}/deploy_kernel",
        "pxelinux.cfg/default",
        f"redfish/configdrive-{NODE}",
        f"redfish/boot-{NODE}.iso",
        f"agent_images/{NODE}",
        "master_images/x",
    ):
        listening.publish(kept)
    assert (await listening.call("GET", f"/{name}"))[0] == 404


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "OPTIONS"])
async def test_nothing_can_be_sent_to_it(listening: Listening, method: str) -> None:
    listening.publish("boot.ipxe")
    assert (await listening.call(method, "/boot.ipxe", data=b"x"))[0] == 405
    assert (listening.root / "boot.ipxe").read_bytes() == b"content"


async def test_a_link_leads_no_further_than_to_where_ironic_writes(listening: Listening) -> None:
    outside = listening.root.parent / "htpasswd"
    outside.write_text("secret")
    (listening.root / NODE).mkdir()
    (listening.root / NODE / "deploy_kernel").symlink_to(outside)
    (listening.root / "boot.ipxe").symlink_to("boot.ipxe")
    assert (await listening.call("GET", f"/{NODE}/deploy_kernel"))[0] == 404
    assert (await listening.call("GET", "/boot.ipxe"))[0] == 404


async def test_who_asks_and_asks_is_told_to_come_later(tmp_path: Path) -> None:
    async with Listening(tmp_path, addresses=Buckets(Rate(burst=2, each_second=0))) as listening:
        listening.publish("boot.ipxe")
        assert [(await listening.call("GET", "/boot.ipxe"))[0] for _ in range(3)] == [200, 200, 503]


@pytest.mark.parametrize("network_boot", [True, False])
async def test_it_listens_only_where_network_boot_is_switched_on(tmp_path: Path, network_boot: bool) -> None:
    certificate = Authority(tmp_path / "ca").issue(tmp_path / "tls", "front", ["127.0.0.1"])
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        port, boot_port = one.getsockname()[1], other.getsockname()[1]
    paths = IronicPaths.below(tmp_path / "ironic")
    paths.http_root.mkdir(parents=True)
    (paths.http_root / "boot.ipxe").write_text("#!ipxe\n")
    settings = IronicSettings(
        paths=paths,
        cert_file=certificate.cert_file,
        key_file=certificate.key_file,
        ca_file=certificate.ca_file,
        username="ingot",
        password_file=tmp_path / "password",
        reverse_proxy=True,
        listen_port=port,
        boot_port=boot_port,
    )
    settings = replace(settings, network_boot=network_boot)
    listening = asyncio.Event()
    front = asyncio.create_task(serve(settings, listening.set))
    try:
        async with asyncio.timeout(60):
            await listening.wait()
        async with aiohttp.ClientSession() as session:
            if network_boot:
                async with session.get(settings.boot_url) as answer:
                    assert (answer.status, await answer.text()) == (200, "#!ipxe\n")
            else:
                with pytest.raises(aiohttp.ClientConnectionError):
                    await session.get(settings.boot_url)
    finally:
        front.cancel()
        await asyncio.wait([front])
