"""A payload on its way to and from a registry that misbehaves in all the ways it can."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from release_room import files_in, flip, payload_in
from unruly_server import proxying

from ingot.cli.main import main
from ingot.formats.oci import MediaType, digest_of, parse_reference
from ingot.images.fetching import Patience
from ingot.images.release import (
    Payload,
    PayloadDamaged,
    PayloadError,
    RegistryRefused,
    RegistryUnreachable,
)
from ingot.images.release.layout import Layout
from ingot.images.release.mirroring import Mirrored, mirror
from ingot.images.release.places import FolderPlace, RegistryPlace, place_of
from ingot.images.release.registry import PullSecrets, RegistrySession, RegistrySettings
from ingot.images.release.registry.pull_secrets import parse_pull_secrets
from small_registry import PASSWORD, TOKEN, USER, SmallRegistry, small_registry

QUICK = Patience(retries=3, first=0.001, longest=0.002)


def secrets(registry: SmallRegistry, user: str = USER, password: str = PASSWORD) -> PullSecrets:
    auth = base64.b64encode(f"{user}:{password}".encode()).decode()
    return parse_pull_secrets(json.dumps({"auths": {registry.host: {"auth": auth}}}).encode(), "auth.json")


@asynccontextmanager
async def place(
    registry: SmallRegistry, name: str = "coreos/payload:44", pull_secrets: PullSecrets | None = None
) -> AsyncIterator[RegistryPlace]:
    settings = RegistrySettings(
        pull_secrets=pull_secrets or PullSecrets(), plain_http=True, patience=QUICK, stall=5.0
    )
    async with RegistrySession(settings) as session:
        yield RegistryPlace(session, parse_reference(f"{registry.host}/{name}"))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return payload_in(tmp_path / "payload")


async def pushed(layout: Layout, registry: SmallRegistry) -> Mirrored:
    async with place(registry, pull_secrets=secrets(registry)) as there:
        return await mirror(FolderPlace(layout.folder), there)


async def pulled(registry: SmallRegistry, folder: Path) -> Mirrored:
    async with place(registry, pull_secrets=secrets(registry)) as there:
        return await mirror(there, FolderPlace(folder))


def tagged(registry: SmallRegistry, index: bytes) -> None:
    """Have the registry hand out this index, whatever it leads to."""
    for name in ("44", digest_of(index)):
        registry.documents[f"coreos/payload/{name}"] = index, MediaType.INDEX


@pytest.mark.parametrize("auth", ["", "basic", "bearer"])
async def test_there_and_back_again_it_is_the_same_payload(layout: Layout, tmp_path: Path, auth: str) -> None:
    async with small_registry(auth=auth) as registry:
        done = await pushed(layout, registry)
        assert done.digest == layout.root().digest
        assert done.kept == 0
        await pulled(registry, tmp_path / "back")
    assert files_in(tmp_path / "back") == files_in(layout.folder)
    Payload.open(tmp_path / "back").verify("aarch64")


async def test_what_is_there_is_not_copied_again(layout: Layout, tmp_path: Path) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        registry.asked.clear()
        again = await pushed(layout, registry)
        assert (again.copied, again.copied_bytes) == (0, 0)
        assert registry.count("POST", "uploads") == 0
        first = await pulled(registry, tmp_path / "back")
        second = await pulled(registry, tmp_path / "back")
        assert (first.kept, second.copied, second.kept) == (0, 0, first.copied)


async def test_a_cut_download_goes_on_where_it_was_cut(layout: Layout, tmp_path: Path) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        registry.cut_downloads = [100, 1000, 300_000, 50, 0, 7]
        await pulled(registry, tmp_path / "back")
    assert files_in(tmp_path / "back") == files_in(layout.folder)


async def test_a_registry_that_knows_no_ranges_is_read_all_the_same(layout: Layout, tmp_path: Path) -> None:
    async with small_registry(ranges=False) as registry:
        await pushed(layout, registry)
        registry.cut_downloads = [100, 300_000]
        await pulled(registry, tmp_path / "back")
    assert files_in(tmp_path / "back") == files_in(layout.folder)


@pytest.mark.parametrize("forget", [False, True])
async def test_a_cut_upload_goes_on_or_begins_again(layout: Layout, tmp_path: Path, forget: bool) -> None:
    async with small_registry(forget_uploads=forget) as registry:
        registry.cut_uploads = [5, 0, 1]
        await pushed(layout, registry)
        await pulled(registry, tmp_path / "back")
    assert files_in(tmp_path / "back") == files_in(layout.folder)


async def test_a_last_answer_that_was_lost_is_not_asked_for_with_everything_again(layout: Layout) -> None:
    async with small_registry(lose_last_answer=True) as registry:
        await pushed(layout, registry)
        assert len(registry.uploads) == 0
        assert registry.count("POST", "uploads") == len(registry.blobs)


async def test_bad_weather_is_waited_out(layout: Layout, tmp_path: Path) -> None:
    async with small_registry() as registry:
        registry.refuse = {"POST": [503], "PATCH": [500], "PUT": [504], "HEAD": [503, 429]}
        await pushed(layout, registry)
        registry.refuse = {"GET": [503, 503, 429]}
        await pulled(registry, tmp_path / "back")
    assert files_in(tmp_path / "back") == files_in(layout.folder)


async def test_weather_that_stays_bad_ends_in_a_sentence(layout: Layout) -> None:
    async with small_registry() as registry:
        registry.refuse = {"HEAD": [503] * 10}
        with pytest.raises(RegistryUnreachable, match=r"HTTP 503\. It was tried 4 times"):
            await pushed(layout, registry)
    with pytest.raises(RegistryUnreachable, match="try again later"):
        await pushed(layout, registry)


async def test_bytes_that_are_not_those_of_the_digest_are_never_kept(layout: Layout, tmp_path: Path) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        sizes = {len(content) for content in registry.blobs.values()}
        for lie in (b"", b"short", bytes(max(sizes)), bytes(max(sizes) + 1)):
            registry.lie = lie
            with pytest.raises((PayloadDamaged, RegistryUnreachable)):
                await pulled(registry, tmp_path / "back")
            assert not (tmp_path / "back" / "index.json").exists()
        registry.lie = None
        await pulled(registry, tmp_path / "back")
    assert files_in(tmp_path / "back") == files_in(layout.folder)


async def test_a_damaged_blob_in_the_target_is_fetched_again(layout: Layout, tmp_path: Path) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        await pulled(registry, tmp_path / "back")
        image = Payload.open(tmp_path / "back").images["x86_64"]
        flip(image.iso.path, image.iso.offset + 100)
        done = await pulled(registry, tmp_path / "back")
        assert done.copied == 1
        flip(Layout(tmp_path / "back").path(layout.root().digest), 30)
        await pulled(registry, tmp_path / "back")
    Payload.open(tmp_path / "back").verify("x86_64")
    assert files_in(tmp_path / "back") == files_in(layout.folder)


async def test_a_damaged_blob_in_the_source_is_not_handed_on(layout: Layout, tmp_path: Path) -> None:
    image = Payload.open(layout.folder).images["x86_64"]
    flip(image.iso.path, image.iso.offset + 100)
    async with small_registry() as registry:
        with pytest.raises(PayloadDamaged, match="hands out other bytes"):
            await pushed(layout, registry)
        assert not registry.documents
    with pytest.raises(PayloadDamaged, match="hands out other bytes"):
        await mirror(FolderPlace(layout.folder), FolderPlace(tmp_path / "copy"))
    assert not (tmp_path / "copy" / "index.json").exists()


async def test_a_partial_blob_of_another_run_is_gone_on_with_or_done_without(
    layout: Layout, tmp_path: Path
) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        largest = max(registry.blobs, key=lambda digest: len(registry.blobs[digest]))
        for left in (
            registry.blobs[largest][:1000],
            b"rubbish" * 100,
            bytes(len(registry.blobs[largest]) + 1),
        ):
            target = tmp_path / str(len(left))
            part = target / "blobs" / "sha256" / f".part-{largest.removeprefix('sha256:')}"
            part.parent.mkdir(parents=True)
            part.write_bytes(left)
            await pulled(registry, target)
            assert files_in(target) == files_in(layout.folder)


async def test_between_repositories_of_one_registry_blobs_are_mounted(layout: Layout) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        registry.asked.clear()
        async with place(registry) as source:
            target = RegistryPlace(source.session, parse_reference(f"{registry.host}/other/place:1"))
            done = await mirror(source, target)
        assert done.copied > 0
        assert registry.count("PATCH", "") == 0
        assert {name for name, _ in registry.owned} == {"coreos/payload", "other/place"}


async def test_from_registry_to_registry_nothing_is_lost_on_bad_lines(layout: Layout, tmp_path: Path) -> None:
    async with small_registry() as one, small_registry() as two:
        await pushed(layout, one)
        one.cut_downloads, two.cut_uploads = [10, 400_000], [3, 100_000]
        async with place(one) as source:
            await mirror(source, RegistryPlace(source.session, parse_reference(f"{two.host}/inside/x:1")))
        assert two.blobs == one.blobs
        async with place(two, "inside/x:1") as there:
            await mirror(there, FolderPlace(tmp_path / "back"))
    assert files_in(tmp_path / "back") == files_in(layout.folder)


async def test_credentials_go_to_the_registry_and_to_nobody_it_redirects_to(
    layout: Layout, tmp_path: Path
) -> None:
    async with small_registry() as store, small_registry(auth="basic") as registry:
        await pushed(layout, registry)
        store.blobs, registry.elsewhere = registry.blobs, store.url
        await pulled(registry, tmp_path / "back")
        assert store.count("GET", "/elsewhere/") > 0
        assert {given for _, _, given in store.asked} == {None}
    assert files_in(tmp_path / "back") == files_in(layout.folder)


@pytest.mark.parametrize("auth", ["basic", "bearer"])
async def test_who_is_redirected_to_cannot_ask_for_the_credentials(
    layout: Layout, tmp_path: Path, auth: str
) -> None:
    async with small_registry(asks_elsewhere=True) as store, small_registry(auth=auth) as registry:
        await pushed(layout, registry)
        registry.elsewhere = store.url
        with pytest.raises(
            RegistryRefused, match=r"sends us to 127\.0\.0\.1:\d+, which refuses it \(HTTP 401\)"
        ):
            await pulled(registry, tmp_path / "back")
        assert store.count("GET", "/elsewhere/") > 0
        assert store.count("GET", "/token") == 0
        assert {given for _, _, given in store.asked} == {None}


async def test_a_place_with_a_password_in_it_is_not_gone_to(layout: Layout) -> None:
    async with small_registry(auth="bearer", realm="http://somebody:else@127.0.0.1:1/token") as registry:
        with pytest.raises(RegistryRefused, match="a place that is no URL"):
            await pushed(layout, registry)


async def test_a_document_with_another_size_than_its_index_says_is_not_kept(
    layout: Layout, tmp_path: Path
) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        index = json.loads(layout.read(layout.root()))
        index["manifests"][0]["size"] += 1
        tagged(registry, json.dumps(index).encode())
        with pytest.raises(PayloadDamaged, match="another digest or size"):
            await pulled(registry, tmp_path / "back")


async def test_documents_without_end_are_not_gathered(tmp_path: Path) -> None:
    """An index of many indexes, each as large as it may be."""
    async with small_registry() as registry:
        children = []
        for number in range(20):
            content = b'{"schemaVersion":2,"manifests":[]}'.ljust((4 << 20) - number)
            tagged(registry, content)
            children.append(
                {"mediaType": MediaType.INDEX, "digest": digest_of(content), "size": len(content)}
            )
        tagged(registry, json.dumps({"schemaVersion": 2, "manifests": children}).encode())
        with pytest.raises(PayloadError, match="bytes of documents"):
            await pulled(registry, tmp_path / "back")


async def test_the_proxy_is_told_who_asks_also_without_a_tunnel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("http_proxy", raising=False)
    async with proxying() as proxy, small_registry() as registry:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:secret@127.0.0.1:{proxy.port}")
        with pytest.raises(RegistryRefused, match="has no 44"):
            await pulled(registry, tmp_path / "back")
        assert [one.headers.get("proxy-authorization", "")[:6] for one in proxy.asked] == ["Basic "]


async def test_a_token_that_has_run_out_is_renewed(layout: Layout, tmp_path: Path) -> None:
    async with small_registry(auth="bearer", token_life=3) as registry:
        await pushed(layout, registry)
        assert registry.count("GET", "/token") > 1
        sent = {given for method, path, given in registry.asked if path.startswith("/v2/")}
        assert sent == {None, f"Bearer {TOKEN}"}, "the password goes to the token server alone"


async def test_an_identity_token_stands_for_the_password(layout: Layout) -> None:
    async with small_registry(auth="bearer") as registry:
        content = {"auths": {registry.host: {"identitytoken": "identity"}}}
        async with place(
            registry, pull_secrets=parse_pull_secrets(json.dumps(content).encode(), "x")
        ) as there:
            await mirror(FolderPlace(layout.folder), there)
        assert registry.count("POST", "/token") == 1


@pytest.mark.parametrize("auth", ["basic", "bearer"])
async def test_wrong_and_missing_credentials_are_told_apart_and_never_shown(
    layout: Layout, auth: str
) -> None:
    async with small_registry(auth=auth) as registry:
        async with place(registry, pull_secrets=secrets(registry, password="wrong-pw")) as there:
            with pytest.raises(
                RegistryRefused, match=r"with the credentials in auth\.json \(HTTP 401\)"
            ) as caught:
                await mirror(FolderPlace(layout.folder), there)
            assert "wrong-pw" not in repr(caught.value)
            assert registry.count("HEAD", "/v2/") < 5, "it was asked again and again"
        async with place(registry) as there:
            with pytest.raises(RegistryRefused, match="without credentials"):
                await mirror(FolderPlace(layout.folder), there)


async def test_a_token_server_that_is_no_url_is_not_asked(layout: Layout) -> None:
    async with small_registry(auth="bearer", realm="file:///etc/passwd") as registry:
        with pytest.raises(RegistryRefused, match="a place that is no URL"):
            await pushed(layout, registry)


async def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    async with small_registry() as registry:
        with pytest.raises(RegistryRefused, match="coreos/payload has no 44"):
            await pulled(registry, tmp_path / "back")
    assert not (tmp_path / "back").exists()


async def test_a_document_that_is_no_image_is_refused(tmp_path: Path) -> None:
    async with small_registry() as registry:
        registry.documents["coreos/payload/44"] = b"<html>", "text/html"
        with pytest.raises(PayloadError, match="text/html"):
            await pulled(registry, tmp_path / "back")


async def test_a_digest_is_nothing_to_write_to_and_another_document_than_asked_for_is_refused(
    layout: Layout, tmp_path: Path
) -> None:
    digest = layout.root().digest
    async with small_registry() as registry:
        async with place(registry, f"a/b@{digest}") as there:
            with pytest.raises(PayloadError, match="give a tag"):
                await mirror(FolderPlace(layout.folder), there)
        registry.documents[f"a/b/{digest}"] = b"{}", "application/vnd.oci.image.index.v1+json"
        async with place(registry, f"a/b@{digest}") as there:
            with pytest.raises(PayloadDamaged, match="of the digest"):
                await mirror(there, FolderPlace(tmp_path / "back"))


async def test_two_who_copy_into_one_folder_take_turns_and_nothing_is_copied_twice(
    layout: Layout, tmp_path: Path
) -> None:
    target = tmp_path / "copy"
    done = await asyncio.gather(*(mirror(FolderPlace(layout.folder), FolderPlace(target)) for _ in range(3)))
    assert sorted(one.copied for one in done)[:2] == [0, 0]
    assert files_in(target) == files_in(layout.folder)


async def test_a_reader_of_the_folder_never_sees_half_a_payload(tmp_path: Path) -> None:
    old = payload_in(tmp_path / "old", ("x86_64",), "fedora-coreos-1")
    new = payload_in(tmp_path / "new", ("x86_64",), "fedora-coreos-2")
    seen: set[str] = set()
    await mirror(FolderPlace(old.folder), FolderPlace(tmp_path / "served"))
    await mirror(
        FolderPlace(new.folder),
        FolderPlace(tmp_path / "served"),
        lambda _: seen.add(Payload.open(tmp_path / "served").digest),
    )
    assert seen == {old.root().digest}
    assert Payload.open(tmp_path / "served").digest == new.root().digest


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("payload", FolderPlace),
        ("./quay.io/x", FolderPlace),
        ("../payload", FolderPlace),
        ("/media/disk/payload", FolderPlace),
        ("some/folder", FolderPlace),
        ("oci:quay.io/x", FolderPlace),
        ("quay.io/x:1", RegistryPlace),
        ("localhost:5000/x", RegistryPlace),
        ("docker://quay.io/x", RegistryPlace),
    ],
)
async def test_a_person_means_a_folder_or_a_registry(text: str, kind: type[object]) -> None:
    assert type(place_of(text, RegistrySession(RegistrySettings()))) is kind


async def test_what_a_registry_says_cannot_write_to_the_terminal(layout: Layout, tmp_path: Path) -> None:
    told = {"errors": [{"code": "DENIED", "message": "\x1b[2J\x1b]0;gone\x07"}]}
    async with small_registry() as registry:
        registry.says = 418, json.dumps(told).encode()
        with pytest.raises(RegistryRefused, match="418: DENIED") as caught:
            await pulled(registry, tmp_path / "back")
        assert str(caught.value).isprintable()


async def test_wrong_bytes_are_fetched_once_where_nothing_was_left_from_before(
    layout: Layout, tmp_path: Path
) -> None:
    image = Payload.open(layout.folder).images["x86_64"]
    async with small_registry() as registry:
        await pushed(layout, registry)
        digest = f"sha256:{image.iso.path.name}"
        registry.blobs[digest] = bytes(len(registry.blobs[digest]))
        registry.asked.clear()
        with pytest.raises(PayloadDamaged, match="hands out other bytes"):
            await pulled(registry, tmp_path / "back")
        assert registry.count("GET", digest) == 1


async def test_what_is_verified_is_what_is_told_although_the_tag_moves_meanwhile(layout: Layout) -> None:
    async with small_registry() as registry:
        await pushed(layout, registry)
        asked = ["release", "verify", "--plain-http", f"{registry.host}/coreos/payload:44"]
        done = await asyncio.to_thread(CliRunner().invoke, main, asked)
        assert done.exit_code == 0, done.output
        assert f"{layout.root().digest}, verified" in done.stdout
        assert registry.count("GET", "/manifests/44") == 1
