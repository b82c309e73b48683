"""The depot and the control face: what is served to whom."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from lab_bench import FAST, Bench, status_of, until

from ingot.lab.client import Lab
from ingot.lab.errors import LabError
from ingot.lab.farm import Farm
from ingot.lab.faults import Faults, Planned
from ingot.lab.samples import sample_disk
from ingot.lab.settings import FarmSettings
from ingot.lab.views import Change
from ingot.trust import client_context


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Lab]:
    """A farm of twelve servers."""
    settings = FarmSettings(state=tmp_path, servers=12, agent_api="https://127.0.0.1:1", timings=FAST)
    async with Farm.running(settings), Lab.open(tmp_path) as lab:
        yield lab


async def status(room: Lab, name: str) -> int | None:
    """What the BMC of this server answers, or nothing when it is not there."""
    [plate] = [plate for plate in room.file.servers if plate.name == name]
    connector = aiohttp.TCPConnector(ssl=client_context(room.state / "ca" / "ca.crt"))
    url = f"https://{plate.host}:{plate.bmc_port}/redfish/v1/Systems/{plate.system_id}"
    headers = {"Authorization": aiohttp.encode_basic_auth(plate.username, plate.password)}
    try:
        async with (
            aiohttp.ClientSession(connector=connector, headers=headers) as session,
            session.get(url) as answer,
        ):
            return answer.status
    except aiohttp.ClientConnectorError:
        return None


async def fetch(bench: Bench, method: str, url: str, **options: Any) -> tuple[int, bytes, Any]:
    connector = aiohttp.TCPConnector(ssl=client_context(bench.state / "ca" / "ca.crt"))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.request(method, url, **options) as answer,
    ):
        return answer.status, await answer.read(), answer.headers


async def test_sample_images_are_what_their_digests_say(bench: Bench) -> None:
    for image in bench.lab.file.images:
        status, content, _ = await fetch(bench, "GET", image.url)
        assert status == 200
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (image.sha256, image.size)
        runs = content if image.format == "live-iso" else sample_disk()
        assert image.disk_sha256 == hashlib.sha256(runs).hexdigest()


async def test_heads_ranges_and_tags_work_as_image_clients_expect(bench: Bench) -> None:
    url = bench.lab.file.ramdisk_url
    status, body, headers = await fetch(bench, "HEAD", url)
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 32768
    status, part, _ = await fetch(bench, "GET", url, headers={"Range": "bytes=32769-32773"})
    assert (status, part) == (206, b"CD001")
    assert (await fetch(bench, "GET", url, headers={"If-None-Match": headers["ETag"]}))[0] == 304


@pytest.mark.parametrize(
    "path", ["", "/", "/{token}", "/{token}/", "/{token}/other", "/{token}/..%2f..%2ftoken", "/x/ramdisk.iso"]
)
async def test_nothing_else_is_found(bench: Bench, path: str) -> None:
    base, token, _ = bench.lab.file.ramdisk_url.rsplit("/", 2)
    assert (await fetch(bench, "GET", base + path.format(token=token)))[0] == 404


async def test_an_added_image_is_served_under_its_name(bench: Bench) -> None:
    added = await bench.lab.add_image(b"hello", name="my.raw")
    assert added.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert added.url.endswith("/my.raw")
    assert (await fetch(bench, "GET", added.url))[1] == b"hello"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 200])
async def test_an_image_with_an_odd_name_is_refused(bench: Bench, name: str) -> None:
    with pytest.raises(LabError, match="no name for a file of the depot"):
        await bench.lab.add_image(b"x", name=name)


async def test_the_control_face_needs_its_token(bench: Bench) -> None:
    url = f"{bench.lab.file.control_url}/lab/v1/servers"
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer ü"}):
        status, body, _ = await fetch(bench, "GET", url, headers=headers)
        assert status == 401
        assert b"lab's token" in body


async def test_a_token_of_odd_bytes_is_refused(bench: Bench) -> None:
    url = f"{bench.lab.file.control_url}/lab/v1/servers"
    assert await asyncio.to_thread(status_of, bench, url, {"Authorization": "Bearer \xfc"}) == 401


async def test_the_control_face_never_shows_a_password(bench: Bench) -> None:
    token = (bench.state / "lab" / "token").read_text()
    url = f"{bench.lab.file.control_url}/lab/v1/servers"
    _, body, _ = await fetch(bench, "GET", url, headers={"Authorization": f"Bearer {token}"})
    assert bench.plate.password.encode() not in body
    assert bench.plate.bmc_address.encode() in body


async def test_a_server_that_is_not_there_is_named(bench: Bench) -> None:
    with pytest.raises(LabError, match="no server 'other'"):
        await bench.lab.server("other")


async def test_faults_that_do_not_exist_are_refused(bench: Bench) -> None:
    token = (bench.state / "lab" / "token").read_text()
    url = f"{bench.lab.file.control_url}/lab/v1/servers/{bench.plate.name}/faults"
    headers = {"Authorization": f"Bearer {token}"}
    status, body, _ = await fetch(bench, "PUT", url, json={"explode": True}, headers=headers)
    assert status == 400
    assert b"explode" in body


async def test_servers_are_found_by_name_power_and_what_runs(room: Lab) -> None:
    await room.change("server-2", Change(faults=Faults(fail_power=True)))
    names = [server.name for server in await room.servers()]
    assert names == [f"server-{number}" for number in range(1, 13)]
    assert [server.name for server in await room.servers("server-1*")] == [
        "server-1",
        "server-10",
        "server-11",
        "server-12",
    ]
    assert await room.servers(power="On") == []
    assert len(await room.servers(power="Off", runs="nothing")) == 12
    [brief] = await room.servers("server-2", history=False)
    [full] = await room.servers("server-2")
    assert (brief.log, brief.faults) == ([], full.faults)
    assert "changed by the control face: faults" in full.log[-1].text


async def test_many_servers_are_changed_at_once_and_what_is_not_given_stays(room: Lab) -> None:
    plan = [Planned(after=3600, faults=Faults(bmc_down=True))]
    assert await room.change("server-1?", Change(faults=Faults(unavailable=2), plan=plan)) == [
        "server-10",
        "server-11",
        "server-12",
    ]
    await room.change("server-1*", Change(hold="boot"))
    changed = await room.server("server-11")
    assert (changed.faults, changed.plan, changed.hold) == (Faults(unavailable=2), plan, "boot")
    other = await room.server("server-1")
    assert (other.faults, other.plan, other.hold) == (Faults(), [], "boot")
    with pytest.raises(LabError, match=r"no server that fits 'rack-\*'"):
        await room.change("rack-*", Change(hold="boot"))


async def test_a_counted_fault_that_many_servers_got_at_once_counts_for_each_alone(room: Lab) -> None:
    await room.change("server-*", Change(faults=Faults(unavailable=1)))
    for name in ("server-3", "server-4"):
        statuses = [await status(room, name) for _ in range(2)]
        assert statuses == [503, 200], name


async def test_a_plan_closes_the_bmc_and_opens_it_again(room: Lab) -> None:

    async def closed() -> bool:
        return await status(room, "server-5") is None

    async def opened() -> bool:
        return await status(room, "server-5") == 200

    await room.set_plan("server-5", Planned(after=0.1, faults=Faults(bmc_down=True)))
    await until(closed, "the BMC to be away")
    await room.set_plan("server-5", Planned(lasts=0.1, faults=Faults(bmc_down=True)))
    await until(opened, "the BMC to be back")
    assert (await room.server("server-5")).faults_now == Faults()


async def test_a_bmc_that_was_reset_comes_back(room: Lab) -> None:
    await room.reset_bmc("server-6", 0.2)

    async def restarted() -> bool:
        return any("the BMC restarts" in line.text for line in (await room.server("server-6")).log)

    async def opened() -> bool:
        return await status(room, "server-6") == 200

    await until(restarted, "the BMC to restart")
    await until(opened, "the BMC to be back")


async def test_every_bmc_has_a_certificate_for_its_own_address_and_no_other(room: Lab) -> None:
    first, second = room.file.servers[:2]

    async def names(host: str, port: int) -> list[str]:
        context = client_context(room.state / "ca" / "ca.crt")
        _, writer = await asyncio.open_connection(host, port, ssl=context)
        shown = writer.get_extra_info("peercert")["subjectAltName"]
        writer.close()
        return [value for _, value in shown]

    assert await names(first.host, first.bmc_port) == [first.host]
    assert await names(second.host, second.bmc_port) == [second.host]


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("PUT", "/servers?name=*", {"fault": {}}, "fault"),
        ("PUT", "/servers/server-1/plan", [{"after": -1, "faults": {}}], "seconds from 0 up"),
        ("PUT", "/servers/server-1/plan", [{"after": 1, "faults": {"x": 1}}], "x"),
        ("PUT", "/servers/server-1/hold", {"at": "boot"}, "at"),
        ("POST", "/servers/server-1/bmc/reset", {"seconds": "x"}, "seconds"),
        ("GET", "/servers?power=Perhaps", None, "Perhaps"),
        ("GET", "/servers?colour=red", None, "colour"),
    ],
)
async def test_what_the_control_face_does_not_understand_is_named(
    bench: Bench, method: str, path: str, body: Any, told: str
) -> None:
    token = (bench.state / "lab" / "token").read_text()
    url = f"{bench.lab.file.control_url}/lab/v1{path}"
    status, answer, _ = await fetch(
        bench, method, url, json=body, headers={"Authorization": f"Bearer {token}"}
    )
    assert status == 400
    assert told in answer.decode()


async def test_an_empty_password_is_refused(bench: Bench) -> None:
    with pytest.raises(LabError, match="cannot be empty"):
        await bench.lab.set_password(bench.plate.name, "")
