"""`ingot pxe`: initial RAM disks that are made, read, and put behind that of a live system."""

from __future__ import annotations

import gzip
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingot.cli.main import main
from ingot.formats.initrd import cpio, pack
from live_images import BY_NAME, NEWEST, live_initrd

CONFIG = b'{"ignition": {"version": "3.3.0"}}\n'


def run(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["pxe", *(str(argument) for argument in arguments)], input=given)


def done(*arguments: str | Path, given: bytes | None = None) -> bytes:
    result = run(*arguments, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def refused(sentence: str, *arguments: str | Path, given: bytes | None = None) -> None:
    result = run(*arguments, given=given)
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr


@pytest.fixture
def initrd(tmp_path: Path) -> Path:
    path = tmp_path / "initrd.img"
    path.write_bytes(live_initrd(NEWEST))
    return path


def test_a_config_is_wrapped_and_unwrapped(tmp_path: Path) -> None:
    (tmp_path / "a.ign").write_bytes(CONFIG)
    streamed = done("ignition", "wrap", "-i", tmp_path / "a.ign")
    done("ignition", "wrap", "-o", tmp_path / "wrapped", given=CONFIG)
    assert (tmp_path / "wrapped").read_bytes() == streamed
    assert done("ignition", "unwrap", tmp_path / "wrapped") == CONFIG
    assert done("ignition", "unwrap", given=streamed) == CONFIG
    (tmp_path / "wrapped").chmod(0o640)
    done("ignition", "wrap", "-o", tmp_path / "wrapped", given=b"other")
    assert (tmp_path / "wrapped").stat().st_mode & 0o777 == 0o640
    assert done("ignition", "unwrap", tmp_path / "wrapped") == b"other"


def test_keyfiles_are_wrapped_and_unwrapped(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("id=a\n")
    (tmp_path / "b").write_text("id=b\n")
    wrapped = done("network", "wrap", "-k", tmp_path / "b", "-k", tmp_path / "a")
    shown = done("network", "unwrap", given=wrapped)
    assert shown == b"########## a ##########\nid=a\n\n########## b ##########\nid=b\n"
    (tmp_path / "image").write_bytes(wrapped)
    done("network", "unwrap", "-C", tmp_path / "out", tmp_path / "image")
    assert (tmp_path / "out" / "b").read_text() == "id=b\n"


def test_what_is_not_there_is_an_error() -> None:
    other = pack({"etc/x": b""})
    refused("couldn't find Ignition config in archive", "ignition", "unwrap", given=other)
    refused("No embedded network settings", "network", "unwrap", given=other)
    refused("not a cpio archive", "ignition", "unwrap", given=b"garbage" * 100)


def test_only_the_last_part_of_a_keyfiles_path_becomes_a_name(tmp_path: Path) -> None:
    escaping = pack({"etc/coreos-firstboot-network/../../escaped": b"x"})
    done("network", "unwrap", "-C", tmp_path / "out", given=escaping)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["out", "out/escaped"]
    refused(
        "no name for a file",
        *("network", "unwrap", "-C", tmp_path / "out"),
        given=pack({"etc/coreos-firstboot-network/..": b"x"}),
    )


def test_a_live_systems_initrd_is_followed_by_what_was_asked_for(initrd: Path, tmp_path: Path) -> None:
    (tmp_path / "a.ign").write_bytes(CONFIG)
    (tmp_path / "eth0").write_text("id=eth0\n")
    options = ["--live-ignition", tmp_path / "a.ign", "--network-keyfile", tmp_path / "eth0"]
    result = run("customize", *options, "-o", tmp_path / "out", initrd)
    assert result.exit_code == 0, result.output
    assert "ignition.firstboot ignition.platform.id=metal" in result.stderr
    assert (tmp_path / "out").read_bytes().startswith(initrd.read_bytes())
    assert done("customize", *options, "-o", "-", initrd) == (tmp_path / "out").read_bytes()
    assert json.loads(done("ignition", "unwrap", tmp_path / "out"))["ignition"]["version"] == "3.3.0"
    assert b"id=eth0" in done("network", "unwrap", tmp_path / "out")
    refused("File exists", "customize", *options, "-o", tmp_path / "out", initrd)
    refused("already customized", "customize", *options, "-o", tmp_path / "again", tmp_path / "out")
    assert not (tmp_path / "again").exists()


def test_an_initrd_may_come_out_of_a_pipe(initrd: Path, tmp_path: Path) -> None:
    (tmp_path / "a.ign").write_bytes(CONFIG)
    command = 'exec "$1" -c "from ingot.cli.main import main; main()" pxe customize --live-ignition "$2" -o - <(cat "$3")'
    ended = subprocess.run(
        ["bash", "-c", command, "bash", sys.executable, tmp_path / "a.ign", initrd],
        capture_output=True,
        check=True,
    )
    assert ended.stdout == done("customize", "--live-ignition", tmp_path / "a.ign", "-o", "-", initrd)


def test_nothing_asked_for_is_a_copy(initrd: Path, tmp_path: Path) -> None:
    done("customize", "-o", tmp_path / "out", initrd)
    assert (tmp_path / "out").read_bytes() == initrd.read_bytes()


def test_another_initrd_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(pack({"init": b""}))
    refused("not a CoreOS live initramfs image", "customize", "-o", tmp_path / "out", tmp_path / "other")
    assert not (tmp_path / "out").exists()


def test_what_the_initrd_cannot_do_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(live_initrd(BY_NAME["2021-09"]))
    (tmp_path / "eth0").write_text("")
    for options, what in (
        (["--network-keyfile", tmp_path / "eth0"], "network settings"),
        (["--dest-device", "/dev/vda"], "installer configuration"),
    ):
        refused(
            f"does not support customizing {what}",
            "customize",
            *options,
            "-o",
            tmp_path / "out",
            tmp_path / "old",
        )


def test_a_bomb_in_place_of_features_is_refused(tmp_path: Path) -> None:
    members = [
        cpio.entry_bytes("etc/coreos-live-initramfs", cpio.REGULAR),
        cpio.entry_bytes("etc/coreos/features.json", cpio.REGULAR, bytes(70 << 20)),
    ]
    (tmp_path / "bomb").write_bytes(gzip.compress(b"".join(members) + cpio.trailer(), 1))
    refused("at most 67108864 bytes", "customize", "-o", tmp_path / "out", tmp_path / "bomb")


def test_nothing_binary_is_written_to_a_terminal() -> None:
    leader, terminal = pty.openpty()
    try:
        command = [sys.executable, "-c", "from ingot.cli.main import main; main()", "pxe", "ignition", "wrap"]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, check=False
        )
        assert b"Refusing to write binary data to terminal" in ended.stderr
    finally:
        os.close(leader)
        os.close(terminal)
