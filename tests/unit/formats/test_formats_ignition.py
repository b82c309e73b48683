"""Ignition configs: what is accepted, what is refused with its place, what is only warned of, and what we make."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.ignition import VERSIONS, IgnitionConfig, parse_ignition


def config(**sections: object) -> bytes:
    return json.dumps({"ignition": {"version": "3.2.0"}, **sections}).encode()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_specification_of_version_3_is_read(version: str) -> None:
    parsed, warnings = parse_ignition(json.dumps({"ignition": {"version": version}}).encode())
    assert parsed["ignition"]["version"] == version
    assert warnings == []


def test_a_config_with_everything_gives_no_warning() -> None:
    _, warnings = parse_ignition(
        config(
            passwd={
                "users": [
                    {"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 A"], "uid": 1000, "gecos": None}
                ]
            },
            storage={
                "files": [{"path": "/a", "mode": 420, "contents": {"source": "data:,x"}, "user": {"id": 0}}],
                "disks": [{"device": "/dev/vda", "partitions": [{"sizeMiB": 5, "label": "x"}]}],
                "luks": [{"name": "x", "clevis": {"tang": [{"url": "https://t"}]}}],
            },
            systemd={"units": [{"name": "a.service", "dropins": [{"name": "b.conf", "contents": ""}]}]},
            kernelArguments={"shouldExist": ["a"]},
        )
    )
    assert warnings == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[" * 200_000, "too deep"),
        (b"\xff", "not JSON"),
        (b"[]", r"\$ of the Ignition config is a list; an object is expected"),
        (b"{}", "has no ignition"),
        (b'{"ignition": {}}', r"\$\.ignition of the Ignition config has no version"),
        (b'{"ignition": {"version": 3}}', "a string is expected"),
        (config(storage={"files": {}}), r"\$\.storage\.files .* a list is expected"),
        (config(storage={"files": [{"mode": 1}]}), r"\$\.storage\.files\.0 .* has no path"),
        (config(storage={"files": [{"path": "/a", "mode": "0644"}]}), r"files\.0\.mode .* a whole number"),
        (config(storage={"files": [{"path": "/a", "mode": True}]}), "a whole number"),
        (config(passwd={"users": [{"name": "a", "groups": "b"}]}), "groups .* a list"),
        (config(systemd={"units": [{"name": "a", "enabled": "yes"}]}), "true or false"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(content: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        parse_ignition(content)


@pytest.mark.parametrize("version", ["2.2.0", "3.0.0-experimental", "4.0.0", "z", ""])
def test_a_version_nobody_knows_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedFormat, match=r"3\.0\.0 to 3\.6\.0 are known"):
        parse_ignition(json.dumps({"ignition": {"version": version}}).encode())


def test_a_key_that_nobody_reads_is_a_warning_with_its_path() -> None:
    _, warnings = parse_ignition(config(storage={"files": [{"path": "/a", "content": "x"}]}, more=1))
    assert warnings == ["unused key: $.storage.files.0.content", "unused key: $.more"]


def test_what_we_make_is_read_back_by_ourselves() -> None:
    made = IgnitionConfig("3.3.0")
    assert not made
    made.add_file("/etc/x", b"content", mode=0o600)
    made.add_unit("a.service", "[Unit]\n")
    made.add_authority(b"PEM")
    made.merge({"ignition": {"version": "3.0.0"}})
    parsed, warnings = parse_ignition(made.encoded())
    assert warnings == []
    (file,) = parsed["storage"]["files"]
    assert (file["path"], file["mode"]) == ("/etc/x", 0o600)
    packed = base64.b64decode(file["contents"]["source"].removeprefix("data:;base64,"))
    assert gzip.decompress(packed) == b"content"
    assert parsed["systemd"]["units"] == [{"name": "a.service", "contents": "[Unit]\n", "enabled": True}]
    assert len(parsed["ignition"]["security"]["tls"]["certificateAuthorities"]) == 1
    assert len(parsed["ignition"]["config"]["merge"]) == 1


def test_a_path_or_unit_that_is_there_already_is_refused() -> None:
    made = IgnitionConfig("3.3.0")
    made.add_file("/etc/x", b"", mode=0o600)
    made.add_unit("a.service", "")
    with pytest.raises(FormatError, match="config already specifies path /etc/x"):
        made.add_file("/etc/x", b"other", mode=0o600)
    with pytest.raises(FormatError, match=r"config already specifies unit a\.service"):
        made.add_unit("a.service", "other")
