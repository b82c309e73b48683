"""ISO 9660: our writer against xorriso and our own reader, our reader against xorriso's images and against damage."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.iso9660 import Iso, build_iso

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FILES = {
    "/boot/grub/grub.cfg": b"linux /vmlinuz quiet\n",
    "/EFI/BOOT/grub.cfg": b"x" * 5000,
    "/etc/ironic-python-agent/ironic.crt": b"certificate",
    "/openstack/latest/meta_data.json": b"{}",
    "/empty": b"",
}
needs_xorriso = pytest.mark.skipif(
    shutil.which("xorriso") is None, reason="xorriso is not installed; it is the judge here"
)


def opened(image: bytes) -> Iso:
    return Iso(io.BytesIO(image))


def test_what_is_written_is_read_back() -> None:
    iso = opened(build_iso(FILES, label="RAMDISK", made_at=WHEN))
    assert iso.label == "RAMDISK"
    assert {path: iso.read(path) for path, _ in iso.files()} == FILES


def test_the_same_files_give_the_same_bytes() -> None:
    again = dict(reversed(FILES.items()))
    assert build_iso(FILES, label="a", made_at=WHEN) == build_iso(again, label="a", made_at=WHEN)


def test_a_folder_of_more_files_than_fit_in_a_sector() -> None:
    files = {
        f"/many/a rather long file name number {number}.txt": str(number).encode() for number in range(200)
    }
    iso = opened(build_iso(files, label="MANY", made_at=WHEN))
    assert {path: iso.read(path) for path, _ in iso.files()} == files


NAMES = st.text("abcdefXYZ019-_. ", min_size=1, max_size=40).filter(
    lambda name: name.strip(". ") and name == name.strip()
)


@settings(deadline=None)
@given(st.dictionaries(st.tuples(NAMES, NAMES), st.binary(max_size=5000), max_size=12))
def test_any_files_survive_the_round_trip(files: dict[tuple[str, str], bytes]) -> None:
    wanted = {f"/{folder}/{name}": content for (folder, name), content in files.items()}
    iso = opened(build_iso(wanted, label="ANY", made_at=WHEN))
    assert {path: iso.read(path) for path, _ in iso.files()} == wanted


@needs_xorriso
def test_xorriso_extracts_what_we_wrote(tmp_path: Path) -> None:
    (tmp_path / "made.iso").write_bytes(build_iso(FILES, label="RAMDISK", made_at=WHEN))
    command = ["xorriso", "-osirrox", "on", "-indev", "made.iso", "-extract", "/", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Volume id    : 'RAMDISK'" in done.stderr
    assert "WARNING" not in done.stderr
    found = {
        f"/{file.relative_to(tmp_path / 'out')}": file.read_bytes()
        for file in (tmp_path / "out").rglob("*")
        if file.is_file()
    }
    assert found == FILES
    subprocess.run(["chmod", "-R", "u+w", "out"], cwd=tmp_path, check=True)


@needs_xorriso
@pytest.mark.parametrize("naming", [["-R"], ["-J"], ["-R", "-J"], ["-r", "-J", "-l"]])
def test_config_drives_made_by_xorriso_are_read(tmp_path: Path, naming: list[str]) -> None:
    latest = tmp_path / "drive" / "openstack" / "latest"
    latest.mkdir(parents=True)
    (latest / "meta_data.json").write_text('{"hostname": "h1"}')
    (latest / "user_data").write_bytes(b"#!/bin/sh\n" * 1000)
    long_name = "a-name-longer-than-thirty-two-characters-for-sure.txt"
    (latest / long_name).write_text("long")
    subprocess.run(
        ["xorriso", "-as", "mkisofs", "-quiet", *naming, "-V", "config-2", "-o", "drive.iso", "drive"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    with (tmp_path / "drive.iso").open("rb") as file:
        iso = Iso(file)
        assert iso.label == "config-2"
        assert iso.read("/openstack/latest/user_data") == b"#!/bin/sh\n" * 1000
        assert iso.read("/openstack/latest/meta_data.json") == b'{"hostname": "h1"}'
        assert iso.read(f"/openstack/latest/{long_name}") == b"long"


@needs_xorriso
def test_plain_names_are_found_without_regard_to_case(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "grub.cfg").write_text("plain")
    command = ["xorriso", "-as", "mkisofs", "-quiet", "--norock", "-V", "P", "-o", "plain.iso", "files"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / "plain.iso").open("rb") as file:
        assert Iso(file).read("/grub.cfg") == b"plain"


def test_a_name_that_is_not_there_is_a_key_error() -> None:
    iso = opened(build_iso(FILES, label="a", made_at=WHEN))
    assert "/boot/grub/nothing" not in iso
    with pytest.raises(KeyError):
        iso.read("/boot/grub")


def test_a_file_past_the_limit_is_not_read() -> None:
    iso = opened(build_iso(FILES, label="a", made_at=WHEN))
    with pytest.raises(FormatError, match="at most 100 are read"):
        iso.read("/EFI/BOOT/grub.cfg", limit=100)


def test_bytes_that_are_no_iso_are_refused_with_a_sentence() -> None:
    with pytest.raises(FormatError, match="not an ISO 9660 image"):
        opened(b"\0" * 100_000)
    with pytest.raises(FormatError, match="cut short"):
        opened(b"short")


def test_an_image_that_was_cut_short_says_so() -> None:
    image = build_iso(FILES, label="a", made_at=WHEN)
    with pytest.raises(FormatError, match="cut short"):
        opened(image[:-4096]).read("/etc/ironic-python-agent/ironic.crt")


@settings(deadline=None)
@given(st.data())
def test_damage_never_ends_in_anything_but_a_format_error(data: st.DataObject) -> None:
    image = bytearray(build_iso(FILES, label="a", made_at=WHEN))
    for _ in range(data.draw(st.integers(1, 8))):
        image[data.draw(st.integers(16 * 2048, len(image) - 1))] = data.draw(st.integers(0, 255))
    try:
        iso = opened(bytes(image))
        for path, _ in iso.files():
            iso.read(path)
    except (FormatError, KeyError):
        pass


def test_a_directory_that_contains_itself_is_an_error_and_no_loop() -> None:
    image = build_iso({"/LOOP/FILE": b"x", "/OTHER": b"y"}, label="a", made_at=WHEN)
    iso = Iso(io.BytesIO(image), plain_names=True)
    root, loop = iso.primary.root[2:10], iso.entry("LOOP")
    record = image.index(
        struct.pack("<I", loop.offset // 2048) + struct.pack(">I", loop.offset // 2048), 40_000
    )
    looping = Iso(io.BytesIO(image[:record] + root + image[record + 8 :]), plain_names=True)
    with pytest.raises(FormatError, match="contains itself"):
        list(looping.entries())
    assert looping.read("LOOP/LOOP/LOOP/OTHER") == b"y"


def test_folders_deeper_than_anybody_makes_them_are_refused() -> None:
    fine = opened(build_iso({"/a" * 60 + "/f": b"x"}, label="a", made_at=WHEN))
    assert len(list(fine.entries())) == 61
    deep = opened(build_iso({"/a" * 70 + "/f": b"x"}, label="a", made_at=WHEN))
    with pytest.raises(FormatError, match="64 deep"):
        list(deep.entries())


def test_folders_that_overlap_do_not_hold_more_than_is_looked_at() -> None:
    """Two folders of four megabytes, the second of which begins one sector into the first."""
    files = {"/A/F": b"", "/B/F": b""}
    image = bytearray(build_iso(files, label="a", made_at=WHEN))
    at, size = len(image) // 2048, 4 << 20
    record = bytes([34, 0]) + bytes(23) + b"\0" + bytes(6) + b"\1F"
    image += (record * 60).ljust(2048, b"\0") * (size // 2048 + 1)
    root = int.from_bytes(image[16 * 2048 + 158 : 16 * 2048 + 162], "little") * 2048
    for number, name in enumerate((b"\1A", b"\1B")):
        entry = image.index(name, root) - 32
        image[entry + 2 : entry + 10] = struct.pack("<I", at + number) + struct.pack(">I", at + number)
        image[entry + 10 : entry + 18] = struct.pack("<I", size) + struct.pack(">I", size)
    iso = Iso(io.BytesIO(bytes(image)), plain_names=True)
    assert len(iso.children("A")) == 60 * 2048
    with pytest.raises(FormatError, match="more than 200000 files"):
        list(iso.entries())


@pytest.mark.parametrize("kind", [0, 1])
def test_a_descriptor_of_another_version_is_refused(kind: int) -> None:
    image = bytearray(build_iso(FILES, label="a", made_at=WHEN))
    image[16 * 2048], image[16 * 2048 + 6] = kind, 2
    with pytest.raises(FormatError, match="volume descriptor of version 2"):
        opened(bytes(image))


def test_entries_say_where_the_bytes_are() -> None:
    image = build_iso(FILES, label="a", made_at=WHEN)
    iso = Iso(io.BytesIO(image), plain_names=True)
    entry = iso.entry("EFI/BOOT/GRUB.CFG")
    assert image[entry.offset : entry.end] == FILES["/EFI/BOOT/grub.cfg"]
    assert [child.path for child in iso.children("/BOOT")] == ["/BOOT/GRUB"]
    for missing in ("/NOTHING", "/EFI/BOOT/GRUB.CFG/X"):
        with pytest.raises(KeyError):
            iso.entry(missing)
    with pytest.raises(KeyError):
        iso.children("EFI/BOOT/GRUB.CFG")


def test_plain_names_have_eight_and_three_characters_and_are_unique() -> None:
    files = {f"/long-name-{number}.json": b"" for number in range(3)} | {"/.cmdline": b""}
    iso = Iso(io.BytesIO(build_iso(files, label="a", made_at=WHEN)), plain_names=True)
    names = [path.lstrip("/") for path, _ in iso.files()]
    assert sorted(names) == ["LONG_001.JSO", "LONG_002.JSO", "LONG_NAM.JSO", "_CMDLINE"]


def test_a_path_that_is_both_file_and_folder_is_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="both a file and a folder"):
        build_iso({"/a": b"", "/a/b": b""}, label="a", made_at=WHEN)


def test_an_announcement_of_rock_ridge_that_is_cut_short_is_a_format_error() -> None:
    image = bytearray(build_iso(FILES, label="a", made_at=WHEN))
    root = int.from_bytes(image[16 * 2048 + 158 : 16 * 2048 + 162], "little") * 2048
    announcement = b"SP\x07\x01\xbe\xef"  # without its last byte
    image[root] += len(announcement)
    image[root + 34 : root + 34 + len(announcement)] = announcement
    with pytest.raises(FormatError, match="Rock Ridge"):
        opened(bytes(image))


def test_a_folder_is_not_among_the_files() -> None:
    iso = opened(build_iso(FILES, label="a", made_at=WHEN))
    assert "/boot/grub/grub.cfg" in iso
    assert "/boot/grub" not in iso
