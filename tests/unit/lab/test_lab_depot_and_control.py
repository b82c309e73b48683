"""The depot and the control face: what is served to whom."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import aiohttp
import pytest
from lab_bench import Bench, status_of

from ingot.lab.errors import LabError
from ingot.lab.samples import sample_disk
from ingot.trust import client_context


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
        assert image.disk_sha256 == hashlib.sha256(sample_disk()).hexdigest()


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


async def test_an_empty_password_is_refused(bench: Bench) -> None:
    with pytest.raises(LabError, match="cannot be empty"):
        await bench.lab.set_password(bench.plate.name, "")
