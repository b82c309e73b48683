"""The front server over TLS, in front of an Ironic that can misbehave."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from ingot.services.front.files import PublishedFiles, url_of_files
from ingot.services.front.limits import Buckets, Gate, Rate
from ingot.services.front.server import Front, serve
from ingot.services.front.upstream import LARGEST_ANSWER, Upstream
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority, Secret, client_context

NODE = "0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11"
MAC = "52:54:00:00:00:01"
KEY = Secret("k" * 40)
HEARTBEAT = {"callback_url": "https://10.0.0.9:9999", "agent_token": "t"}


class Behind:
    """What stands behind: keeps what it was asked, answers what it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.answer = web.json_response({"node": {"uuid": NODE}})
        self.held: asyncio.Event | None = None

    async def take(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append((request.method, request.path, dict(request.query), body))
        self.headers.append(dict(request.headers))
        if self.held:
            await self.held.wait()
        if request.path == "/":
            return web.json_response(
                {
                    "name": "OpenStack Ironic API",
                    "default_version": {
                        "id": "v1",
                        "status": "CURRENT",
                        "min_version": "1.1",
                        "version": "1.115",
                        "links": [{"href": "https://127.0.0.1:1/v1/"}],
                    },
                }
            )
        answer = self.answer
        self.answer = web.json_response({"node": {"uuid": NODE}})
        return answer


class Room:
    def __init__(self, folder: Path, behind: Behind) -> None:
        authority = Authority(folder / "ca")
        self.certificate = authority.issue(folder / "tls", "front", ["127.0.0.1"])
        self.paths = IronicPaths.below(folder / "ironic")
        for place in self.paths.folders:
            place.mkdir(parents=True, exist_ok=True)
        self.settings = IronicSettings(
            paths=self.paths,
            cert_file=self.certificate.cert_file,
            key_file=self.certificate.key_file,
            ca_file=self.certificate.ca_file,
            username="ingot",
            password_file=folder / "password",
            reverse_proxy=True,
        )
        self.behind = behind
        self.url = ""

    @property
    def trusted(self) -> ssl.SSLContext:
        return client_context(self.certificate.ca_file)

    async def call(self, method: str, path: str, **arguments: Any) -> tuple[int, bytes]:
        connector = aiohttp.TCPConnector(ssl=self.trusted)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, self.url + path, **arguments) as answer,
        ):
            assert answer.headers["Server"] == "ingot"
            return answer.status, await answer.read()


async def started(
    app: web.Application, *, socket: Path | None = None, tls: ssl.SSLContext | None = None
) -> Any:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await (
        web.UnixSite(runner, str(socket)) if socket else web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    ).start()
    return runner


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async for made in a_room(tmp_path):
        yield made


async def a_room(tmp_path: Path, **limits: Any) -> AsyncIterator[Room]:
    behind = Behind()
    made = Room(tmp_path, behind)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", behind.take)
    ironic = await started(app, socket=made.settings.api_socket)
    async with Upstream(made.settings) as upstream:
        front = Front(upstream, PublishedFiles.of(made.paths, KEY), **limits)
        runner = await started(front.app(), tls=made.certificate.server_context())
        made.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield made
        finally:
            await runner.cleanup()
            await ironic.cleanup()


async def test_a_look_up_reaches_ironic_and_its_answer_the_agent(room: Room) -> None:
    status, body = await room.call(
        "GET",
        f"/v1/lookup?addresses={MAC}",
        headers={"Authorization": "Basic eDp5", "X-OpenStack-Ironic-API-Version": "1.62"},
    )
    assert (status, body) == (200, b'{"node": {"uuid": "%b"}}' % NODE.encode())
    assert room.behind.asked == [("GET", "/v1/lookup", {"addresses": MAC}, b"")]
    assert "Authorization" not in room.behind.headers[0]
    assert room.behind.headers[0]["X-OpenStack-Ironic-API-Version"] == "1.62"


async def test_what_ironic_says_to_a_heartbeat_is_passed_on(room: Room) -> None:
    room.behind.answer = web.Response(status=202)
    assert (await room.call("POST", f"/v1/heartbeat/{NODE}", json=HEARTBEAT))[0] == 202
    room.behind.answer = web.json_response({"error_message": "locked"}, status=409)
    assert await room.call("POST", f"/v1/heartbeat/{NODE}", json=HEARTBEAT) == (
        409,
        b'{"error_message": "locked"}',
    )


async def test_nothing_else_is_there_and_ironic_never_hears_of_it(room: Room) -> None:
    for method, path in (
        ("GET", "/v1/nodes"),
        ("GET", "/v1"),
        ("POST", "/"),
        ("PUT", "/v1/lookup"),
        ("DELETE", f"/v1/nodes/{NODE}"),
        ("GET", "/v1/heartbeat/%2e%2e/nodes"),
        ("GET", "/files/"),
        ("GET", f"/files/{KEY.reveal()}/ironic.conf"),
    ):
        assert (await room.call(method, path))[0] == 404, path
    assert room.behind.asked == []


async def test_of_what_ironic_says_of_itself_only_the_version_is_told(room: Room) -> None:
    status, body = await room.call("GET", "/")
    assert status == 200
    assert b'"version": "1.115"' in body
    assert b"127.0.0.1" not in body


async def test_a_body_that_is_too_long_is_not_read(room: Room) -> None:
    long = {**HEARTBEAT, "agent_version": "x" * 100_000}
    assert (await room.call("POST", f"/v1/heartbeat/{NODE}", json=long))[0] == 413

    async def without_length() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 10_000

    assert (await room.call("POST", f"/v1/heartbeat/{NODE}", data=without_length()))[0] == 413
    assert room.behind.asked == []


async def test_a_parameter_given_twice_is_refused(room: Room) -> None:
    status, _ = await room.call("GET", f"/v1/lookup?addresses={MAC}&addresses={MAC}")
    assert (status, room.behind.asked) == (400, [])


async def test_inspection_data_of_a_large_machine_passes(room: Room) -> None:
    nics = [{"mac_address": f"52:54:00:00:{n // 256:02x}:{n % 256:02x}"} for n in range(2_000)]
    said = {"inventory": {"interfaces": nics}, "logs": "A" * 2_000_000}
    data = io.BytesIO(json.dumps(said).encode())
    assert (await room.call("POST", "/v1/continue_inspection", data=data))[0] == 200
    assert len(room.behind.asked[0][3]) > 2_000_000


async def test_large_inspection_data_are_decoded_one_after_the_other_and_small_calls_pass_by(
    tmp_path: Path,
) -> None:
    asked = asyncio.Event()

    class Taken(asyncio.Semaphore):
        async def acquire(self) -> Any:
            asked.set()
            return await super().acquire()

    decoding = Taken(0)  # somebody else's data are decoded
    said = {"inventory": {"interfaces": [{"mac_address": MAC}]}, "logs": "A" * 200_000}
    async for room in a_room(tmp_path, decoding=decoding):
        data = io.BytesIO(json.dumps(said).encode())
        large = asyncio.create_task(room.call("POST", "/v1/continue_inspection", data=data))
        async with asyncio.timeout(60):
            await asked.wait()
        assert (await room.call("POST", f"/v1/heartbeat/{NODE}", json=HEARTBEAT))[0] == 200
        assert [path for _, path, _, _ in room.behind.asked] == [f"/v1/heartbeat/{NODE}"]
        decoding.release()
        assert (await large)[0] == 200


async def test_a_front_on_all_addresses_is_heard_on_both_families(tmp_path: Path) -> None:
    async for room in a_room(tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        listening = asyncio.Event()
        settings = replace(room.settings, listen_all=True, listen_port=port)
        front = asyncio.create_task(serve(settings, listening.set))
        try:
            async with asyncio.timeout(60):
                await listening.wait()
            for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
                tls = room.trusted
                _, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname="127.0.0.1")
                writer.close()
                await writer.wait_closed()
        finally:
            front.cancel()
            await asyncio.wait([front])


async def test_while_it_runs_old_logs_of_ramdisks_make_room_for_new_ones(tmp_path: Path) -> None:
    async for room in a_room(tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        logs = room.settings.paths.agent_logs
        logs.mkdir(parents=True, exist_ok=True)
        old, new = (logs / f"{NODE}_2026-11-1{day}-00-00-00.tar.gz" for day in (5, 6))
        for age, file in enumerate((new, old)):
            file.write_bytes(b"")
            os.truncate(file, 700_000)
            os.utime(file, (1_000_000 - age, 1_000_000 - age))
        settings = replace(room.settings, listen_port=port, agent_logs_mib=1)
        front = asyncio.create_task(serve(settings, lambda: None))
        try:
            async with asyncio.timeout(60):
                while old.exists():  # noqa: ASYNC110 - polls on purpose
                    await asyncio.sleep(0.01)
            assert new.exists()
        finally:
            front.cancel()
            await asyncio.wait([front])


async def test_an_ironic_that_is_away_or_says_too_much_is_a_503_to_come_again(room: Room) -> None:
    room.behind.answer = web.Response(body=b"x" * (LARGEST_ANSWER + 1))
    assert (await room.call("GET", f"/v1/lookup?addresses={MAC}"))[0] == 503
    assert room.settings.api_socket is not None
    room.settings.api_socket.unlink()
    status, body = await room.call("GET", f"/v1/lookup?addresses={MAC}")
    assert (status, b"cannot be reached" in body) == (503, True)
    assert str(room.settings.api_socket).encode() not in body


async def test_a_machine_that_calls_and_calls_is_slowed_down_alone(tmp_path: Path) -> None:
    async for room in a_room(tmp_path, machines=Buckets(Rate(burst=2, each_second=0))):
        seen = [(await room.call("GET", f"/v1/lookup?addresses={MAC}"))[0] for _ in range(3)]
        assert seen == [200, 200, 503]
        assert (await room.call("GET", "/v1/lookup?addresses=52:54:00:00:00:02"))[0] == 200


async def test_agents_never_take_all_threads_of_ironic(tmp_path: Path) -> None:
    async for room in a_room(tmp_path, gate=Gate(at_once=2, waiting=1, patience=30)):
        room.behind.held = asyncio.Event()
        calls = [
            asyncio.create_task(room.call("GET", f"/v1/lookup?addresses=52:54:00:00:00:{n:02x}"))
            for n in range(8)
        ]
        refused, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        while len(refused) < 5:
            done, _ = await asyncio.wait(
                set(calls) - refused, timeout=30, return_when=asyncio.FIRST_COMPLETED
            )
            refused |= done
        assert {task.result()[0] for task in refused} == {503}
        assert len(room.behind.asked) == 2
        room.behind.held.set()
        assert [(await call)[0] for call in calls].count(200) == 3


def publish(room: Room, name: str, content: bytes = b"content") -> None:
    file = room.paths.http_root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


async def test_what_ironic_publishes_is_handed_out_in_pieces_too(room: Room) -> None:
    publish(room, f"redfish/boot-{NODE}.iso", b"0123456789")
    path = url_of_files("", KEY) + f"/redfish/boot-{NODE}.iso"
    assert await room.call("GET", path) == (200, b"0123456789")
    assert await room.call("GET", path, headers={"Range": "bytes=2-4"}) == (206, b"234")
    assert await room.call("HEAD", path) == (200, b"")
    assert (await room.call("PUT", path, data=b"x"))[0] == 404


@pytest.mark.parametrize(
    "name",
    [f"{NODE}/deploy_kernel", f"{NODE}/config", f"pxelinux.cfg/{MAC.replace(':', '-')}", "boot.ipxe"],
)
async def test_boot_files_are_published(room: Room, name: str) -> None:
    publish(room, name)
    assert await room.call("GET", f"{url_of_files('', KEY)}/{name}") == (200, b"content")


async def test_without_the_key_there_is_no_file(room: Room) -> None:
    publish(room, f"redfish/configdrive-{NODE}")
    for key in ("", "k" * 39, "k" * 41, "é"):
        assert (await room.call("GET", f"/files/{key}/redfish/configdrive-{NODE}"))[0] == 404


@pytest.mark.parametrize(
    "name",
    [
        "tmp/x",
        "master_images/x",
        "redfish/x",
        "redfish",
        "../ironic.conf",
        "redfish/..%2f..%2fironic.conf",
        "",
    ],
)
async def test_what_ironic_keeps_for_itself_is_not_handed_out(room: Room, name: str) -> None:
    (room.paths.state / "ironic.conf").write_text("secret")
    for kept in ("tmp/x", "master_images/x", "redfish/x"):
        publish(room, kept)
    assert (await room.call("GET", f"{url_of_files('', KEY)}/{name}"))[0] == 404


async def test_a_link_leads_no_further_than_to_where_ironic_writes(room: Room, tmp_path: Path) -> None:
    publish(room, "tmp/image")
    (tmp_path / "secret").write_text("secret")
    folder = room.paths.http_root / "agent_images"
    folder.mkdir()
    (folder / NODE).symlink_to(room.paths.http_root / "tmp" / "image")
    assert await room.call("GET", f"{url_of_files('', KEY)}/agent_images/{NODE}") == (200, b"content")
    (folder / NODE).unlink()
    (folder / NODE).symlink_to(tmp_path / "secret")
    assert (await room.call("GET", f"{url_of_files('', KEY)}/agent_images/{NODE}"))[0] == 404


async def test_ironic_on_loopback_is_verified(tmp_path: Path) -> None:
    behind = Behind()
    room = Room(tmp_path, behind)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", behind.take)
    stranger = Authority(tmp_path / "other").issue(tmp_path / "other", "ironic", ["127.0.0.1"])
    ironic = await started(app, tls=stranger.server_context())
    port = ironic.addresses[0][1]
    async with Upstream(replace(room.settings, private_port=str(port))) as upstream:
        runner = await started(
            Front(upstream, PublishedFiles.of(room.paths, KEY)).app(), tls=room.certificate.server_context()
        )
        room.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        assert (await room.call("GET", f"/v1/lookup?addresses={MAC}"))[0] == 503
        await runner.cleanup()
    await ironic.cleanup()
    assert behind.asked == []
