"""Initial RAM disks: what is packed is read back, mixtures are read as the kernel reads them, and damage is an error."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.formats import FormatError
from ingot.formats.initrd import Members, chosen, cpio, list_names, pack, read_members

needs_zstd = pytest.mark.skipif(
    shutil.which("zstd") is None, reason="zstd is not installed; it makes the archive"
)
NAMES = st.text("abcz09-_. é", min_size=1, max_size=12).filter(lambda name: name.strip(".") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def everything(image: bytes, *, limit: int = 64 << 20, unpacked: int = 1 << 30) -> Members:
    return read_members(io.BytesIO(image), lambda _: True, limit=limit, unpacked=unpacked)


def archive(members: Members) -> bytes:
    """One archive that is not compressed."""
    files = [cpio.entry_bytes(path, cpio.REGULAR | 0o644, data) for path, data in members.items()]
    return b"".join(files) + cpio.trailer()


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-c", "-q"], input=data, stdout=subprocess.PIPE, check=True).stdout


@given(st.dictionaries(PATHS, st.binary(max_size=300), max_size=6), st.booleans())
def test_what_is_packed_is_read_back_in_the_order_of_the_paths(members: Members, xz: bool) -> None:
    image = pack(members, limit=0 if xz else None)
    assert everything(image) == members
    assert list(everything(image)) == sorted(members)


def test_the_same_files_give_the_same_bytes_in_any_order() -> None:
    members = {"b": b"2", "a/c": b"1", "a/b": b"3"}
    assert pack(members) == pack(dict(reversed(members.items())))


def test_a_folder_comes_before_what_is_in_it_and_only_once() -> None:
    plain = gzip.decompress(pack({"etc/a/b": b"", "etc/a-b": b"", "etc/a/c/d": b"", "z": b""}))
    names = []
    at = 0
    while at < len(plain):
        size, length = int(plain[at + 54 : at + 62], 16), int(plain[at + 94 : at + 102], 16)
        names.append(plain[at + 110 : at + 110 + length - 1].decode())
        at += 110 + length + -(110 + length) % 4 + size + -size % 4
    assert names == ["etc", "etc/a-b", "etc/a", "etc/a/b", "etc/a/c", "etc/a/c/d", "z", "TRAILER!!!"]


def test_xz_is_written_so_that_the_kernel_reads_it() -> None:
    # The flags behind the magic name the check; the kernel knows none (0) and CRC-32 (1).
    text = bytes(range(256)) * 400
    packed = pack({"a": text}, limit=100)
    assert packed[:6] == b"\xfd7zXZ\0"
    assert packed[6:8] == b"\0\1"


def test_the_cpio_command_agrees() -> None:
    if shutil.which("cpio") is None:
        pytest.skip("cpio is not installed; it is the judge here")
    plain = gzip.decompress(pack({"etc/x": b"1", "config.ign": b"{}"}))
    done = subprocess.run(["cpio", "-it", "--quiet"], input=plain, capture_output=True, check=True)
    assert done.stdout.decode().split() == ["config.ign", "etc", "etc/x"]


@needs_zstd
def test_archives_of_every_kind_may_follow_each_other_with_zeros_between() -> None:
    parts = [
        archive({"plain/a": b"A"}) + bytes(300),
        gzip.compress(archive({"gzip/a": b"A" * 300_000})),
        lzma.compress(archive({"xz/a": b"A"}), check=lzma.CHECK_CRC32) + bytes(1),
        zstd(archive({"zstd/a": b"A" * 1_000_000, "zstd/b": b"B"})),
        archive({"plain/b": b"B"}),
    ]
    image = b"".join(parts)
    assert list_names(io.BytesIO(image), chosen(["*"])) == [
        "gzip/a",
        "plain/a",
        "plain/b",
        "xz/a",
        "zstd/a",
        "zstd/b",
    ]
    assert everything(image)["zstd/a"] == b"A" * 1_000_000


@needs_zstd
def test_frames_of_zstd_that_follow_each_other_are_one_archive() -> None:
    whole = archive({"a": b"x" * 1000, "b": b"y"})
    assert everything(zstd(whole[:700]) + zstd(whole[700:])) == {"a": b"x" * 1000, "b": b"y"}


def test_of_a_path_that_is_there_twice_the_last_one_counts() -> None:
    image = archive({"a": b"first"}) + gzip.compress(archive({"a": b"second"})) + archive({"a": b"third"})
    assert everything(image) == {"a": b"third"}


def test_names_that_dracut_padded_with_zeros_are_read_without_them() -> None:
    header = cpio.entry_bytes("dir/x", cpio.REGULAR | 0o644, b"data")
    padded = header[:94] + b"%08X" % 3870 + header[102:110] + b"dir/x".ljust(3870, b"\0") + b"data"
    assert everything(padded + cpio.trailer()) == {"dir/x": b"data"}


def test_only_regular_files_are_members() -> None:
    image = cpio.entry_bytes("d", cpio.DIRECTORY | 0o755) + cpio.entry_bytes("l", 0o120777, b"target")
    assert everything(image + cpio.trailer()) == {}


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["a/*"], ["a/b", "a/c/d"]),
        (["*d"], ["a/c/d"]),
        (["A/*"], []),
        (["a/b", "z"], ["a/b", "z"]),
        (["?"], ["z"]),
    ],
)
def test_patterns_choose_by_the_whole_path_and_a_star_matches_slashes(
    patterns: list[str], found: list[str]
) -> None:
    image = pack({"a/b": b"", "a/c/d": b"", "z": b""})
    assert list_names(io.BytesIO(image), chosen(patterns)) == found


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        (b"garbage" * 100, "not a cpio archive"),
        (archive({"a": b"x"})[:-150], "cut short"),
        (archive({"a": b"x"}) + b"tail", "cut short"),
        (gzip.compress(archive({"a": b"x"}))[:-9], "cut short"),
        (gzip.compress(archive({"a": b"x"}) + b"tail"), "trailing garbage"),
        (lzma.compress(archive({"a": b"x"}))[:-9], "cut short"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 50, "zstd archive is damaged"),
        (b"070701" + b"-" * 104, "not hexadecimal"),
        (b"070701" + b" 0000001" * 13, "not hexadecimal"),
        (b"070701" + b"F" * 104, "a name of 4294967295 bytes"),
        (b"070701" + b"0" * 104, "a name of 0 bytes"),
    ],
)
def test_damage_is_an_error_with_a_sentence(image: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        everything(image)


def test_a_name_that_is_not_utf8_is_an_error() -> None:
    image = cpio.entry_bytes("abc", cpio.REGULAR).replace(b"abc", b"a\xffc")
    with pytest.raises(FormatError, match="UTF-8"):
        everything(image + cpio.trailer())


def test_a_bomb_is_refused_before_it_fills_the_memory() -> None:
    huge = cpio.entry_bytes("zeros", cpio.REGULAR | 0o644, bytes(24 << 20)) + cpio.trailer()
    bomb = gzip.compress(huge)
    assert len(bomb) < 100_000
    with pytest.raises(FormatError, match="at most 1048576 bytes"):
        everything(bomb, limit=1 << 20)
    assert list_names(io.BytesIO(bomb), chosen(["*"])) == ["zeros"]


def test_many_files_that_are_too_much_together_are_refused() -> None:
    with pytest.raises(FormatError, match="at most 1000 bytes"):
        everything(pack({f"f{number}": bytes(300) for number in range(4)}), limit=1000)


def test_bombs_one_after_the_other_count_together() -> None:
    bomb = gzip.compress(cpio.entry_bytes("zeros", cpio.REGULAR, bytes(3 << 20)) + cpio.trailer())
    assert everything(bomb, unpacked=4 << 20) == {"zeros": bytes(3 << 20)}
    with pytest.raises(FormatError, match=r"more than \d+ bytes"):
        everything(bomb + bomb, unpacked=4 << 20)


def test_more_files_than_anybody_packs_are_refused() -> None:
    one = cpio.entry_bytes("a", cpio.REGULAR)
    with pytest.raises(FormatError, match="more than 100000 files"):
        everything(one * 100_001 + cpio.trailer())


@given(st.data())
def test_damage_never_ends_in_anything_but_a_format_error(data: st.DataObject) -> None:
    members = {"config.ign": b"{}" * 50, "etc/coreos-firstboot-network/a": b"x"}
    parts = [pack(members), pack(members, limit=0), archive(members)]
    image = bytearray(b"".join(data.draw(st.permutations(parts))))
    for _ in range(data.draw(st.integers(1, 6))):
        image[data.draw(st.integers(0, len(image) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError):
        everything(bytes(image))
