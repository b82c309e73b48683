"""The life of a PreprovisioningImage on a Kubernetes API, with real payloads, and with what a BMC gets from its URL."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from image_room import HOLD, NEW, Room, build_payload, damage, has, is_ready, largest_blob, running, told
from ramdisk_parts import agent_settings, appended_members, files_of, saved

from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import FINALIZER, PREPROVISIONING_IMAGES, PreprovisioningImage
from ingot.api.wire import wire
from ingot.formats.coreos import LiveIso
from ingot.formats.network import keyfiles_of_nmstate
from ingot.hosts.beside.ramdisks import what_is_missing
from ingot.images.controller import Listen
from ingot.images.ramdisk import SettingsError, agent_ignition
from ingot.kube import Client
from live_images import DEFAULT, LABEL, live_initrd, root_file_system

pytestmark = pytest.mark.asyncio(loop_scope="module")

NMSTATE = json.dumps(
    {
        "interfaces": [
            {"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": True, "dhcp": True}}
        ]
    }
)
OTHER_NMSTATE = NMSTATE.replace("eth0", "eth7")


@pytest_asyncio.fixture(loop_scope="module")
async def room(client: Client, namespace: str, tmp_path: Path, payload: Path) -> AsyncIterator[Room]:
    async with running(client, namespace, tmp_path, payload=payload) as room:
        yield room


def live(content: bytes) -> LiveIso:
    return LiveIso(io.BytesIO(content))


def serving_processes() -> list[int]:
    children = [task.read_text().split() for task in Path("/proc/self/task").glob("*/children")]
    found = [int(pid) for pids in children for pid in pids]
    return [
        pid for pid in found if b"ingot.images.server.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


# Building


async def test_no_url_is_told_before_all_processes_that_serve_have_its_image(room: Room) -> None:
    await room.built(await room.ask("first"))
    processes = await asyncio.to_thread(serving_processes)
    assert processes
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        key = await room.ask("second")
        await room.until(key, lambda image: FINALIZER in image.metadata.finalizers)
        await asyncio.sleep(0.5)
        assert not (await room.get(key)).status.image_url
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
    assert (await room.built(key)).status.image_url


async def test_a_host_gets_an_iso_that_can_be_fetched_and_has_its_config(room: Room) -> None:
    key = await room.ask()
    image = await room.built(key)
    iso = live(await room.served(image.status.image_url))
    assert iso.ignition == agent_ignition(room.agent, hostname="h1", keyfiles={})
    assert iso.arguments == DEFAULT
    assert image.status.format == "iso"
    assert (image.status.kernel_url, image.status.extra_kernel_params) == ("", "")
    assert image.status.image_url.endswith("/coreos.iso")
    assert what_is_missing(image, network_version="") is None
    assert FINALIZER in image.metadata.finalizers
    assert told(image, "Ready").reason == "ImageSuccess"
    assert image.status.version == LABEL
    assert told(image, "Error").status == "False"


async def test_a_host_that_boots_over_the_network_gets_kernel_initrd_and_root_file_system(room: Room) -> None:
    room.agent = agent_settings(ip_options=("ip=dhcp6",))
    key = await room.ask(acceptFormats=["initrd"])
    status = (await room.until(key, lambda image: "dhcp6" in image.status.extra_kernel_params)).status
    initrd = await room.served(status.image_url)
    assert initrd.startswith(live_initrd())
    assert appended_members(initrd)["config.ign"] == agent_ignition(room.agent, hostname="h1", keyfiles={})
    url, *others = status.extra_kernel_params.split()
    assert others == ["ignition.firstboot", "ignition.platform.id=metal", "ip=dhcp6"]
    name, _, rootfs = url.partition("=")
    assert name == "coreos.live.rootfs_url"
    assert rootfs.endswith(f"/{LABEL}-rootfs.img")
    assert await room.served(rootfs) == root_file_system()
    kernel = await room.served(status.kernel_url)
    assert kernel in (room.folder / "payload-x86_64.iso").read_bytes()


async def test_the_network_configuration_is_in_the_initrd_and_in_ignition(room: Room) -> None:
    version = await room.secret("net", nmstate=NMSTATE)
    image = await room.built(await room.ask(networkDataName="net"))
    iso = live(await room.served(image.status.image_url))
    keyfiles = keyfiles_of_nmstate(NMSTATE.encode())
    assert iso.network == {f"etc/coreos-firstboot-network/{name}": text for name, text in keyfiles.items()}
    assert iso.ignition == agent_ignition(room.agent, hostname="h1", keyfiles=keyfiles)
    assert (image.status.network_data.name, image.status.network_data.version) == ("net", version)
    assert what_is_missing(image, network_version=version) is None


async def test_two_hosts_have_images_of_their_own_and_share_what_is_the_same(room: Room) -> None:
    one, two = [await room.built(await room.ask(name, acceptFormats=["initrd"])) for name in ("h1", "h2")]
    assert one.status.image_url != two.status.image_url
    assert one.status.kernel_url == two.status.kernel_url
    assert one.status.extra_kernel_params == two.status.extra_kernel_params


# What cannot be built


async def test_an_architecture_without_an_image_is_said_and_built_once_it_is_another(room: Room) -> None:
    key = await room.ask(architecture="aarch64")
    image = await room.refused(key, "Architecture not supported: aarch64")
    assert told(image, "Error").reason == told(image, "Ready").reason == "ConfigurationError"
    assert told(image, "Ready").status == "False"
    assert "x86_64" in told(image, "Error").message
    await room.change(key, {"spec": {"architecture": "x86_64"}})
    assert told(await room.built(key), "Error").status == "False"


async def test_no_format_at_all_is_said(room: Room) -> None:
    await room.refused(await room.ask(acceptFormats=[]), "No acceptable image format supported")


async def test_a_missing_secret_is_an_error_until_it_is_there(room: Room) -> None:
    key = await room.ask(networkDataName="late")
    image = await room.refused(key, "NetworkData secret not found")
    assert told(image, "Error").reason == "MissingNetworkData"
    assert await room.events("MissingNetworkData")
    await room.secret("late", nmstate=NMSTATE)
    assert (await room.built(key)).status.network_data.name == "late"


async def test_a_network_configuration_that_is_none_is_said_in_words(room: Room) -> None:
    await room.secret("bad", nmstate='{"interfaces": [{"name": "x", "type": "flux-capacitor"}]}')
    key = await room.ask(networkDataName="bad")
    image = await room.refused(key, "Cannot generate image:")
    assert told(image, "Error").reason == "ImageBuildInvalid"
    assert "interfaces[0].type" in told(image, "Error").message
    await room.secret("bad", nmstate=NMSTATE)
    await room.built(key)


async def test_what_does_not_fit_is_an_error_when_it_is_built_and_not_when_it_is_read(room: Room) -> None:
    noise = hashlib.shake_256(b"noise").hexdigest(300_000)
    room.agent = agent_settings(registries_conf=f"# {noise}\n".encode())
    key = await room.ask()
    image = await room.refused(key, "has room for 262144")
    assert told(image, "Error").reason == "ImageBuildInvalid"
    assert image.status.image_url == ""


# Changes


async def test_a_changed_secret_makes_another_image_and_a_url_keeps_its_content(room: Room) -> None:
    await room.secret("net", nmstate=NMSTATE)
    key = await room.ask(networkDataName="net")
    before = await room.built(key)
    content = await room.served(before.status.image_url)
    version = await room.secret("net", nmstate=OTHER_NMSTATE)
    after = await room.built(key, unlike=before.status.image_url)
    assert after.status.network_data.version == version
    assert "eth7" in str(live(await room.served(after.status.image_url)).network)
    # A server that was booted from it still reads it.
    assert await room.served(before.status.image_url) == content


async def test_a_url_that_is_advertised_can_be_fetched_at_every_moment(room: Room) -> None:
    await room.secret("net", nmstate=NMSTATE)
    key = await room.ask(networkDataName="net")
    await room.built(key)
    over = asyncio.Event()
    seen: set[str] = set()

    async def read_all_the_time() -> None:
        while not over.is_set():
            image = await room.get(key)
            if image.status.image_url:
                assert is_ready(image)
                assert await room.later(image.status.image_url) == 200
                seen.add(image.status.image_url)

    reader = asyncio.create_task(read_all_the_time())
    for number in range(4):
        url = (await room.get(key)).status.image_url
        await room.secret("net", nmstate=NMSTATE.replace("eth0", f"eth{number + 1}"))
        await room.built(key, unlike=url)
        await room.client.delete(SECRETS, Key(room.namespace, "net"))
        await room.refused(key, "not found")
        await room.secret("net", nmstate=NMSTATE)
        await room.built(key)
    over.set()
    await reader
    assert len(seen) >= 2


async def test_an_image_that_can_no_longer_be_built_is_withdrawn(room: Room) -> None:
    await room.secret("net", nmstate=NMSTATE)
    key = await room.ask(networkDataName="net", acceptFormats=["initrd"])
    await room.built(key)
    await room.client.delete(SECRETS, Key(room.namespace, "net"))
    image = await room.refused(key, "not found")
    made = image.status
    assert (made.image_url, made.kernel_url, made.extra_kernel_params) == ("", "", "")
    assert made.format == "initrd"


async def test_settings_that_change_reach_the_images(room: Room) -> None:
    key = await room.ask()
    before = (await room.built(key)).status.image_url
    room.agent = agent_settings(ntp_servers=("time.example",))
    after = await room.built(key, unlike=before)
    ignition = live(await room.served(after.status.image_url)).ignition
    assert b"time.example" in files_of(ignition or b"")["/etc/chrony.conf"]


async def test_a_status_that_is_right_is_not_written_again(room: Room) -> None:
    key = await room.ask()
    before = await room.built(key)
    await room.change(key, {"metadata": {"labels": {"rack": "r7"}}})
    await room.change(key, {"metadata": {"annotations": {"a": "b"}}})
    other = await room.ask("h2")
    await room.built(other)
    await asyncio.sleep(0.2)
    after = await room.get(key)
    assert after.status == before.status
    written = int(after.metadata.resource_version)
    await room.restart()
    await room.served(after.status.image_url)
    assert int((await room.get(key)).metadata.resource_version) == written


async def test_a_status_that_somebody_spoiled_is_mended(room: Room) -> None:
    key = await room.ask()
    before = await room.built(key)
    await room.change(key, {"status": {"imageUrl": "https://elsewhere.example/x.iso"}}, subresource="status")
    await room.until(key, lambda image: image.status == before.status)


async def test_conditions_of_others_stay(room: Room) -> None:
    key = await room.ask()
    image = await room.built(key)
    theirs = {
        "type": "Blessed",
        "status": "True",
        "reason": "Said",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    conditions = [*wire(image.status.conditions), theirs]
    await room.change(key, {"status": {"conditions": conditions}}, subresource="status")
    await room.change(key, {"spec": {"acceptFormats": ["initrd"]}})
    after = await room.until(key, lambda image: is_ready(image) and image.status.format == "initrd")
    assert has(after, "Blessed")


# Leaving


async def test_an_image_goes_when_only_its_builder_holds_it(room: Room) -> None:
    key = await room.ask(finalizers=(HOLD,))
    image = await room.built(key)
    await room.client.delete(PREPROVISIONING_IMAGES, key)
    await room.until(key, lambda image: image.metadata.deletion_timestamp is not None)
    # Its host may still boot it, also when the builder was restarted meanwhile.
    await room.restart()
    assert live(await room.served(image.status.image_url)).ignition
    held = await room.get(key)
    assert (held.status, sorted(held.metadata.finalizers)) == (image.status, [FINALIZER, HOLD])
    await room.change(key, {"metadata": {"finalizers": [FINALIZER]}})
    await room.gone(key)
    assert await room.later(image.status.image_url) == 404


async def test_an_object_of_the_same_name_is_somebody_else(room: Room) -> None:
    key = await room.ask()
    before = await room.built(key)
    await room.client.delete(PREPROVISIONING_IMAGES, key)
    await room.gone(key)
    await room.ask()
    after = await room.built(key)
    assert after.status.image_url != before.status.image_url
    assert await room.later(before.status.image_url) == 404


async def test_images_that_another_installer_looks_after_are_left_alone(room: Room) -> None:
    theirs = await room.ask("theirs", labels={"infraenvs.agent-install.openshift.io": "x"})
    await room.built(await room.ask("ours"))
    assert (await room.get(theirs)).metadata.finalizers == []
    assert (await room.get(theirs)).status == PreprovisioningImage().status


# Restarts


async def test_urls_are_the_same_after_a_restart_and_until_then_the_server_says_later(
    room: Room,
) -> None:
    images = [await room.built(await room.ask(f"h{number}")) for number in range(3)]
    content = [await room.served(image.status.image_url) for image in images]
    await room.end()
    await room.start()
    url = images[0].status.image_url
    assert await room.later(url) == 503
    room.run()
    assert [await room.served(image.status.image_url) for image in images] == content
    assert [(await room.get(image.key)).metadata.resource_version for image in images] == [
        image.metadata.resource_version for image in images
    ]


async def test_a_name_that_nobody_was_told_is_not_found(room: Room) -> None:
    url = (await room.built(await room.ask())).status.image_url
    base = url.partition("/images/")[0]
    for path in ("/", "/images/", f"/images/{'A' * 32}/coreos.iso", "/images/h1"):
        assert await room.later(base + path) == 404


async def test_whoever_listens_on_every_address_has_to_say_which_one_machines_use(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    room = Room(client, namespace, tmp_path, payload=payload, listen=Listen("0.0.0.0", 0))
    with pytest.raises(SettingsError, match="INGOT_IMAGES_URL"):
        await room.start()
    await room.end()


# The payload changes


async def test_a_new_payload_gives_every_host_a_new_url_and_the_way_back_the_old_one(
    room: Room, payload: Path
) -> None:
    keys = [await room.ask(f"h{number}") for number in range(3)]
    before = [(await room.built(key)).status.image_url for key in keys]
    old = [await room.served(url) for url in before]
    build_payload(payload, NEW)
    after = [await room.built(key, unlike=url) for key, url in zip(keys, before, strict=True)]
    for image in after:
        assert live(await room.served(image.status.image_url)).iso.label == NEW
        assert image.status.version == NEW
    assert [await room.served(url) for url in before] == old
    build_payload(payload, LABEL)
    for key, url in zip(keys, before, strict=True):
        await room.until(key, lambda image, url=url: image.status.image_url == url and is_ready(image))  # type: ignore[misc]


async def test_a_link_that_is_switched_to_another_payload_is_followed(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    link = tmp_path / "current"
    link.symlink_to(build_payload(tmp_path / "a"))
    async with running(client, namespace, tmp_path, payload=link) as room:
        key = await room.ask()
        before = await room.built(key)
        content = await room.served(before.status.image_url)
        (tmp_path / "next").symlink_to(build_payload(tmp_path / "b", NEW))
        (tmp_path / "next").replace(link)
        after = await room.built(key, unlike=before.status.image_url)
        assert live(await room.served(after.status.image_url)).iso.label == NEW
        # What was advertised before is read from where it was, not through the link.
        assert await room.served(before.status.image_url) == content


async def test_a_damaged_payload_is_told_and_the_old_image_stays(room: Room, payload: Path) -> None:
    key = await room.ask()
    before = await room.built(key)
    aside = build_payload(room.folder / "aside", NEW)
    blob = largest_blob(aside)
    whole = damage(blob)
    shutil.copytree(aside, payload, dirs_exist_ok=True)
    image = await room.until(key, lambda image: has(image, "UpToDate"))
    assert told(image, "UpToDate").status == "False"
    assert "damaged" in told(image, "UpToDate").message
    assert is_ready(image)
    assert image.status.image_url == before.status.image_url
    assert await room.served(image.status.image_url)
    assert "damaged" in (await room.events("NewerImageUnusable"))[0]
    # Mended, by building it again: other bytes at the same place would not do.
    (payload / "blobs" / "sha256" / blob.name).write_bytes(whole)
    build_payload(payload, "fedora-coreos-40.20240101.3.0")
    after = await room.built(key, unlike=before.status.image_url)
    assert not has(after, "UpToDate")


async def test_a_payload_that_is_damaged_from_the_beginning_is_an_error(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    damage(largest_blob(payload))
    async with running(client, namespace, tmp_path, payload=payload) as room:
        key = await room.ask()
        image = await room.refused(key, "damaged")
        assert told(image, "Error").reason == "ImageBuildInvalid"
        build_payload(payload, NEW)
        await room.built(key)


async def test_a_payload_that_is_not_there_yet_is_waited_for(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=tmp_path / "payload") as room:
        key = await room.ask()
        await room.refused(key, "is not there")
        build_payload(tmp_path / "payload")
        await room.built(key)


async def test_damage_that_the_background_finds_in_what_is_used_withdraws_it(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload, verify_every=0.05) as room:
        key = await room.ask()
        before = await room.built(key)
        blob = largest_blob(payload)
        whole = damage(blob)
        image = await room.refused(key, "damaged")
        assert image.status.image_url == ""
        assert await room.events("ImageBuildInvalid")
        await room.not_served(before.status.image_url)
        blob.write_bytes(whole)
        assert (await room.built(key)).status.image_url == before.status.image_url
        assert live(await room.served(before.status.image_url)).ignition


async def test_a_payload_that_goes_away_leaves_its_images_to_those_who_have_them(
    room: Room, payload: Path
) -> None:
    key = await room.ask()
    before = await room.built(key)
    content = await room.served(before.status.image_url)
    await asyncio.to_thread(shutil.rmtree, payload)
    await room.until(
        key,
        lambda image: has(image, "UpToDate") and "is not there" in told(image, "UpToDate").message,
    )
    assert await room.served(before.status.image_url) == content
    build_payload(payload, NEW)
    after = await room.built(key, unlike=before.status.image_url)
    assert not has(after, "UpToDate")
    assert await room.served(before.status.image_url) == content


async def test_where_files_have_no_second_name_a_payload_that_goes_away_takes_its_images_with_it(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "made").write_bytes(b"no folder")
    async with running(client, namespace, tmp_path, payload=payload) as room:
        key = await room.ask()
        before = await room.built(key)
        await asyncio.to_thread(payload.rename, tmp_path / "elsewhere")
        image = await room.refused(key, "is not there")
        assert image.status.image_url == ""
        await asyncio.to_thread((tmp_path / "elsewhere").rename, payload)
        assert (await room.built(key)).status.image_url == before.status.image_url


async def test_a_second_name_that_somebody_takes_away_is_made_again(room: Room) -> None:
    key = await room.ask()
    before = await room.built(key)
    (name,) = (room.folder / "state" / "made").iterdir()
    name.unlink()
    async with asyncio.timeout(60):
        while True:
            if (await room.later(before.status.image_url), name.exists()) == (200, True):
                break
            await asyncio.sleep(0.02)
    after = await room.until(key, is_ready)
    assert after.status.image_url == before.status.image_url


async def test_what_was_made_of_an_old_payload_goes_when_nothing_of_it_is_served(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload, linger=0.1, minimal_iso=True) as room:
        key = await room.ask()
        before = (await room.built(key)).status.image_url
        made = tmp_path / "state" / "made"
        old = set(made.iterdir())
        build_payload(payload, NEW)
        after = (await room.built(key, unlike=before)).status.image_url
        await room.vanished(old)
        assert await room.later(before) == 404
        assert await room.later(after) == 200
        assert {path.suffix for path in made.iterdir()} == {".blob", ".iso"}


async def test_settings_that_do_not_go_with_the_image_leave_the_old_ones_in_force(room: Room) -> None:
    key = await room.ask()
    before = await room.built(key)
    room.agent = agent_settings(ip_options=("ip=" + "x" * 1500,))
    image = await room.until(key, lambda image: has(image, "UpToDate"))
    assert "kargs too large" in told(image, "UpToDate").message
    assert image.status.image_url == before.status.image_url
    room.agent = agent_settings(ip_options=("ip=dhcp",))
    after = await room.built(key, unlike=before.status.image_url)
    assert not has(after, "UpToDate")
    assert live(await room.served(after.status.image_url)).arguments.endswith(" ip=dhcp")


async def test_settings_that_became_wrong_leave_the_old_ones_in_force(room: Room) -> None:
    key = await room.ask()
    before = await room.built(key)
    room.wrong = "CA_BUNDLE names /ca.crt, which cannot be read."
    image = await room.until(key, lambda image: has(image, "UpToDate"))
    assert told(image, "UpToDate").message == room.wrong
    assert image.status.image_url == before.status.image_url
    room.wrong = ""
    after = await room.until(key, lambda image: not has(image, "UpToDate"))
    assert after.status == before.status


async def test_one_payload_has_images_for_several_architectures(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    async with running(
        client, namespace, tmp_path, payload=build_payload(tmp_path / "payload", also=True)
    ) as room:
        arm = await room.built(await room.ask("arm", architecture="aarch64"))
        intel = await room.built(await room.ask("intel"))
        assert (arm.status.architecture, intel.status.architecture) == ("aarch64", "x86_64")
        contents = [await room.served(image.status.image_url) for image in (arm, intel)]
        assert live(contents[0]).iso.entry("EFI/FEDORA/GRUB.CFG")
        assert contents[0] != contents[1]


# Out of ISO files, and without the root file system


async def test_images_are_made_of_iso_files_too_and_a_wrong_stamp_is_damage(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    iso = saved(tmp_path, name="ipa.iso")
    async with running(client, namespace, tmp_path, iso=iso) as room:
        key = await room.ask()
        before = (await room.built(key)).status.image_url
        arm = await room.ask("arm", architecture="aarch64")
        await room.refused(arm, "not supported")
        saved(tmp_path, name="ipa_aarch64.iso")
        await room.built(arm)
        stamp = tmp_path / "ipa.iso.sha256"
        stamp.write_text("0" * 64)
        saved(tmp_path, label=NEW, name="new.iso").replace(iso)
        image = await room.until(key, lambda image: has(image, "UpToDate"))
        assert image.status.image_url == before
        assert live(await room.served(before)).iso.label == LABEL
        stamp.write_text(hashlib.sha256(iso.read_bytes()).hexdigest())
        iso.touch()
        await room.built(key, unlike=before)


async def test_a_minimal_iso_fetches_its_root_file_system(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload, minimal_iso=True) as room:
        image = await room.built(await room.ask())
        iso = live(await room.served(image.status.image_url))
        assert iso.ignition == agent_ignition(room.agent, hostname="h1", keyfiles={})
        (url,) = [word for word in iso.arguments.split() if word.startswith("coreos.live.rootfs_url=")]
        assert "coreos.liveiso" not in iso.arguments
        assert await room.served(url.partition("=")[2]) == root_file_system()
