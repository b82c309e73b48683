"""`ingot operator --controllers images`: the process that makes and serves ramdisks, alone with an API."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import aiohttp
import pytest
from coreos_payloads import NEW, OLD, damaged, made_payload, switch_to

from ingot.api.core import LEASES, NAMESPACES
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES, PreprovisioningImage
from ingot.embedded.server import serve
from ingot.kube import Client
from ingot.trust import Authority, client_context

T = TypeVar("T")

NAMESPACE = "rack"
PATIENCE = 60.0


class Images:
    """The process, and who asks it for images."""

    def __init__(self, state: Path, client: Client) -> None:
        self.state = state
        self.client = client
        self.payload = state.parent / "payload"
        self._log = state.parent / "images.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def start(self, *options: str) -> None:
        authority = Authority(self.state / "ca")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-c", "from ingot.cli.main import main; main()"),
                    *("operator", "--state", str(self.state), "--controllers", "images"),
                    *("--payload", str(self.payload), "--images-listen", f"127.0.0.1:{self._port}"),
                    *("--payload-seconds", "0.5", "--health-listen", "127.0.0.1:0", *options),
                ],
                env={
                    **os.environ,
                    "KUBECONFIG": str(self.state / "kubeconfig"),
                    "IRONIC_BASE_URL": "https://127.0.0.1:6385",
                    "IRONIC_CACERT_FILE": str(authority.ca_file),
                },
                stdout=log,
                stderr=log,
            )

    async def ready(self) -> None:
        async def says_so() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            found = re.search(r"images served on port (\d+)", self.log())
            self._port = int(found[1]) if found else 0
            return found is not None

        await self.until(says_so)

    def log(self) -> str:
        return self._log.read_text()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(60)

    async def until(self, condition: Callable[[], Awaitable[T | None]]) -> T:
        end = time.monotonic() + PATIENCE
        while not (found := await condition()):
            assert time.monotonic() < end, self.log()
            await asyncio.sleep(0.1)
        return found

    async def ask(self, name: str) -> Key:
        spec = {"acceptFormats": ["iso", "initrd"], "architecture": "x86_64"}
        await self.client.create(
            PREPROVISIONING_IMAGES, {"metadata": {"name": name}, "spec": spec}, namespace=NAMESPACE
        )
        return Key(NAMESPACE, name)

    async def built(self, key: Key, version: str) -> PreprovisioningImage:
        async def is_there() -> PreprovisioningImage | None:
            found = await self.client.get(PREPROVISIONING_IMAGES, key)
            return found if found.status.image_url and found.status.version == version else None

        return await self.until(is_there)

    async def fetch(self, url: str, token: str = "") -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        trusted = client_context(Authority(self.state / "ca").ca_file)
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted)) as session,
            session.get(url, headers=headers) as answer,
        ):
            return answer.status, await answer.read()


@pytest.fixture
async def images(tmp_path: Path) -> AsyncIterator[Images]:
    state = tmp_path / "state"
    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(serve(state))
        client = await stack.enter_async_context(Client.from_kubeconfig(api.kubeconfig))
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        made = Images(state, client)
        await asyncio.to_thread(made_payload, tmp_path / "old", OLD)
        switch_to(made.payload, tmp_path / "old")
        yield made
        with contextlib.suppress(ProcessLookupError):
            made.kill()


async def test_a_ramdisk_has_the_same_url_after_the_process_was_killed(images: Images) -> None:
    images.start()
    await images.ready()
    key = await images.ask("h1")
    before = (await images.built(key, OLD)).status
    status, iso = await images.fetch(before.image_url)
    assert (status, iso[32769:32774]) == (200, b"CD001")
    assert images.kill() == -signal.SIGKILL
    images.start()
    await images.ready()

    async def served() -> bytes | None:
        status, content = await images.fetch(before.image_url)
        assert status in (200, 503)
        return content if status == 200 else None

    assert await images.until(served) == iso
    assert (await images.client.get(PREPROVISIONING_IMAGES, key)).status == before


async def test_another_payload_is_taken_up_and_a_damaged_one_is_not(images: Images, tmp_path: Path) -> None:
    images.start()
    await images.ready()
    key = await images.ask("h1")
    first = (await images.built(key, OLD)).status
    switch_to(images.payload, await asyncio.to_thread(made_payload, tmp_path / "new", NEW))
    second = (await images.built(key, NEW)).status
    assert second.image_url != first.image_url
    assert (await images.fetch(first.image_url))[0] == 200, "a server may still run from it"
    bad = await asyncio.to_thread(made_payload, tmp_path / "bad", "fedora-coreos-45.0")
    switch_to(images.payload, damaged(bad))
    notice = images.state / "images" / "notice"

    async def noticed() -> bool:
        return notice.exists()

    await images.until(noticed)
    assert "damaged" in notice.read_text()
    kept = (await images.client.get(PREPROVISIONING_IMAGES, key)).status
    assert (kept.version, kept.image_url) == (NEW, second.image_url)
    assert (await images.fetch(second.image_url))[0] == 200
    switch_to(images.payload, tmp_path / "old")
    assert (await images.built(key, OLD)).status.image_url == first.image_url

    async def mended() -> bool:
        return not notice.exists()

    await images.until(mended)


async def test_it_leads_by_a_lease_of_its_own_and_tells_how_it_is(images: Images) -> None:
    images.start("--leader-elect", "--lease-namespace", NAMESPACE)
    await images.ready()
    leases = await images.client.list(LEASES, namespace=NAMESPACE)
    assert [lease.metadata.name for lease in leases.items] == ["ingot-images"]
    found = re.search(r"health and metrics served on port (\d+)", images.log())
    assert found is not None
    token = (images.state / "images" / "metrics-token").read_text().strip()
    health = f"https://127.0.0.1:{found[1]}"

    async def is_well() -> bool:
        return (await images.fetch(f"{health}/readyz"))[0] == 200

    await images.until(is_well)
    status, told = await images.fetch(f"{health}/readyz?verbose", token)
    assert (status, b"[+]images ok" in told, b"backend" in told) == (200, True, False)
    assert b'controller="images"' in (await images.fetch(f"{health}/metrics", token))[1]
    assert images.kill(signal.SIGTERM) == 0
