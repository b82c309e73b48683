"""What Ignition does with a config, how an agent is found in a unit, what a root file system is compared with."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from lab_bench import serving

from ingot.formats.ignition import IgnitionConfig
from ingot.images.ramdisk.ignition import agent_ignition
from ingot.images.ramdisk.settings import AgentSettings
from ingot.lab.coreos.ignition import Applied, File, Unit, applied
from ingot.lab.coreos.ramdisk import CONFIGURATION, UNIT, NoAgent, agent_in, container_of
from ingot.lab.coreos.rootfs import StreamHash, difference, parse_stream_hash
from ingot.lab.errors import BootFailure
from ingot.lab.media import Remote, opened
from ingot.trust import client_context
from live_images import stream_hash


def data(content: bytes) -> dict[str, str]:
    return {"source": "data:;base64," + base64.b64encode(content).decode()}


def config(version: str = "3.2.0", **parts: Any) -> bytes:
    ignition = {"version": version, **parts.pop("ignition", {})}
    return json.dumps({"ignition": ignition, **parts}).encode()


# Ignition


def test_files_come_out_of_their_urls_whatever_form_these_have() -> None:
    made = IgnitionConfig("3.2.0")
    made.add_file("/compressed", b"c" * 1000, mode=0o600)
    done = applied(
        config(
            storage={
                "files": [
                    *made.files,
                    {"path": "/plain", "contents": {"source": "data:text/plain,a%20b%0A"}},
                    {"path": "/base64", "contents": data(b"\0\1"), "mode": 256},
                    {"path": "/empty"},
                    {"path": "/longer", "append": [data(b"a"), data(b"b")]},
                    {
                        "path": "/checked",
                        "contents": {
                            **data(b"x"),
                            "verification": {"hash": "sha256-" + hashlib.sha256(b"x").hexdigest()},
                        },
                    },
                ]
            }
        )
    )
    assert done.files == {
        "/compressed": File(b"c" * 1000, 0o600),
        "/plain": File(b"a b\n", 0o644),
        "/base64": File(b"\0\1", 256),
        "/empty": File(b"", 0o644),
        "/longer": File(b"ab", 0o644),
        "/checked": File(b"x", 0o644),
    }


def test_a_config_that_is_merged_wins_and_what_it_does_not_say_stays() -> None:
    child = config(
        storage={"files": [{"path": "/a", "contents": data(b"child")}]},
        systemd={"units": [{"name": "u.service", "enabled": True}]},
        passwd={"users": [{"name": "core", "sshAuthorizedKeys": ["two", "one"]}]},
    )
    done = applied(
        config(
            ignition={"config": {"merge": [data(child)]}},
            storage={
                "files": [
                    {"path": "/a", "contents": data(b"parent"), "mode": 384},
                    {"path": "/etc/hostname", "contents": data(b"h\n")},
                ]
            },
            systemd={"units": [{"name": "u.service", "contents": "text"}]},
            passwd={"users": [{"name": "core", "sshAuthorizedKeys": ["one"]}]},
        )
    )
    assert done.files["/a"] == File(b"child", 384)
    assert done.hostname == "h"
    assert done.units == {"u.service": Unit("text", enabled=True)}
    assert done.ssh_keys == {"core": ("one", "two")}


def test_a_config_that_replaces_another_is_all_there_is() -> None:
    child = config(storage={"files": [{"path": "/b"}]})
    done = applied(config(ignition={"config": {"replace": data(child)}}, storage={"files": [{"path": "/a"}]}))
    assert list(done.files) == ["/b"]


def test_a_masked_unit_is_not_enabled() -> None:
    unit = {"name": "u.service", "enabled": True, "mask": True}
    assert not applied(config(systemd={"units": [unit]})).units["u.service"].enabled


def endless() -> bytes:
    made = config()
    for _ in range(12):
        made = config(ignition={"config": {"merge": [data(made)]}})
    return made


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (b"not JSON", "not JSON"),
        (config("2.2.0"), "2.2.0"),
        (config(storage={"files": [{"path": "/a"}, {"path": "/a"}]}), "/a is in the Ignition config twice"),
        (config(storage={"files": [{"path": "/a"}], "links": [{"path": "/a", "target": "/b"}]}), "twice"),
        (config(storage={"files": [{"path": "/a", "contents": {"source": "https://x/y"}}]}), "to be fetched"),
        (config(storage={"files": [{"path": "/a", "contents": {"source": "data:nothing"}}]}), "no comma"),
        (
            config(storage={"files": [{"path": "/a", "contents": {"source": "data:;base64,%%"}}]}),
            "not base64",
        ),
        (
            config(
                storage={
                    "files": [{"path": "/a", "contents": {**data(b"not packed"), "compression": "gzip"}}]
                }
            ),
            "not gzip",
        ),
        (
            config(
                storage={
                    "files": [
                        {"path": "/a", "contents": {**data(gzip.compress(b"x")[:-4]), "compression": "gzip"}}
                    ]
                }
            ),
            "end too early",
        ),
        (
            config(
                storage={
                    "files": [
                        {"path": "/a", "contents": {**data(b"x"), "verification": {"hash": "sha256-0"}}}
                    ]
                }
            ),
            "do not have the hash",
        ),
        (endless(), "more than 8 deep"),
    ],
)
def test_what_ignition_refuses_ends_the_boot(given: bytes, why: str) -> None:
    with pytest.raises(BootFailure, match="Ignition fails") as failure:
        applied(given)
    assert why in str(failure.value)


# The agent

SETTINGS = AgentSettings(
    api_urls=("https://one:6385", "https://two:6385"), ca=b"the CA\n", ip_options=("ip=dhcp", "x=y")
)


def made_for(settings: AgentSettings = SETTINGS) -> Applied:
    return applied(agent_ignition(settings, hostname="h1", keyfiles={}))


def test_the_agent_of_a_ramdisk_is_found_with_everything_that_it_is_told() -> None:
    found = agent_in(made_for(), {"BOOTIF": "mac", "ipa-api-url": "https://the-kernel-says"})
    assert found.image == "quay.io/metal3-io/ironic-agent"
    assert found.parameters["ipa-api-url"] == "https://one:6385"
    assert found.parameters["ipa-inspection-callback-url"] == "https://one:6385/v1/continue_inspection"
    assert found.parameters["BOOTIF"] == "mac"
    assert found.ca == "the CA\n"
    assert not found.insecure
    assert found.environment == {
        "IPA_COREOS_IP_OPTIONS": "ip=dhcp x=y",
        "IPA_COREOS_COPY_NETWORK": "false",
        "IPA_DEFAULT_HOSTNAME": "h1",
    }


def changed(system: Applied, *, without: str = "", **files: str) -> Applied:
    kept = {path: file for path, file in system.files.items() if path != without}
    return Applied(
        {**kept, **{path: File(text.encode(), 0o644) for path, text in files.items()}}, system.units
    )


def unit(text: str, *, enabled: bool = True) -> Applied:
    return Applied(
        {CONFIGURATION: File(b"[DEFAULT]\napi_url = https://x\n", 0o644)}, {UNIT: Unit(text, enabled)}
    )


RUN = "[Service]\nExecStart=/usr/bin/podman run --rm"
MOUNT = f"-v {CONFIGURATION}:/etc/ironic-python-agent/x.conf:ro"


@pytest.mark.parametrize(
    ("system", "why"),
    [
        (Applied(), "no unit"),
        (unit(f"{RUN} {MOUNT} image", enabled=False), "not enabled"),
        (unit("[Service]\nExecStart=/bin/true\n"), "runs no container"),
        (unit(f"{RUN} {MOUNT} --name agent"), "runs no container"),
        (unit(f"{RUN} {MOUNT} 'image"), "runs no container"),
        (unit(f"{RUN} image"), "does not see"),
        (changed(made_for(), without=CONFIGURATION), "writes no"),
        (changed(made_for(), **{CONFIGURATION: "[DEFAULT]\n"}), "does not say whom to call"),
        (changed(made_for(), **{CONFIGURATION: "api_url = x"}), "cannot be read"),
        (
            changed(made_for(), **{CONFIGURATION: "[DEFAULT]\napi_url = x\ncafile = /etc/x.crt\n"}),
            "cafile /etc/x.crt",
        ),
    ],
)
def test_a_system_without_all_that_an_agent_needs_has_none(system: Applied, why: str) -> None:
    with pytest.raises(NoAgent, match=why):
        agent_in(system, {})


def test_an_agent_that_trusts_anybody_says_so() -> None:
    told = {CONFIGURATION: "[DEFAULT]\napi_url = https://x\ninsecure = True\ncafile = /nowhere\n"}
    found = agent_in(changed(made_for(), **told), {})
    assert found.insecure
    assert found.ca == ""


def test_options_of_a_container_are_told_from_its_image() -> None:
    text = (
        "[Service]\nExecStart=-/bin/podman run --detach --privileged --network host -e A=1 --env=B=%%2 \\\n"
        "  --mount type=bind,source=/,target=/mnt/coreos --volume=/dev:/dev --authfile /etc/x registry.example/a:1 arg\n"
    )
    found = container_of(text)
    assert found is not None
    assert (found.image, found.environment) == ("registry.example/a:1", {"A": "1", "B": "%2"})
    assert found.on_host("/mnt/coreos/etc/x") == "/etc/x"
    assert found.on_host("/dev") == "/dev"
    assert found.on_host("/elsewhere") is None


# The root file system


async def pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


@pytest.mark.parametrize("piece", [1, 7, 10, 100])
async def test_a_root_file_system_is_compared_part_by_part(piece: int) -> None:
    content = bytes(range(45))
    wanted = parse_stream_hash(stream_hash(content, 10))
    assert wanted.size == 10
    assert len(wanted.digests) == 5
    assert await difference(pieces(content, piece), wanted) == ""
    assert "offset 30" in await difference(pieces(content[:35] + b"x" + content[36:], piece), wanted)
    assert "offset 40" in await difference(pieces(content[:44], piece), wanted)
    assert "ends after 4 of 5" in await difference(pieces(content[:40], piece), wanted)
    assert "offset 40" in await difference(pieces(content + b"more than that", piece), wanted)
    assert await difference(pieces(b"", piece), StreamHash(10, ())) == ""


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"stream-hash md5 10\n",
        b"stream-hash sha256 0\n",
        b"stream-hash sha256 99999999\n",
        b"stream-hash sha256 9\nxyz\n",
    ],
)
def test_what_cannot_be_read_is_not_taken_for_a_wish(text: bytes) -> None:
    with pytest.raises(BootFailure, match="which root file system"):
        parse_stream_hash(text)


# A medium that is read by parts


async def read_some(folder: Path, handler: Any) -> bytes:
    async with serving(folder, handler) as url:
        trusted: ssl.SSLContext = client_context(folder / "ca" / "ca.crt")
        async with opened(url, "the medium", trusted=trusted, folder=folder) as found:
            assert isinstance(found, Remote)
            return await found.read(lambda file: (file.seek(3 << 20), file.read(4))[1])


def ranged(content: bytes, request: web.Request, **headers: str) -> web.Response:
    asked = request.http_range
    start, stop = asked.start or 0, min(len(content), asked.stop or len(content))
    return web.Response(
        status=206,
        body=content[start:stop],
        headers={"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}", **headers},
    )


CONTENT = bytes(3 << 20) + b"here" + bytes(1 << 20)


async def test_parts_are_fetched_when_they_are_read(tmp_path: Path) -> None:
    async def serve(request: web.Request) -> web.Response:
        return ranged(CONTENT, request)

    assert await read_some(tmp_path, serve) == b"here"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda request: web.Response(body=CONTENT), "changed while the server booted"),
        (lambda request: ranged(CONTENT + b"x", request), "and not with bytes"),
        (lambda request: web.Response(status=404), "HTTP 404"),
    ],
)
async def test_a_medium_that_changes_while_it_is_read_does_not_boot(
    tmp_path: Path, answer: Any, why: str
) -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        asked.append(request.headers.get("If-Range", ""))
        return ranged(CONTENT, request, ETag='"a"') if len(asked) == 1 else answer(request)

    with pytest.raises(BootFailure, match=why):
        await read_some(tmp_path, serve)
    assert asked == ["", '"a"']
