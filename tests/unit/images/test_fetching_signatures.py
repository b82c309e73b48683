"""Signatures are checked by the real gpg, with keys that are made here."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from gpg_keys import Keys, gpg_home
from unruly_server import Cuts, File, Says, UnrulyServer, unruly

from ingot.images.fetching import (
    Fetched,
    Fetcher,
    FetchSettings,
    NotVerified,
    Patience,
    Unreachable,
    Unwritable,
    Wanted,
)

pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")

CONTENT = hashlib.shake_256(b"a signed image").digest(300_000)
PAST = "20200101T000000"


@pytest.fixture(scope="module")
def keys() -> Iterator[Keys]:
    with gpg_home() as made:
        made.make("release")
        made.make("stranger")
        made.make("expired", expires="1d", at=PAST)
        made.make("revoked")
        yield made


@pytest.fixture
async def server() -> AsyncIterator[UnrulyServer]:
    async with unruly() as made:
        made.files["/image.iso"] = File(CONTENT)
        yield made


def wanted(server: UnrulyServer, signature: str | None = "/image.iso.sig") -> Wanted:
    return Wanted(
        url=server.url(),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        name="image.iso",
        signature=None if signature is None else server.url(signature),
    )


async def fetch(what: Wanted, folder: Path, *keys: Path, allow_unsigned: bool = False) -> Fetched:
    patience = Patience(retries=1, first=0.001)
    settings = FetchSettings(keys=keys, allow_unsigned=allow_unsigned, patience=patience)
    async with Fetcher(settings) as fetcher:
        return await fetcher.fetch(what, folder)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("armored", [True, False])
async def test_a_good_signature_is_kept_beside_the_file(
    armored: bool, keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "release"))
    server.faults = [None, Cuts(100_000)]
    both = (keys.public("stranger", tmp_path), keys.public("release", tmp_path, armored=armored))
    fetched = await fetch(wanted(server), tmp_path / "images", *both)
    assert fetched.signer == keys.fingerprint("release")
    assert names(tmp_path / "images") == ["image.iso", "image.iso.sig"]
    assert (tmp_path / "images" / "image.iso.sig").read_bytes() == server.files["/image.iso.sig"].content
    again = await fetch(wanted(server), tmp_path / "images", *both)
    assert (again.reused, again.signer) == (True, fetched.signer)


async def test_a_signature_of_other_bytes_is_refused_also_when_unsigned_files_are_allowed(
    keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT + b"x", "release"))
    with pytest.raises(NotVerified, match="does not belong to these bytes"):
        await fetch(
            wanted(server), tmp_path / "images", keys.public("release", tmp_path), allow_unsigned=True
        )
    assert names(tmp_path / "images") == []


async def test_a_file_that_is_there_is_not_used_with_a_bad_signature(
    keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "image.iso").write_bytes(CONTENT)
    server.files["/image.iso.sig"] = File(keys.sign(b"x", "release"))
    with pytest.raises(NotVerified, match="does not belong"):
        await fetch(wanted(server), tmp_path / "images", keys.public("release", tmp_path))


async def test_the_key_of_a_stranger_does_not_count(keys: Keys, server: UnrulyServer, tmp_path: Path) -> None:
    release = keys.public("release", tmp_path)
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "stranger"))
    with pytest.raises(NotVerified, match="none of the given keys made it"):
        await fetch(wanted(server), tmp_path / "images", release)
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "release", "stranger"))
    with pytest.raises(NotVerified, match="none of the given keys made it"):
        await fetch(wanted(server), tmp_path / "images", release)


async def test_a_key_that_has_expired_does_not_count(
    keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "expired", at=PAST))
    with pytest.raises(NotVerified, match="has expired"):
        await fetch(wanted(server), tmp_path / "images", keys.public("expired", tmp_path))


async def test_a_key_that_is_revoked_does_not_count(keys: Keys, server: UnrulyServer, tmp_path: Path) -> None:
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "revoked"))
    keys.revoke("revoked")
    with pytest.raises(NotVerified, match="is revoked"):
        await fetch(wanted(server), tmp_path / "images", keys.public("revoked", tmp_path))


@pytest.mark.parametrize("content", [b"", b"no signature", CONTENT])
async def test_something_else_in_place_of_a_signature_is_refused(
    content: bytes, keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso.sig"] = File(content[:1000])
    with pytest.raises(NotVerified, match="is not good"):
        await fetch(wanted(server), tmp_path / "images", keys.public("release", tmp_path))
    assert names(tmp_path / "images") == []


@pytest.mark.parametrize("named", [True, False])
async def test_a_missing_signature_is_an_error_unless_it_is_allowed(
    named: bool, keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    what = wanted(server, "/image.iso.sig" if named else None)
    release = keys.public("release", tmp_path)
    with pytest.raises(NotVerified, match="keys are configured"):
        await fetch(what, tmp_path / "images", release)
    assert "/image.iso" not in [asked.path for asked in server.asked]  # it is known before the file comes
    fetched = await fetch(what, tmp_path / "images", release, allow_unsigned=True)
    assert fetched.signer is None
    assert names(tmp_path / "images") == ["image.iso"]


async def test_a_signature_that_cannot_be_had_is_not_a_missing_one(
    keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Says(503)] * 9
    with pytest.raises(Unreachable, match=r"image\.iso\.sig"):
        await fetch(
            wanted(server), tmp_path / "images", keys.public("release", tmp_path), allow_unsigned=True
        )


async def test_without_keys_nobody_asks_for_a_signature(server: UnrulyServer, tmp_path: Path) -> None:
    assert (await fetch(wanted(server), tmp_path)).signer is None
    assert [asked.path for asked in server.asked] == ["/image.iso"]


@pytest.mark.parametrize("content", [None, b"", b"no keys"])
async def test_a_file_without_keys_is_named(
    content: bytes | None, keys: Keys, server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "release"))
    path = tmp_path / "keys.asc"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Unwritable, match=r"keys\.asc"):
        await fetch(wanted(server), tmp_path / "images", path)


async def test_a_machine_without_gpg_says_so(
    keys: Keys, server: UnrulyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "release"))
    release = keys.public("release", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unwritable, match="gpg is not installed"):
        await fetch(wanted(server), tmp_path / "images", release)


async def test_nothing_of_the_user_takes_part_and_nothing_is_left_behind(
    keys: Keys, server: UnrulyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GNUPGHOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (home / "gpg.conf").write_text("this is no option\n")
    server.files["/image.iso.sig"] = File(keys.sign(CONTENT, "release"))
    await fetch(wanted(server), tmp_path / "images", keys.public("release", tmp_path))
    assert names(home) == ["gpg.conf"]
    assert list(os.scandir(temporary)) == []
