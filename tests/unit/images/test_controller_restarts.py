"""A server reads its ramdisk for as long as it runs. What was served before the image process was killed is served after it,
whatever is different by then: the payload, the settings, the host itself."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from image_room import HOLD, NEW, Room, build_payload, decay, is_ready, running
from ramdisk_parts import agent_settings

from ingot.api.meta import Key
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.kube import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

DAY = timedelta(days=1)
OTHERS = agent_settings(image="registry.example/another-agent:2")


@pytest_asyncio.fixture(loop_scope="module")
async def room(client: Client, namespace: str, tmp_path: Path, payload: Path) -> AsyncIterator[Room]:
    async with running(client, namespace, tmp_path, payload=payload) as room:
        yield room


def notes(room: Room) -> dict[str, tuple[int, int]]:
    """Names of files, and what changes with everything that is written."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in room.settings.served.iterdir()
    }


async def until_noted(room: Room, count: int) -> None:
    await room.comes_true(lambda: len(notes(room)) == count)


async def test_the_image_of_the_payload_before_is_served_after_a_kill(room: Room, payload: Path) -> None:
    keys = [await room.ask("disc"), await room.ask("wire", acceptFormats=["initrd"])]
    statuses = [(await room.built(key)).status for key in keys]
    rootfs = statuses[1].extra_kernel_params.split()[0].partition("=")[2]
    urls = [statuses[0].image_url, statuses[1].image_url, statuses[1].kernel_url, rootfs]
    before = [await room.served(url) for url in urls]
    build_payload(payload, NEW)
    for key, status in zip(keys, statuses, strict=True):
        await room.built(key, unlike=status.image_url)
    await room.kill()
    # The payload before is not even in the folder any more.
    shutil.rmtree(payload)
    build_payload(payload, NEW)
    await room.begin()
    await room.ready()
    assert [await room.served(url) for url in urls] == before


async def test_what_was_advertised_when_it_was_killed_is_served_when_it_comes_back_with_other_settings(
    room: Room,
) -> None:
    key = await room.ask()
    before = (await room.built(key)).status.image_url
    told = await room.headers(before)
    content = await room.served(before)
    await room.kill()
    room.agent = OTHERS
    await room.begin()
    after = (await room.built(key, unlike=before)).status.image_url
    assert await room.served(after) != content
    assert await room.served(before) == content
    assert await room.headers(before) == told


async def test_it_holds_for_one_restart_after_the_other(room: Room) -> None:
    key = await room.ask()
    urls = [(await room.built(key)).status.image_url]
    contents = [await room.served(urls[0])]
    for number in range(3):
        await room.kill()
        room.agent = agent_settings(image=f"registry.example/agent:{number}")
        await room.begin()
        urls.append((await room.built(key, unlike=urls[-1])).status.image_url)
        contents.append(await room.served(urls[-1]))
        assert [await room.served(url) for url in urls] == contents


async def test_a_restart_that_changes_nothing_writes_nothing(room: Room) -> None:
    for number in range(3):
        await room.built(await room.ask(f"h{number}"))
    before = notes(room)
    assert len(before) == 3 + 2, "a kernel and a root file system are everybody's"
    await room.kill()
    await room.begin()
    await room.ready()
    assert notes(room) == before


async def test_what_lingers_goes_at_its_time_and_time_without_a_process_counts(room: Room) -> None:
    key = await room.ask()
    before = (await room.built(key)).status.image_url
    room.agent = OTHERS
    after = (await room.built(key, unlike=before)).status.image_url
    # That its time is running is noted at the next look; until then it would begin anew.
    await room.comes_true(lambda: any("." in name for name in notes(room)))
    await room.kill()
    room.ahead = 0.9 * DAY
    await room.begin()
    assert await room.served(before)
    await room.kill()
    room.ahead = 1.1 * DAY
    await room.begin()
    await room.served(after)
    await room.ready()
    await room.not_served(before)
    await until_noted(room, 3)


async def test_what_lingers_goes_at_its_time_while_the_process_runs(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    async with running(client, namespace, tmp_path, payload=payload, linger=1.0, minimal_iso=True) as room:
        key = await room.ask()
        before = (await room.built(key)).status.image_url
        made = tmp_path / "state" / "made"
        old = set(made.iterdir())
        await room.kill()
        build_payload(payload, NEW)
        await room.begin()
        after = (await room.built(key, unlike=before)).status.image_url
        await room.not_served(before)
        await room.vanished(old)
        assert await room.served(after)
        await until_noted(room, 3)


async def test_a_clock_that_was_set_back_keeps_nothing_longer(room: Room) -> None:
    key = await room.ask()
    room.ahead = 1000 * DAY
    await room.restart()
    before = (await room.built(key)).status.image_url
    room.agent = OTHERS
    await room.built(key, unlike=before)
    await room.kill()
    room.ahead = timedelta(0)
    await room.begin()
    assert await room.served(before)


async def test_what_lies_in_a_file_that_was_damaged_meanwhile_is_not_served(
    room: Room, payload: Path
) -> None:
    key = await room.ask()
    before = (await room.built(key)).status.image_url
    (old,) = (room.folder / "state" / "made").glob("*.blob")
    build_payload(payload, NEW)
    after = (await room.built(key, unlike=before)).status.image_url
    await room.kill()
    decay(old)
    await room.begin()
    await room.ready()
    assert await room.later(before) == 404
    assert await room.served(after)
    await until_noted(room, 3)
    await room.vanished([old])


async def test_a_host_that_was_deleted_meanwhile_takes_its_image_with_it(room: Room) -> None:
    gone, stays = await room.ask("gone"), await room.ask("stays")
    urls = [(await room.built(key)).status.image_url for key in (gone, stays)]
    await room.kill()
    await room.change(gone, {"metadata": {"finalizers": []}})
    await room.client.delete(PREPROVISIONING_IMAGES, gone)
    room.agent = OTHERS
    await room.begin()
    await room.ready()
    assert await room.later(urls[0]) == 404
    assert await room.served(urls[1])
    await until_noted(room, 4)


async def test_who_is_being_deleted_and_held_boots_what_it_was_told_though_the_payload_is_another_one(
    room: Room, payload: Path
) -> None:
    key = await room.ask(finalizers=(HOLD,))
    before = await room.built(key)
    content = await room.served(before.status.image_url)
    await room.client.delete(PREPROVISIONING_IMAGES, key)
    await room.until(key, lambda image: image.metadata.deletion_timestamp is not None)
    await room.kill()
    build_payload(payload, NEW)
    await room.begin()
    await room.ready()
    assert (await room.get(key)).status == before.status
    assert await room.served(before.status.image_url) == content


async def test_notes_are_for_nobody_else_to_read_and_go_with_the_image(room: Room) -> None:
    await room.secret("net", nmstate='{"interfaces": [{"name": "eth0", "type": "ethernet"}]}')
    key = await room.ask(networkDataName="net")
    await room.built(key)
    folder = room.settings.served
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    await until_noted(room, 3)
    await room.client.delete(PREPROVISIONING_IMAGES, key)
    await room.gone(key)
    await until_noted(room, 2)


async def test_a_note_that_is_not_whole_is_not_used(room: Room) -> None:
    key = await room.ask()
    before = (await room.built(key)).status.image_url
    name = before.split("/")[-2]
    await room.kill()
    note = room.settings.served / name
    note.write_bytes(note.read_bytes()[:-1])
    (room.settings.served / f".{name}").write_bytes(b"half")
    room.agent = OTHERS
    await room.begin()
    await room.built(key, unlike=before)
    await room.ready()
    assert await room.later(before) == 404
    await until_noted(room, 3)


async def test_where_nothing_can_be_noted_images_are_served_all_the_same_and_somebody_is_told(
    client: Client, namespace: str, tmp_path: Path, payload: Path
) -> None:
    (tmp_path / "state").mkdir()
    folder = tmp_path / "state" / "served"
    folder.write_bytes(b"no folder")
    async with running(client, namespace, tmp_path, payload=payload) as room:
        key = await room.ask()
        before = (await room.built(key)).status.image_url
        content = await room.served(before)
        assert room.controller is not None
        assert "cannot be written" in "".join(room.controller.troubles)
        folder.unlink()
        controller = room.controller
        await room.comes_true(lambda: not controller.troubles)
        await room.kill()
        room.agent = OTHERS
        await room.begin()
        await room.built(key, unlike=before)
        assert await room.served(before) == content


async def test_whoever_reads_on_gets_an_answer_again_before_hosts_are_looked_after(room: Room) -> None:
    keys = [await room.ask(f"h{number}") for number in range(3)]
    urls = [(await room.built(key)).status.image_url for key in keys]
    await room.kill()
    room.wrong = "CA_BUNDLE names /ca.crt, which cannot be read."
    await room.begin()
    for url in urls:
        assert await room.served(url)
    room.wrong = ""
    await room.until(Key(room.namespace, "h2"), is_ready)
