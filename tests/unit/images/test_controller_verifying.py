"""Whatever images are served from, it is what its hash says: when it is taken, and later, when nobody looks."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
from pathlib import Path

import pytest
from image_room import (
    AARCH64,
    NEW,
    build_payload,
    damage,
    decay,
    has,
    is_ready,
    largest_blob,
    running,
    told,
)
from ramdisk_parts import agent_settings, saved

from ingot.formats.iso9660 import Iso
from ingot.kube import Client
from live_images import BY_NAME, LABEL

pytestmark = pytest.mark.asyncio(loop_scope="module")


def stream_beside(iso: Path, sha256: str, name: str = "") -> None:
    """What `ingot release fetch` leaves beside the images of a stream."""
    disk = {"location": f"https://builds.example/{name or iso.name}", "sha256": sha256}
    artifacts = {"metal": {"release": "1", "formats": {"iso": {"disk": disk}}}}
    document = {"stream": "stable", "architectures": {"x86_64": {"artifacts": artifacts}}}
    iso.with_name("coreos-stream.json").write_text(json.dumps(document))


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# When it is taken


async def test_an_iso_file_of_which_nobody_says_the_hash_is_used_and_said_to_be_unverified(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    iso = saved(tmp_path, name="ipa.iso")
    async with running(client, namespace, tmp_path, iso=iso) as room:
        key = await room.ask()
        image = await room.built(key)
        assert told(image, "Verified").status == "False"
        assert told(image, "Verified").reason == "NoHashToCompareWith"
        assert hash_of(iso) in told(image, "Verified").message
        (tmp_path / "ipa.iso.sha256").write_text(f"{hash_of(iso)}  ipa.iso\n")
        after = await room.until(key, lambda image: not has(image, "Verified"))
        assert after.status.image_url == image.status.image_url


async def test_the_metadata_of_the_stream_beside_an_iso_file_says_what_it_must_be(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    iso = saved(tmp_path, name="ipa.iso")
    stream_beside(iso, hash_of(iso), name="fedora-coreos-live.iso")
    async with running(client, namespace, tmp_path, iso=iso) as room:
        key = await room.ask()
        assert not has(await room.built(key), "Verified")
        stream_beside(iso, "0" * 64)
        await room.refused(key, "coreos-stream.json says 0000")
        stream_beside(iso, "0" * 64, name="another.iso")
        assert has(await room.built(key), "Verified")


async def test_a_stamp_that_is_no_hash_is_no_reason_to_take_the_file(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    iso = saved(tmp_path, name="ipa.iso")
    (tmp_path / "ipa.iso.sha256").write_text("later\n")
    async with running(client, namespace, tmp_path, iso=iso) as room:
        await room.refused(await room.ask(), "does not begin with a sha256")


async def test_what_is_in_a_payload_is_verified(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload) as room:
        assert not has(await room.built(await room.ask()), "Verified")


async def test_where_no_minimal_image_can_be_made_the_status_says_so(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    iso = saved(tmp_path, BY_NAME["2021-09"], name="ipa.iso")
    async with running(client, namespace, tmp_path, iso=iso, minimal_iso=True) as room:
        image = await room.built(await room.ask())
        assert told(image, "MinimalImage").reason == "NoRecipe"
        assert "it is served whole" in told(image, "MinimalImage").message
        assert not has(await room.built(await room.ask("wire", acceptFormats=["initrd"])), "MinimalImage")


# Later


async def test_an_iso_file_that_decays_is_found_and_withdrawn(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    iso = saved(tmp_path, name="ipa.iso")
    async with running(client, namespace, tmp_path, iso=iso, verify_every=0.05, retry_every=0.5) as room:
        key = await room.ask()
        before = await room.built(key)
        content = await room.served(before.status.image_url)
        (tmp_path / "ipa.iso.sha256").write_text(hash_of(iso))
        await room.until(key, lambda image: not has(image, "Verified"))
        decay(iso)
        image = await room.refused(key, "damaged")
        assert image.status.image_url == ""
        await room.not_served(before.status.image_url)
        decay(iso)  # and back
        assert (await room.built(key)).status.image_url == before.status.image_url
        assert await room.served(before.status.image_url) == content


def pack_kernel(iso: Path) -> None:
    """As it is published for aarch64."""
    content = bytearray(iso.read_bytes())
    entry = Iso(io.BytesIO(bytes(content))).entry("/images/pxeboot/vmlinuz")
    content[entry.offset : entry.end] = gzip.compress(b"MZ" + bytes(50_000)).ljust(entry.size, b"\0")
    iso.write_bytes(content)


@pytest.mark.parametrize("form", ["iso", "initrd"])
async def test_what_was_made_of_a_base_is_made_again_when_it_decays(
    client: Client, namespace: str, tmp_path: Path, form: str
) -> None:
    iso = saved(tmp_path, AARCH64, name="ipa.iso")
    if form == "initrd":
        pack_kernel(iso)
    settings = {"minimal_iso": form == "iso", "architecture": "aarch64", "verify_every": 0.05}
    async with running(client, namespace, tmp_path, iso=iso, **settings) as room:
        image = await room.built(await room.ask(architecture="aarch64", acceptFormats=[form]))
        url = image.status.image_url if form == "iso" else image.status.kernel_url
        content = await room.served(url)
        (file,) = (tmp_path / "state" / "made").glob("*.minimal.iso" if form == "iso" else "*.vmlinuz")
        whole, number = file.read_bytes(), file.stat().st_ino
        decay(file)
        await room.comes_true(lambda: file.exists() and file.stat().st_ino != number)
        assert file.read_bytes() == whole
        assert await room.served(url) == content
        assert is_ready(await room.get(image.key))


async def test_what_was_made_of_a_base_and_cannot_be_made_again_is_withdrawn(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(
        client, namespace, tmp_path, payload=payload, minimal_iso=True, verify_every=0.05, retry_every=0.2
    ) as room:
        key = await room.ask()
        before = await room.built(key)
        made = tmp_path / "state" / "made"
        made.rename(tmp_path / "elsewhere")
        made.write_bytes(b"no folder")
        await room.refused(key, "cannot be")
        await room.not_served(before.status.image_url)
        made.unlink()
        assert (await room.built(key)).status.image_url == before.status.image_url


async def test_the_old_image_beside_a_damaged_payload_is_read_again_too(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload, verify_every=0.05) as room:
        key = await room.ask()
        before = await room.built(key)
        (old,) = (tmp_path / "state" / "made").glob("*.blob")
        aside = build_payload(tmp_path / "aside", NEW)
        damage(largest_blob(aside))
        shutil.copytree(aside, payload, dirs_exist_ok=True)
        await room.until(key, lambda image: has(image, "UpToDate"))
        decay(old)
        image = await room.refused(key, "what images were made of is damaged")
        assert "the release payload is damaged" in told(image, "Error").message
        await room.not_served(before.status.image_url)


async def test_what_only_lingers_is_read_again_too(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload, verify_every=0.05) as room:
        key = await room.ask()
        before = (await room.built(key)).status.image_url
        (old,) = (tmp_path / "state" / "made").glob("*.blob")
        build_payload(payload, NEW)
        image = await room.built(key, unlike=before)
        room.agent = agent_settings(image="registry.example/another-agent:2")
        after = (await room.built(key, unlike=image.status.image_url)).status.image_url
        assert await room.served(before)
        decay(old)
        await room.not_served(before)
        assert await room.served(after)
        assert await room.served(image.status.image_url)
        assert (await room.get(key)).status.version == NEW != LABEL
