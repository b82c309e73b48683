"""An image controller in a namespace of some API, with payloads on disk, and somebody who fetches what it advertises."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
from ramdisk_parts import agent_settings, saved

from ingot.api.core import EVENTS, SECRETS
from ingot.api.meta import Condition, Key, now
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES, PreprovisioningImage
from ingot.images.controller import ImageController, ImageSettings, Listen, serving
from ingot.images.controller.statuses import condition_of
from ingot.images.ramdisk import AgentSettings, SettingsError
from ingot.images.release.building import Ingredients, build
from ingot.images.release.layout import Layout
from ingot.kube import Client, EventRecorder, Manager, NotFound
from ingot.trust import Authority, ServingTls, client_context
from live_images import BY_NAME, LABEL, NEWEST

PATIENCE = 60.0
NEW = "fedora-coreos-39.20231101.3.0"
AARCH64 = BY_NAME["2023-07-aarch64"]
HOLD = "tests.example/hold"


def build_payload(folder: Path, label: str = LABEL, *, also: bool = False) -> Path:
    """A release payload for x86_64, and for aarch64 too where that is wanted."""
    isos = {"x86_64": NEWEST, **({"aarch64": AARCH64} if also else {})}
    ingredients = {}
    for architecture, generation in isos.items():
        path = saved(folder.parent, generation, label=label, name=f"{folder.name}-{architecture}.iso")
        ingredients[architecture] = Ingredients(
            iso=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest()
        )
    build(Layout(folder), ingredients)
    return folder


def largest_blob(folder: Path) -> Path:
    """The layer with an ISO image."""
    return max((folder / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)


def damage(path: Path) -> bytes:
    """Change a byte near the end, as a disk does; what was there is returned."""
    content = path.read_bytes()
    path.write_bytes(content[:-5000] + b"?" + content[-4999:])
    return content


def decay(path: Path) -> None:
    """Change a byte near the end so that no look from outside shows it."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-5000, os.SEEK_END)
        (byte,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


class Room:
    def __init__(self, client: Client, namespace: str, folder: Path, **settings: Any) -> None:
        self.client = client
        self.namespace = namespace
        self.folder = folder
        self.agent = agent_settings()
        self.ahead = timedelta(0)
        """How much later it is for the controller."""
        self.wrong = ""
        """What is wrong with the settings by now."""
        self._authority = Authority(folder / "ca")
        self.settings = ImageSettings(
            **{
                "state": folder / "state",
                "agent": self._read_agent_settings,
                "listen": Listen("127.0.0.1", 0),
                "look_every": 0.05,
                "architecture": "x86_64",
                **settings,
            }
        )
        self._stack = AsyncExitStack()
        self._running: asyncio.Task[None] | None = None
        self.controller: ImageController | None = None

    def _read_agent_settings(self) -> AgentSettings:
        if self.wrong:
            raise SettingsError(self.wrong)
        return self.agent

    async def start(self) -> None:
        tls = ServingTls(lambda: self._authority.issue(self.folder, "images", ["127.0.0.1"]))
        self.recorder = await self._stack.enter_async_context(EventRecorder(self.client))
        self.controller = await self._stack.enter_async_context(
            serving(
                self.client,
                self.recorder,
                self.settings,
                tls=tls,
                namespace=self.namespace,
                clock=lambda: now() + self.ahead,
            )
        )
        # The next one listens at the same place: URLs have to be the same after a restart.
        self.settings = replace(self.settings, listen=Listen("127.0.0.1", self.controller.port))

    def run(self) -> None:
        assert self.controller is not None
        manager = Manager(self.controller.informers, self.controller.controllers, tasks=self.controller.tasks)
        self._running = asyncio.create_task(manager.run())

    async def end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        await self._stack.aclose()

    async def restart(self) -> None:
        await self.end()
        await self.begin()

    async def begin(self) -> None:
        await self.start()
        self.run()

    async def kill(self) -> None:
        """As if it had been killed at this very moment: what it does while it ends leaves no trace in its folder."""
        state, found = self.settings.state, self.folder / f"state-{uuid4()}"
        # Files there are replaced and never written over, so links are as good as copies.
        await asyncio.to_thread(shutil.copytree, state, found, copy_function=os.link)
        await self.end()
        await asyncio.to_thread(shutil.rmtree, state)
        found.rename(state)

    # Objects

    async def secret(self, name: str, **values: str) -> str:
        """Make a Secret, or give one these values; its version."""
        key = Key(self.namespace, name)
        try:
            made = await self.client.patch(SECRETS, key, {"stringData": values})
        except NotFound:
            made = await self.client.create(
                SECRETS, {"metadata": {"name": name, "namespace": self.namespace}, "stringData": values}
            )
        return made.metadata.resource_version

    async def ask(
        self,
        name: str = "h1",
        *,
        finalizers: tuple[str, ...] = (),
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> Key:
        await self.client.create(
            PREPROVISIONING_IMAGES,
            {
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "finalizers": list(finalizers),
                    "labels": labels or {},
                },
                "spec": {"acceptFormats": ["iso", "initrd"], "architecture": "x86_64", **spec},
            },
        )
        return Key(self.namespace, name)

    async def change(self, key: Key, patch: dict[str, Any], *, subresource: str = "") -> PreprovisioningImage:
        return await self.client.patch(PREPROVISIONING_IMAGES, key, patch, subresource=subresource)

    async def get(self, key: Key) -> PreprovisioningImage:
        return await self.client.get(PREPROVISIONING_IMAGES, key)

    async def until(self, key: Key, fits: Callable[[PreprovisioningImage], bool]) -> PreprovisioningImage:
        found: PreprovisioningImage | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.get(key)
                    if fits(found):
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it stayed {found}") from None

    async def built(self, key: Key, *, unlike: str = "") -> PreprovisioningImage:
        """The object once it is ready for what it asks for now, with another URL than this one."""
        return await self.until(key, lambda image: is_ready(image) and image.status.image_url != unlike)

    async def refused(self, key: Key, words: str) -> PreprovisioningImage:
        return await self.until(
            key, lambda image: words in (told(image, "Error").message if has(image, "Error") else "")
        )

    async def gone(self, key: Key) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.get(key)
                except NotFound:
                    return
                await asyncio.sleep(0.02)

    async def vanished(self, files: Iterable[Path]) -> None:
        await self.comes_true(lambda: not any(file.exists() for file in files))

    async def comes_true(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                if fact():
                    return
                await asyncio.sleep(0.02)

    async def ready(self) -> None:
        """Every object was looked at."""
        assert self.controller is not None
        await self.comes_true(self.controller.ready)

    async def events(self, reason: str) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = await self.client.list(EVENTS, namespace=self.namespace)
                if found := [event.message for event in listed.items if event.reason == reason]:
                    return found
                await asyncio.sleep(0.02)

    # What is served

    async def fetch(self, url: str, **headers: str) -> tuple[int, bytes]:
        async with self._asked("GET", url, **headers) as answer:
            return answer.status, await answer.read()

    @asynccontextmanager
    async def _asked(self, method: str, url: str, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
        context: ssl.SSLContext = client_context(self._authority.ca_file)
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, ssl=context, headers=headers) as answer,
        ):
            yield answer

    async def served(self, url: str) -> bytes:
        """What is there, however long the server says "later"."""
        async with asyncio.timeout(PATIENCE):
            while True:
                status, content = await self.fetch(url)
                if status != 503:
                    assert status == 200, f"{status} for {url}"
                    return content
                await asyncio.sleep(0.02)

    async def not_served(self, url: str) -> None:
        """Returns once there is nothing there."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if await self.later(url) == 404:
                    return
                await asyncio.sleep(0.02)

    async def headers(self, url: str) -> tuple[str, ...]:
        """What a client recognises an image by."""
        async with self._asked("HEAD", url) as answer:
            return tuple(
                answer.headers[name] for name in ("ETag", "Last-Modified", "Content-Length", "Content-Type")
            )

    async def later(self, url: str) -> int:
        """What is answered, without the bytes: the file below them may be short of some."""
        async with self._asked("HEAD", url) as answer:
            return answer.status


@asynccontextmanager
async def running(client: Client, namespace: str, folder: Path, **settings: Any) -> AsyncIterator[Room]:
    room = Room(client, namespace, folder, **settings)
    try:
        await room.start()
        room.run()
        yield room
    finally:
        await room.end()


def has(image: PreprovisioningImage, kind: str) -> bool:
    return condition_of(image.status, kind) is not None


def told(image: PreprovisioningImage, kind: str) -> Condition:
    found = condition_of(image.status, kind)
    assert found is not None
    return found


def is_ready(image: PreprovisioningImage) -> bool:
    ready = condition_of(image.status, "Ready")
    return (
        ready is not None
        and ready.status == "True"
        and ready.observed_generation == image.metadata.generation
    )
