"""What happens to the files under images that are served: written over, moved, taken away, not to be written for a while."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import shutil
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from image_room import (
    HOLD,
    NEW,
    PATIENCE,
    Room,
    build_payload,
    damage,
    has,
    is_ready,
    largest_blob,
    running,
    told,
)
from ramdisk_parts import appended_members, saved

from ingot.api.crd import all_crds
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.embedded.server import serve
from ingot.hosts.beside.ramdisks import what_is_missing
from ingot.kube import Client
from live_images import BY_NAME

pytestmark = pytest.mark.asyncio(loop_scope="module")

NMSTATE = '{"interfaces": [{"name": "eth0", "type": "ethernet", "ipv4": {"enabled": true, "dhcp": true}}]}'


def folder_of_files(folder: Path, iso: Path) -> Path:
    """A payload in its other shape: the ISO image and its hash."""
    folder.mkdir()
    shutil.copy(iso, folder / "coreos-x86_64.iso")
    (folder / "coreos-x86_64.iso.sha256").write_text(hashlib.sha256(iso.read_bytes()).hexdigest())
    return folder


async def one_after_the_other(room: Room) -> tuple[Key, str, str]:
    """Who asked for an image and then for another: the URL that nobody is told of any more, and the one that is advertised."""
    await room.secret("net", nmstate=NMSTATE)
    key = await room.ask(networkDataName="net")
    first = (await room.built(key)).status.image_url
    await room.secret("net", nmstate=NMSTATE.replace("eth0", "eth1"))
    return key, first, (await room.built(key, unlike=first)).status.image_url


def switch(link: Path, target: Path) -> None:
    beside = link.with_name("next")
    beside.symlink_to(target)
    beside.replace(link)


async def test_the_same_image_in_another_payload_leaves_urls_and_what_is_behind_them_as_they_were(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    link = tmp_path / "current"
    link.symlink_to(payload)
    async with running(client, namespace, tmp_path, payload=link) as room:
        key, first, second = await one_after_the_other(room)
        contents = [await room.served(url) for url in (first, second)]
        # The ISO image lies elsewhere in its file here.
        switch(link, folder_of_files(tmp_path / "files", tmp_path / "payload-x86_64.iso"))
        made = tmp_path / "state" / "made"
        async with asyncio.timeout(60):
            while True:
                if any(path.samefile(tmp_path / "files" / "coreos-x86_64.iso") for path in made.iterdir()):
                    break
                await asyncio.sleep(0.02)
        for _ in range(10):
            assert [await room.served(url) for url in (first, second)] == contents
            await asyncio.sleep(0.05)
        assert (await room.get(key)).status.image_url == second


async def test_what_was_served_of_a_file_that_was_written_over_is_not_served_any_more(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    iso = saved(tmp_path, name="ipa.iso")
    async with running(client, namespace, tmp_path, iso=iso) as room:
        key = await room.ask()
        before = (await room.built(key)).status.image_url
        saved(tmp_path, label=NEW, name="ipa.iso")
        after = await room.built(key, unlike=before)
        assert after.status.version == NEW
        await room.not_served(before)


async def test_a_file_of_a_payload_that_was_written_over_is_noticed_at_the_next_look(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload) as room:
        key, first, second = await one_after_the_other(room)
        whole = damage(largest_blob(payload))
        await room.refused(key, "damaged")
        # Also what nobody was told of any more, and still was served.
        await room.not_served(first)
        await room.not_served(second)
        largest_blob(payload).write_bytes(whole)
        assert (await room.built(key)).status.image_url == second


async def test_what_lies_in_a_file_that_was_cut_short_is_not_served_any_more_when_the_file_is_whole_again(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload) as room:
        key, first, second = await one_after_the_other(room)
        content = await room.served(second)
        (used,) = (tmp_path / "state" / "made").glob("*.blob")
        # In the place of the second name, so that looking at the payload itself shows nothing.
        cut = tmp_path / "cut"
        cut.write_bytes(used.read_bytes()[:4096])
        cut.replace(used)
        await room.not_served(first)
        async with asyncio.timeout(PATIENCE):
            while True:
                # As long as the file is short, a transfer of what is still advertised ends early.
                with contextlib.suppress(aiohttp.ClientPayloadError):
                    if await room.fetch(second) == (200, content):
                        break
                await asyncio.sleep(0.02)
        await room.until(key, lambda image: is_ready(image) and image.status.image_url == second)


async def test_a_payload_that_was_taken_away_is_not_damage_to_what_is_served_under_its_second_name(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload, verify_every=0.05) as room:
        key = await room.ask()
        before = await room.built(key)
        content = await room.served(before.status.image_url)
        await asyncio.to_thread(shutil.rmtree, payload / "blobs")
        await room.until(key, lambda image: has(image, "UpToDate"))
        for _ in range(10):
            image = await room.get(key)
            assert is_ready(image)
            assert image.status.image_url == before.status.image_url
            assert await room.served(before.status.image_url) == content
            await asyncio.sleep(0.05)


async def test_an_image_that_is_being_deleted_is_not_advertised_when_it_cannot_be_made_again(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload) as room:
        key = await room.ask(finalizers=(HOLD,))
        before = await room.built(key)
        await room.client.delete(PREPROVISIONING_IMAGES, key)
        await room.until(key, lambda image: image.metadata.deletion_timestamp is not None)
        await room.end()
        build_payload(payload, NEW)
        shutil.rmtree(tmp_path / "state" / "served")
        await room.begin()
        image = await room.until(key, lambda image: image.status.image_url != before.status.image_url)
        # Whoever holds it is told that this is not what was asked for, and lets go.
        assert what_is_missing(image, network_version="") == "it was built for an earlier request"
        assert await room.later(before.status.image_url) == 404


async def test_what_could_not_be_kept_for_a_while_is_made_when_there_is_room(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    (tmp_path / "state").mkdir()
    made = tmp_path / "state" / "made"
    made.write_bytes(b"no folder")
    async with running(
        client, namespace, tmp_path, payload=payload, minimal_iso=True, retry_every=0.2
    ) as room:
        key = await room.ask()
        image = await room.refused(key, "cannot be kept")
        assert told(image, "Error").reason == "ImageBuildInvalid"
        made.unlink()
        await room.built(key)


async def test_a_link_in_a_payload_is_followed_to_the_file_itself(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    folder = folder_of_files(tmp_path / "files", tmp_path / "payload-x86_64.iso")
    (folder / "coreos-x86_64.iso").rename(tmp_path / "elsewhere.iso")
    (folder / "coreos-x86_64.iso").symlink_to("../elsewhere.iso")
    async with running(client, namespace, tmp_path, payload=folder) as room:
        key = await room.ask()
        before = await room.built(key)
        content = await room.served(before.status.image_url)
        (tmp_path / "elsewhere.iso").unlink()
        await room.until(key, lambda image: has(image, "UpToDate"))
        assert await room.served(before.status.image_url) == content


# The API of others


class CountingClient(Client):
    """Counts what is written to statuses of images."""

    written = 0

    async def patch(self, *given: Any, **more: Any) -> Any:
        self.written += more.get("subresource") == "status"
        return await super().patch(*given, **more)


def published_definitions() -> list[dict[str, Any]]:
    """Ours without the field that the published PreprovisioningImage does not have."""
    definitions = [copy.deepcopy(dict(definition)) for definition in all_crds()]
    (images,) = [each for each in definitions if each["spec"]["names"]["plural"] == "preprovisioningimages"]
    for version in images["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["version"]
    return definitions


async def test_where_the_api_drops_the_version_it_is_not_written_again_and_again(
    tmp_path: Path, payload: Path
) -> None:
    async with (
        serve(tmp_path / "api", crds=published_definitions()) as api,
        CountingClient.from_kubeconfig(api.kubeconfig) as client,
        running(client, "default", tmp_path, payload=payload) as room,
    ):
        keys = [await room.ask(f"h{number}") for number in range(5)]
        for key in keys:
            assert (await room.built(key)).status.version == ""
        before = client.written
        for key in keys:
            await room.change(key, {"metadata": {"labels": {"rack": "r7"}}})
        await room.restart()
        for key in keys:
            await room.served((await room.get(key)).status.image_url)
        # The first passes after a restart find out once more.
        found_out = client.written - before
        assert found_out <= len(keys)
        for turn in range(3):
            for key in keys:
                await room.change(key, {"metadata": {"labels": {"rack": f"r{turn}"}}})
        await room.built(await room.ask("last"))
        await asyncio.sleep(0.3)
        assert client.written - before <= found_out + 1


async def test_an_image_whose_root_is_fetched_without_the_hosts_network_says_so(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    old = saved(tmp_path, BY_NAME["2021-09"], name="old.iso")
    async with running(client, namespace, tmp_path, payload=folder_of_files(tmp_path / "files", old)) as room:
        await room.secret("net", nmstate=NMSTATE)
        key = await room.ask(networkDataName="net", acceptFormats=["initrd"])
        image = await room.built(key)
        found = told(image, "EarlyNetwork")
        assert (found.status, found.reason) == ("False", "NoNetworkInInitialRamDisk")
        assert "from DHCP, and what Secret net says holds only after that" in found.message
        assert list(appended_members(await room.served(image.status.image_url))) == ["config.ign"]
        assert len(await room.events("NoNetworkInInitialRamDisk")) == 1
        await room.change(key, {"spec": {"acceptFormats": ["iso"]}})
        image = await room.built(key, unlike=image.status.image_url)
        assert not has(image, "EarlyNetwork"), "the root file system is on the medium"
