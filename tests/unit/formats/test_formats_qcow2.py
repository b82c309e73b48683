"""qcow2: our reader against qemu-img's images, our writer against qemu-img, and what is refused."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.qcow2 import Qcow2, write_qcow2

needs_qemu_img = pytest.mark.skipif(
    shutil.which("qemu-img") is None, reason="qemu-img is not installed; it is the judge here"
)
CLUSTER = 65536


def disk(size: int = 5 * CLUSTER + 512) -> bytes:
    content = bytearray(size)
    content[510:512] = b"\x55\xaa"
    content[3 * CLUSTER : 3 * CLUSTER + 32] = hashlib.sha256(b"middle").digest()
    content[-4:] = b"last"
    return bytes(content)


def raw_of(image: bytes) -> bytes:
    qcow2 = Qcow2(io.BytesIO(image))
    content = bytearray(qcow2.size)
    for at, piece in qcow2.chunks():
        content[at : at + len(piece)] = piece
    assert len(content) == qcow2.size
    return bytes(content)


def qcow2_of(raw: bytes) -> bytes:
    out = io.BytesIO()
    write_qcow2(io.BytesIO(raw), out)
    return out.getvalue()


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"\0" * CLUSTER, b"a" * CLUSTER, b"\0" * 511 + b"b"]), max_size=6))
def test_any_disk_survives_the_round_trip(pieces: list[bytes]) -> None:
    raw = b"".join(pieces)
    assert raw_of(qcow2_of(raw)) == raw


def test_runs_of_zeros_take_no_room() -> None:
    assert len(qcow2_of(bytes(64 << 20))) < 6 * CLUSTER


@needs_qemu_img
@pytest.mark.parametrize(
    "options",
    [[], ["-c"], ["-o", "compat=0.10"], ["-o", "cluster_size=4096"], ["-c", "-o", "cluster_size=512"]],
)
def test_images_of_qemu_img_are_read(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "disk.raw").write_bytes(disk())
    command = ["qemu-img", "convert", "-f", "raw", "-O", "qcow2", *options, "disk.raw", "disk.qcow2"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert raw_of((tmp_path / "disk.qcow2").read_bytes()) == disk()


@needs_qemu_img
def test_qemu_img_finds_no_fault_in_what_we_write(tmp_path: Path) -> None:
    (tmp_path / "ours.qcow2").write_bytes(qcow2_of(disk()))
    check = ["qemu-img", "check", "--output=json", "ours.qcow2"]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["check-errors"] == 0
    assert "leaks" not in report
    subprocess.run(["qemu-img", "convert", "-O", "raw", "ours.qcow2", "back.raw"], cwd=tmp_path, check=True)
    assert (tmp_path / "back.raw").read_bytes() == disk()


@needs_qemu_img
def test_a_backing_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "base.raw").write_bytes(disk())
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-b", "base.raw", "-F", "raw", "top.qcow2"],
        cwd=tmp_path,
        check=True,
    )
    with pytest.raises(UnsupportedFormat, match="backing file"):
        raw_of((tmp_path / "top.qcow2").read_bytes())


@pytest.mark.parametrize(
    ("offset", "value", "sentence"),
    [
        (32, struct.pack(">I", 1), "encrypted"),
        (4, struct.pack(">I", 9), "version 9"),
        (72, struct.pack(">Q", 1 << 1), "corrupt"),
        (72, struct.pack(">Q", 1 << 2), "another file"),
        (72, struct.pack(">Q", 1 << 4), "extended L2"),
        (72, struct.pack(">Q", 1 << 40), "not known here"),
    ],
)
def test_what_is_refused_is_refused_with_a_sentence(offset: int, value: bytes, sentence: str) -> None:
    image = bytearray(qcow2_of(disk()))
    image[offset : offset + len(value)] = value
    with pytest.raises(UnsupportedFormat, match=sentence):
        Qcow2(io.BytesIO(bytes(image)))


def test_an_image_that_was_cut_short_says_so() -> None:
    image = qcow2_of(disk())
    with pytest.raises(FormatError, match="ends at byte"):
        raw_of(image[: 5 * CLUSTER])
    with pytest.raises(FormatError, match="not a qcow2"):
        Qcow2(io.BytesIO(bytes(200)))


@settings(deadline=None)
@given(st.data())
def test_damage_never_ends_in_anything_but_a_format_error(data: st.DataObject) -> None:
    image = bytearray(qcow2_of(disk()))
    places = st.one_of(
        st.integers(0, 111),
        st.integers(3 * CLUSTER, 3 * CLUSTER + 64),
        st.integers(4 * CLUSTER, 4 * CLUSTER + 64),
    )
    for _ in range(data.draw(st.integers(1, 4))):
        image[data.draw(places)] = data.draw(st.integers(0, 255))
    try:
        for at, piece in Qcow2(io.BytesIO(bytes(image))).chunks():
            assert at >= 0
            assert len(piece) <= 1 << 21
            if at > 1 << 30:
                break
    except FormatError:
        pass


def test_a_first_table_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    image = bytearray(qcow2_of(disk()))
    image[20:24] = struct.pack(">I", 9)  # the smallest clusters
    image[24:32] = struct.pack(">Q", 1 << 40)
    image[36:40] = struct.pack(">I", 1 << 25)
    with (tmp_path / "large.qcow2").open("w+b") as file:
        file.write(image)
        file.truncate(1 << 30)  # so that the table is there, as a hole
        with pytest.raises(FormatError, match="first table"):
            Qcow2(file)
