"""Compressed images are unpacked whole, and nothing hides behind their end."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ingot.images.fetching import NotVerified, Unwritable, unpack, unpacked_name

CONTENT = hashlib.shake_256(b"a disk").digest(200_000) + bytes(1_300_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
KINDS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": partial(lzma.compress, preset=0)}


@pytest.fixture(params=KINDS)
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"disk.raw.{request.param}"
    path.write_bytes(KINDS[request.param](CONTENT))
    return path


def change(path: Path, how: Callable[[bytes], bytes]) -> None:
    path.write_bytes(how(path.read_bytes()))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("sha256", [DIGEST, None])
async def test_a_disk_is_unpacked_beside_itself(packed: Path, sha256: str | None) -> None:
    made = await unpack(packed, sha256=sha256)
    assert (made.path.name, made.size, made.sha256) == ("disk.raw", len(CONTENT), DIGEST)
    assert made.path.read_bytes() == CONTENT
    assert names(packed.parent) == ["disk.raw", packed.name]
    assert (await unpack(packed, sha256=sha256)).reused == (sha256 is not None)


@pytest.mark.parametrize("extra", [b"x", b"\0", "again"])
async def test_data_behind_the_end_is_refused(packed: Path, extra: bytes | str) -> None:
    change(packed, lambda whole: whole + (extra if isinstance(extra, bytes) else whole))
    with pytest.raises(NotVerified, match="data behind its compressed end"):
        await unpack(packed, sha256=DIGEST)
    assert names(packed.parent) == [packed.name]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-5],
        lambda data: data[:1000] + b"xxxx" + data[1004:],
        lambda _: b"nothing of the kind",
    ],
)
async def test_damage_is_refused(packed: Path, damage: Callable[[bytes], bytes]) -> None:
    change(packed, damage)
    with pytest.raises(NotVerified, match=r"cut short|damaged"):
        await unpack(packed, sha256=None)
    assert names(packed.parent) == [packed.name]


async def test_other_contents_are_refused_and_what_was_there_stays(packed: Path) -> None:
    (packed.parent / "disk.raw").write_text("what was there")
    with pytest.raises(NotVerified, match=f"{DIGEST}; 0000"):
        await unpack(packed, sha256="0" * 64)
    assert (packed.parent / "disk.raw").read_text() == "what was there"


async def test_a_bomb_is_refused(packed: Path) -> None:
    with pytest.raises(NotVerified, match="unpacks to more than 1000000 bytes"):
        await unpack(packed, sha256=DIGEST, limit=1_000_000)
    assert names(packed.parent) == [packed.name]


async def test_two_at_once_unpack_once(packed: Path) -> None:
    both = await asyncio.gather(unpack(packed, sha256=DIGEST), unpack(packed, sha256=DIGEST))
    assert sorted(made.reused for made in both) == [False, True]


async def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match=r"disk\.raw\.xz: No such file"):
        await unpack(tmp_path / "disk.raw.xz", sha256=None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.raw.xz", "a.raw"),
        ("a.raw.gz", "a.raw"),
        ("a.iso", None),
        ("a.tar.gz", None),
        ("a.ova", None),
        (".xz", None),
        ("xz", None),
    ],
)
def test_the_name_says_what_is_packed(name: str, expected: str | None) -> None:
    assert unpacked_name(name) == expected
