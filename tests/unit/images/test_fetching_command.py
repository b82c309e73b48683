"""`ingot release fetch`, with stream metadata and a server of our own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import lzma
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from unruly_server import Cuts, File, Says, Stalls, UnrulyServer, unruly

from ingot.cli.main import main
from ingot.trust import Authority

KERNEL, INITRAMFS = b"kernel" * 1000, b"initramfs" * 1000
DISK = bytes(100_000)


@pytest.fixture
async def server() -> AsyncIterator[UnrulyServer]:
    async with unruly() as made:
        for name in ("x86_64.iso", "aarch64.iso"):
            made.files[f"/{name}"] = File(name.encode() * 100_000)
        made.files["/kernel"], made.files["/initramfs"] = File(KERNEL), File(INITRAMFS)
        made.files["/disk.raw.xz"] = File(lzma.compress(DISK))
        yield made


def stream(server: UnrulyServer, folder: Path) -> Path:
    def part(path: str) -> dict[str, str]:
        content = server.files[path].content
        return {"location": server.url(path), "sha256": hashlib.sha256(content).hexdigest()}

    def architecture(name: str) -> dict[str, Any]:
        formats: dict[str, Any] = {"iso": {"disk": part(f"/{name}.iso")}}
        if name == "x86_64":
            unpacked = {"uncompressed-sha256": hashlib.sha256(DISK).hexdigest()}
            formats["raw.xz"] = {"disk": part("/disk.raw.xz") | unpacked}
            formats["pxe"] = {"kernel": part("/kernel"), "initramfs": part("/initramfs")}
        return {"artifacts": {"metal": {"release": "9.6", "formats": formats}}}

    path = folder / "stream.json"
    architectures = {name: architecture(name) for name in ("x86_64", "aarch64")}
    path.write_text(json.dumps({"stream": "rhel-9.6", "architectures": architectures}))
    return path


async def run(*words: str | Path) -> Result:
    arguments = ["release", "fetch", *(str(word) for word in words)]
    return await asyncio.to_thread(CliRunner().invoke, main, arguments)


async def test_images_of_several_architectures_come_into_one_folder(
    server: UnrulyServer, tmp_path: Path
) -> None:
    folder = tmp_path / "images"
    words = ["--stream-file", stream(server, tmp_path), "-a", "x86_64", "-a", "aarch64", "-C", folder]
    ended = await run(*words)
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.splitlines() == [str(folder / "x86_64.iso"), str(folder / "aarch64.iso")]
    assert (folder / "coreos-stream.json").read_bytes() == (tmp_path / "stream.json").read_bytes()
    assert (folder / "aarch64.iso").read_bytes() == server.files["/aarch64.iso"].content
    told = json.loads((await run(*words, "-o", "json")).stdout)
    assert [(file["architecture"], file["reused"]) for file in told] == [("x86_64", True), ("aarch64", True)]
    assert told[0]["stream"] == "rhel-9.6"
    assert told[0]["release"] == "9.6"
    assert told[0]["path"] == str(folder / "x86_64.iso")


@pytest.mark.parametrize("named", ["--stream-url", "--stream-base-url"])
async def test_the_metadata_may_come_from_a_server_that_is_trusted(
    named: str, server: UnrulyServer, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "authority")
    trusted = authority.issue(tmp_path / "tls", "server", ["127.0.0.1"]).server_context()
    async with unruly(trusted) as secure:
        secure.files["/streams/stable.json"] = File(stream(server, tmp_path).read_bytes())
        url = secure.url("/streams/stable.json" if named == "--stream-url" else "/streams")
        words = [named, url, "-a", "x86_64", "-C", tmp_path / "images"]
        ended = await run(*words, "--ca", authority.ca_file)
        assert ended.exit_code == 0, ended.output
        assert ended.stdout == f"{tmp_path / 'images' / 'x86_64.iso'}\n"
        assert "is not trusted" in (await run(*words)).stderr


async def test_a_format_with_parts_comes_whole(server: UnrulyServer, tmp_path: Path) -> None:
    ended = await run(
        "--stream-file", stream(server, tmp_path), "-a", "x86_64", "-f", "pxe", "-C", tmp_path, "-o", "json"
    )
    told = json.loads(ended.stdout)
    assert [(file["part"], file["path"]) for file in told] == [
        ("kernel", str(tmp_path / "kernel")),
        ("initramfs", str(tmp_path / "initramfs")),
    ]
    assert (tmp_path / "kernel").read_bytes() == KERNEL


async def test_a_disk_is_unpacked_and_not_fetched_again(server: UnrulyServer, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    words = ["--stream-file", stream(server, tmp_path), "-a", "x86_64", "-f", "raw.xz", "-d", "-C", folder]
    assert (await run(*words)).stdout == f"{folder / 'disk.raw'}\n"
    assert sorted(path.name for path in folder.iterdir()) == ["coreos-stream.json", "disk.raw"]
    assert (folder / "disk.raw").read_bytes() == DISK
    (told,) = json.loads((await run(*words, "-o", "json")).stdout)
    assert (told["reused"], told["sha256"]) == (True, hashlib.sha256(DISK).hexdigest())
    assert len(server.asked) == 1


async def test_what_a_stream_does_not_have_is_a_sentence(server: UnrulyServer, tmp_path: Path) -> None:
    ended = await run("--stream-file", stream(server, tmp_path), "-a", "s390x")
    assert ended.exit_code == 1
    assert ended.stderr == (
        "Error: stream rhel-9.6 has nothing for the architecture s390x; it has aarch64, x86_64\n"
    )
    assert server.asked == []


async def test_two_files_of_one_name_are_refused_before_anything_comes(
    server: UnrulyServer, tmp_path: Path
) -> None:
    path = stream(server, tmp_path)
    path.write_text(path.read_text().replace("/aarch64.iso", "/other/x86_64.iso"))
    ended = await run("--stream-file", path, "-a", "x86_64", "-a", "aarch64")
    assert ended.exit_code == 1
    assert "x86_64.iso is the name of the disk for x86_64 and of the disk for aarch64" in ended.stderr
    assert server.asked == []


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--stream", "stable", "--stream-file", "x"], 2, "name the stream once"),
        (["--stream", "../x"], 2, "no name of a stream"),
        (["--fetch-retries", "often"], 2, "neither a number nor 'infinite'"),
        (["--stream-file", "/nowhere/stream.json"], 1, "/nowhere/stream.json: No such file or directory"),
        (["--stream-url", "http://127.0.0.1:1/x.json"], 1, "over a connection that nobody verifies"),
        (["--stream-base-url", "http://127.0.0.1:1/"], 1, "over a connection that nobody verifies"),
    ],
)
async def test_what_cannot_be_is_said(words: list[str], code: int, sentence: str) -> None:
    ended = await run(*words)
    assert ended.exit_code == code
    assert sentence in ended.stderr


async def test_what_holds_a_download_up_is_told(server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Says(503)]
    ended = await run("--stream-file", stream(server, tmp_path), "-a", "x86_64", "-C", tmp_path)
    assert ended.exit_code == 0
    assert "HTTP 503; the next try is in" in ended.stderr
    assert ended.stdout == f"{tmp_path / 'x86_64.iso'}\n"


async def test_a_server_that_says_no_is_a_sentence(server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Says(403)]
    ended = await run("--stream-file", stream(server, tmp_path), "-a", "x86_64", "-C", tmp_path)
    assert ended.exit_code == 1
    assert "answers HTTP 403" in ended.stderr


async def test_files_that_came_before_one_that_did_not_are_told(server: UnrulyServer, tmp_path: Path) -> None:
    path = stream(server, tmp_path)
    del server.files["/aarch64.iso"]
    ended = await run("--stream-file", path, "-a", "x86_64", "-a", "aarch64", "-C", tmp_path)
    assert ended.exit_code == 1
    assert ended.stdout == f"{tmp_path / 'x86_64.iso'}\n"
    assert "/aarch64.iso answers HTTP 404" in ended.stderr


async def test_a_download_that_was_killed_goes_on(server: UnrulyServer, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    part = folder / ".x86_64.iso.part"
    server.arrived = lambda: part.stat().st_size if part.exists() else 0
    server.faults = [Cuts(400_000), Stalls(0)]
    words = [
        "release",
        "fetch",
        "--stream-file",
        str(stream(server, tmp_path)),
        "-a",
        "x86_64",
        "-C",
        str(folder),
    ]
    command = [sys.executable, "-c", "from ingot.cli.main import main; main()", *words]
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    killed = await asyncio.create_subprocess_exec(*command, env=environment)
    asked, ended = asyncio.create_task(server.was_asked(2)), asyncio.create_task(killed.wait())
    await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
    assert asked.done()
    killed.kill()
    await ended
    assert not (folder / "x86_64.iso").exists()
    told = json.loads((await run(*words[2:], "-o", "json")).stdout)
    assert (told[0]["resumed"], told[0]["reused"]) == (400_000, False)
    assert server.asked[-1].range == "bytes=400000-"
    assert sorted(path.name for path in folder.iterdir()) == ["coreos-stream.json", "x86_64.iso"]
