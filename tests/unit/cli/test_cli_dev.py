"""`ingot dev`: what images are made of, for scripts that read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingot.cli.main import main
from ingot.formats.initrd import cpio, pack
from live_images import AREA, BY_NAME, DEFAULT, LABEL, NEWEST, live_image


def run(*arguments: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["dev", *(str(argument) for argument in arguments)], input=given)


def done(*arguments: str | Path, given: bytes | None = None) -> str:
    result = run(*arguments, given=given)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(sentence: str, *arguments: str | Path, given: bytes | None = None, code: int = 1) -> None:
    result = run(*arguments, given=given)
    assert result.exit_code == code, result.output
    assert sentence in result.stderr


def saved(folder: Path, name: str) -> Path:
    path = folder / f"{name}.iso"
    path.write_bytes(live_image(BY_NAME[name]))
    return path


def test_the_areas_are_where_the_bytes_are(tmp_path: Path) -> None:
    image = saved(tmp_path, "2023-07-s390x")
    content = image.read_bytes()
    area = json.loads(done("show", "iso", "--ignition", image))
    assert area["length"] == AREA
    assert content[area["offset"] :][:AREA] == bytes(AREA)
    arguments = json.loads(done("show", "iso", "--kargs", image))
    assert (arguments["default"], arguments["length"]) == (DEFAULT, 896)
    (place,) = arguments["kargs"]
    assert (place["pad"], place["end"]) == ("\0", "\0")
    assert content[place["offset"] :].startswith(DEFAULT.encode() + b"\0")


def test_an_image_without_argument_areas_has_none_to_show(tmp_path: Path) -> None:
    assert done("show", "iso", "--kargs", saved(tmp_path, "2020-09")) == "null\n"


def test_the_volume_and_its_files_are_shown(tmp_path: Path) -> None:
    shown = json.loads(done("show", "iso", saved(tmp_path, NEWEST.name)))
    primary, joliet = shown["header"]["descriptors"]
    assert (primary["type"], primary["volume_id"], joliet["type"]) == ("primary", LABEL, "supplementary")
    assert primary["root"]["name"] == "."
    assert "IMAGES/PXEBOOT/ROOTFS.IMG" in shown["records"]
    assert shown["records"].index("IMAGES") < shown["records"].index("IMAGES/PXEBOOT")


def test_two_areas_at_once_are_not_shown(tmp_path: Path) -> None:
    refused("exclude each other", "show", "iso", "--ignition", "--kargs", tmp_path / "any", code=2)


def test_an_image_that_was_cut_short_says_so(tmp_path: Path) -> None:
    image = saved(tmp_path, NEWEST.name)
    image.write_bytes(image.read_bytes()[: 200 << 10])
    refused("ISO image is incomplete", "show", "iso", image)


@pytest.fixture
def initrd(tmp_path: Path) -> Path:
    path = tmp_path / "initrd.img"
    path.write_bytes(
        pack({"gzip/hello": b"HELLO\n", "gzip/world": b"WORLD\n"}) + pack({"xz/hello": b"X"}, limit=0)
    )
    return path


def test_the_places_of_a_file_on_its_device_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10_000))
    ended = CliRunner().invoke(main, ["dev", "show", "fiemap", str(path)])
    if "not supported" in ended.output:
        pytest.skip("the file system of the temporary folder does not tell")
    (extent,) = json.loads(ended.stdout)["extents"]
    assert extent["logical"] == 0
    assert extent["length"] >= 10_000
    assert extent["physical"] > 0


def test_the_files_of_an_initrd_are_listed_and_chosen(initrd: Path) -> None:
    assert done("show", "initrd", initrd).split() == ["gzip/hello", "gzip/world", "xz/hello"]
    assert done("show", "initrd", "-", "*hello", given=initrd.read_bytes()).split() == [
        "gzip/hello",
        "xz/hello",
    ]
    assert done("show", "initrd", initrd, "gzip*", "nothing").split() == ["gzip/hello", "gzip/world"]


def test_the_files_of_an_initrd_are_extracted_once(initrd: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    printed = done("extract", "initrd", "-C", folder, "-v", initrd, "gzip/*")
    assert printed.split() == [f"{folder}/gzip/hello", f"{folder}/gzip/world"]
    assert (folder / "gzip" / "hello").read_text() == "HELLO\n"
    assert not (folder / "xz").exists()
    refused("File exists", "extract", "initrd", "-C", folder, initrd)


@pytest.mark.parametrize("path", ["/etc/passwd", "../escaped", "a/../../b"])
def test_a_path_that_leads_out_is_refused_and_nothing_is_extracted(path: str, tmp_path: Path) -> None:
    image = cpio.entry_bytes("fine", cpio.REGULAR) + cpio.entry_bytes(path, cpio.REGULAR) + cpio.trailer()
    refused("contains path traversal", "extract", "initrd", "-C", tmp_path / "out", "-", given=image)
    assert list(tmp_path.iterdir()) == []
