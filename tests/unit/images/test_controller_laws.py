"""Whatever happens to images, payloads, Secrets, settings and the builder itself, in whatever order: what is advertised is there,
it is what its URL always was, and in the end every host has what it asks for."""

from __future__ import annotations

import asyncio
import hashlib
import io
import random
import shutil
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
from image_room import NEW, Room, build_payload, damage, is_ready, largest_blob
from ramdisk_parts import agent_settings, appended_members

from ingot.api.core import NAMESPACES, SECRETS
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES, PreprovisioningImage
from ingot.embedded.server import serve
from ingot.formats.coreos import LiveIso
from ingot.formats.network import keyfiles_of_nmstate
from ingot.images.ramdisk import agent_ignition
from ingot.kube import Client, NotFound
from live_images import LABEL, live_initrd

HOSTS = ("h1", "h2", "h3")
STEPS = 24
DAMAGED = "fedora-coreos-damaged"


def nmstate(interface: str) -> str:
    return f'{{"interfaces": [{{"name": "{interface}", "type": "ethernet", "ipv4": {{"enabled": true, "dhcp": true}}}}]}}'


class Story:
    """What a test does to the room, and what it knows must come of it."""

    def __init__(self, room: Room, payload: Path, seed: int) -> None:
        self.room = room
        self.payload = payload
        self.chance = random.Random(seed)
        self.label = LABEL
        self.networks: dict[str, str] = {}
        """By the name of the Secret, the interface in it."""
        self.contents: dict[str, str] = {}
        """By URL, the hash of what was there."""
        self.over = False

    async def step(self) -> None:
        often = [self.ask, self.network]
        seldom = [self.forget_network, self.formats, self.new_payload, self.settings]
        trouble = [self.restart, self.delete, self.spoil]
        await self.chance.choice([*often, *often, *seldom, *trouble])()
        if self.chance.random() < 0.5:
            await asyncio.sleep(self.chance.random() * 0.1)

    async def ask(self) -> None:
        name = self.chance.choice(HOSTS)
        try:
            await self.room.get(Key(self.room.namespace, name))
        except NotFound:
            network = self.chance.choice(["", f"net-{name}"])
            formats = self.chance.choice([["iso"], ["initrd"], ["iso", "initrd"]])
            await self.room.ask(name, acceptFormats=formats, networkDataName=network)

    async def change(self, patch: dict[str, object], *, subresource: str = "") -> None:
        try:
            await self.room.change(
                Key(self.room.namespace, self.chance.choice(HOSTS)), patch, subresource=subresource
            )
        except NotFound:
            return

    async def formats(self) -> None:
        await self.change({"spec": {"acceptFormats": [self.chance.choice(["iso", "initrd"])]}})

    async def spoil(self) -> None:
        await self.change({"status": {"conditions": None, "version": "spoilt"}}, subresource="status")

    async def network(self) -> None:
        name, interface = f"net-{self.chance.choice(HOSTS)}", f"eth{self.chance.randrange(9)}"
        await self.room.secret(name, nmstate=nmstate(interface))
        self.networks[name] = interface

    async def forget_network(self) -> None:
        if self.networks:
            name = self.chance.choice(sorted(self.networks))
            del self.networks[name]
            await self.room.client.delete(SECRETS, Key(self.room.namespace, name))

    async def new_payload(self) -> None:
        self.label = self.chance.choice([LABEL, NEW])
        if self.chance.random() < 0.3:
            # First one that is damaged, which nobody may get.
            aside = build_payload(self.room.folder / f"aside-{uuid4()}", DAMAGED)
            damage(largest_blob(aside))
            shutil.copytree(aside, self.payload, dirs_exist_ok=True)
            await asyncio.sleep(self.chance.random() * 0.2)
        build_payload(self.payload, self.label)

    async def settings(self) -> None:
        self.room.agent = agent_settings(ntp_servers=(f"time{self.chance.randrange(5)}.example",))

    async def restart(self) -> None:
        await self.room.restart()

    async def delete(self) -> None:
        try:
            await self.room.client.delete(
                PREPROVISIONING_IMAGES, Key(self.room.namespace, self.chance.choice(HOSTS))
            )
        except NotFound:
            return

    # What must hold

    async def watch(self) -> None:
        """Somebody who boots whatever is advertised, all the time."""
        while not self.over:
            for image in (
                await self.room.client.list(PREPROVISIONING_IMAGES, namespace=self.room.namespace)
            ).items:
                if is_ready(image) and image.status.image_url:
                    await self.boot(image)
            await asyncio.sleep(0.01)

    async def boot(self, image: PreprovisioningImage) -> None:
        url = image.status.image_url
        assert image.status.version != DAMAGED
        try:
            status, content = await self.room.fetch(url)
        except aiohttp.ClientError:
            return  # it is being restarted
        if status == 200:
            found = hashlib.sha256(content).hexdigest()
            assert self.contents.setdefault(url, found) == found
        elif status != 503:
            assert status == 404
            await self.is_not_advertised(image.key, url)

    async def is_not_advertised(self, key: Key, url: str) -> None:
        """It is not any more, or it is again and can be had."""
        try:
            image = await self.room.get(key)
            if image.status.image_url != url or image.metadata.deletion_timestamp is not None:
                return
            if await self.room.later(url) not in (200, 503):
                # Withdrawn between the two questions, or else it was advertised all the time.
                now = await self.room.get(key)
                assert now.metadata.resource_version != image.metadata.resource_version, f"nothing at {url}"
        except NotFound:
            return

    async def end(self) -> None:
        for name in HOSTS:
            try:
                image = await self.room.get(Key(self.room.namespace, name))
            except NotFound:
                continue
            if image.metadata.deletion_timestamp is not None:
                await self.room.gone(image.key)
                continue
            network = image.spec.network_data_name
            if network and network not in self.networks:
                await self.room.refused(image.key, "NetworkData secret not found")
            else:
                await self.has_what_it_asks_for(image.key, self.networks[network] if network else "")

    async def has_what_it_asks_for(self, key: Key, interface: str) -> None:
        keyfiles = keyfiles_of_nmstate(nmstate(interface).encode()) if interface else {}
        expected = agent_ignition(self.room.agent, hostname=key.name, keyfiles=keyfiles)
        async with asyncio.timeout(60):
            while True:
                image = await self.room.until(key, is_ready)
                status, content = await self.room.fetch(image.status.image_url)
                if status == 200 and self.is_what_is_asked(image, content, expected):
                    return
                if status == 404:  # read before a restart, asked for after it
                    await self.is_not_advertised(key, image.status.image_url)
                await asyncio.sleep(0.02)

    def is_what_is_asked(self, image: PreprovisioningImage, content: bytes, expected: bytes) -> bool:
        if image.status.format != image.spec.accept_formats[0] or image.status.version != self.label:
            return False
        if image.status.format == "initrd":
            assert content.startswith(live_initrd(label=self.label))
            return appended_members(content)["config.ign"] == expected
        live = LiveIso(io.BytesIO(content))
        assert live.iso.label == self.label
        return live.ignition == expected


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_what_is_advertised_is_there_and_everybody_gets_what_they_ask_for(
    seed: int, tmp_path: Path
) -> None:
    payload = build_payload(tmp_path / "payload")
    async with serve(tmp_path / "api") as api, Client.from_kubeconfig(api.kubeconfig) as client:
        await client.create(NAMESPACES, {"metadata": {"name": "rack"}})
        room = Room(client, "rack", tmp_path, payload=payload)
        story = Story(room, payload, seed)
        await room.start()
        room.run()
        await story.boot(await room.built(await room.ask("h1")))
        reader = asyncio.create_task(story.watch())
        try:
            for _ in range(STEPS):
                await story.step()
                if reader.done():
                    break
            await story.end()
        finally:
            story.over = True
            await reader
            await room.end()
        assert story.contents
