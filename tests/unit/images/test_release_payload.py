"""Opening a payload for serving, verifying it, the check in the background, and the folder it lies in."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tarfile
import threading
import time
from pathlib import Path

import pytest
from release_room import TWO, files_in, flip, payload_in, publish

from ingot.formats.coreos import LiveIso
from ingot.formats.oci import (
    ContainerConfig,
    Descriptor,
    Index,
    Manifest,
    MediaType,
    digest_of,
    encode,
)
from ingot.images.release import Payload, PayloadDamaged, PayloadError
from ingot.images.release.assembling import LayerFile, add_image, add_layer, base_image
from ingot.images.release.layout import Layout
from ingot.images.release.mirroring import mirror
from ingot.images.release.places import FolderPlace
from live_images import LABEL


def iso_blob(layout: Layout, architecture: str) -> Path:
    return Payload.open(layout.folder).images[architecture].iso.path


def test_the_iso_lies_in_one_piece_in_its_layer(tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload", ("x86_64", "aarch64", "ppc64le", "s390x"))
    stream = publish(tmp_path / "isos", ("x86_64", "aarch64", "ppc64le", "s390x"))
    payload = Payload.open(tmp_path / "payload")
    assert payload.digest == layout.root().digest
    assert list(payload.images) == ["aarch64", "ppc64le", "s390x", "x86_64"]
    for architecture, image in payload.images.items():
        content = stream.isos[architecture].read_bytes()
        with image.iso.open() as file:
            assert file.read() == content
        assert image.sha256 == hashlib.sha256(content).hexdigest()
        assert image.version == LABEL
        with image.iso.open() as file:
            assert LiveIso(file).ignition is None
        payload.verify(architecture)


def test_a_payload_of_another_release_has_another_digest(tmp_path: Path) -> None:
    one, two = payload_in(tmp_path / "one"), payload_in(tmp_path / "two", label="fedora-coreos-39.1.1.1")
    assert Payload.open(one.folder).digest != Payload.open(two.folder).digest


def test_a_folder_of_files_can_be_opened_too(tmp_path: Path) -> None:
    stream = publish(tmp_path / "isos")
    for architecture, one in stream.ingredients.items():
        path = tmp_path / f"coreos-{architecture}.iso"
        path.write_bytes(one.iso.read_bytes())
        path.with_name(f"{path.name}.sha256").write_text(f"{one.sha256}  {path.name}\n")
    (tmp_path / "coreos-m68k.iso").write_bytes(b"unknown")
    payload = Payload.open(tmp_path)
    assert sorted(payload.images) == sorted(TWO)
    payload.verify("x86_64")
    flip(tmp_path / "coreos-x86_64.iso", 400_000)
    with pytest.raises(PayloadDamaged, match=r"coreos-x86_64\.iso was changed"):
        payload.verify("x86_64")
    (tmp_path / "coreos-aarch64.iso.sha256").unlink()
    with pytest.raises(PayloadError, match="without its hash"):
        Payload.open(tmp_path)


def test_one_flipped_bit_anywhere_in_an_image_is_noticed(tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload")
    payload = Payload.open(layout.folder)
    manifest = base_image(layout, "aarch64").manifest
    for blob in (manifest.config, *manifest.layers):
        path = layout.path(blob.digest)
        flip(path, blob.size // 2)
        with pytest.raises(PayloadDamaged, match="Fetch the payload again"):
            payload.verify("aarch64")
        flip(path, blob.size // 2)
    payload.verify("aarch64")


def test_a_document_that_was_changed_is_noticed_when_the_payload_is_opened(tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload")
    path = layout.path(layout.root().digest)
    flip(path, 30)
    with pytest.raises(PayloadDamaged, match="was changed"):
        Payload.open(layout.folder)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(PayloadDamaged, match="bytes, not"):
        Payload.open(layout.folder)
    path.unlink()
    with pytest.raises(PayloadError, match="lacks the blob"):
        Payload.open(layout.folder)


def test_an_image_whose_iso_is_not_what_it_says_is_damaged_although_its_layers_are_whole(
    tmp_path: Path,
) -> None:
    iso = publish(tmp_path / "isos", ("x86_64",)).isos["x86_64"].read_bytes()
    layout = Layout(tmp_path / "payload")
    with layout.writing():
        files = [
            LayerFile("coreos/coreos-x86_64.iso", iso),
            LayerFile("coreos/coreos-x86_64.iso.sha256", b"0" * 64),
        ]
        layer = add_layer(layout, files, made_by="somebody")
        layout.point_to(add_image(layout, [layer], architecture="x86_64", config=ContainerConfig()))
    payload = Payload.open(layout.folder)
    assert payload.images["x86_64"].sha256 == "0" * 64
    with pytest.raises(PayloadDamaged, match="Build the payload again"):
        payload.verify("x86_64")


def test_an_image_with_compressed_layers_is_refused_with_the_reason(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "payload")
    with layout.writing():
        layer = add_layer(layout, [LayerFile("etc/x", b"")], made_by="x")
        packed = Descriptor(
            media_type="application/vnd.oci.image.layer.v1.tar+gzip",
            digest=layer.descriptor.digest,
            size=layer.descriptor.size,
        )
        made = add_image(layout, [layer], architecture="x86_64", config=ContainerConfig())
        found = layout.document(made)
        assert isinstance(found, Manifest)
        manifest = Manifest(config=found.config, layers=(packed,))
        layout.point_to(layout.add(encode(manifest), MediaType.MANIFEST))
    with pytest.raises(PayloadError, match="compressed layers"):
        Payload.open(layout.folder)


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (b"no json", "not an image index"),
        (encode(Index(manifests=())), "names 0 images"),
        (
            encode(
                Index(
                    manifests=(Descriptor(media_type=MediaType.INDEX, digest=digest_of(b"x"), size=1),) * 2,
                )
            ),
            "names 2 images",
        ),
        (
            encode(Index(manifests=(Descriptor(media_type="text/x", digest=digest_of(b""), size=0),))),
            "lacks the blob",
        ),
    ],
)
def test_a_folder_that_is_no_payload_says_why(tmp_path: Path, index: bytes, why: str) -> None:
    layout = payload_in(tmp_path / "payload", ("x86_64",))
    (layout.folder / "index.json").write_bytes(index)
    with pytest.raises(PayloadError, match=why):
        Payload.open(layout.folder)


def test_an_empty_folder_and_none_at_all_are_no_payload(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(PayloadError, match="is no release payload"):
            Payload.open(folder)


def test_who_serves_the_old_payload_goes_on_while_the_folder_gets_a_new_one(tmp_path: Path) -> None:
    """The way back is there too: what the payload before needs stays until a third one comes."""
    layout = payload_in(tmp_path / "payload", ("x86_64",), "fedora-coreos-1")
    old = Payload.open(layout.folder)
    payload_in(tmp_path / "payload", ("x86_64",), "fedora-coreos-2")
    new = Payload.open(layout.folder)
    assert (old.images["x86_64"].version, new.images["x86_64"].version) == (
        "fedora-coreos-1",
        "fedora-coreos-2",
    )
    old.verify("x86_64")
    new.verify("x86_64")
    payload_in(tmp_path / "payload", ("x86_64",), "fedora-coreos-1")
    assert Payload.open(layout.folder).digest == old.digest
    new.verify("x86_64")
    payload_in(tmp_path / "payload", ("x86_64",), "fedora-coreos-3")
    with pytest.raises(PayloadDamaged, match="cannot be read"):
        new.verify("x86_64")
    assert not (layout.folder / "blobs" / "sha256").joinpath("x").exists()


def test_what_a_killed_run_left_is_swept_away(tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload", ("x86_64",))
    whole = files_in(layout.folder)
    blobs = layout.folder / "blobs" / "sha256"
    (blobs / ".new-xyz").write_bytes(b"half")
    (blobs / ("0" * 64)).write_bytes(b"not needed")
    with layout.writing():
        layout.point_to(layout.root())
    assert files_in(layout.folder) == whole


def test_a_folder_with_several_images_or_with_something_else_is_not_taken_over(tmp_path: Path) -> None:
    """What the new payload does not need is swept away: nothing of anybody else may be in the folder."""
    new = payload_in(tmp_path / "new", ("x86_64",))
    several = payload_in(tmp_path / "several", ("x86_64",), "fedora-coreos-1")
    root = several.root()
    (several.folder / "index.json").write_bytes(encode(Index(manifests=(root, root))))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.json").write_text('{"name": "of a web site"}')
    for folder in (several.folder, tmp_path / "other"):
        before = files_in(folder)
        with pytest.raises(PayloadError, match="a folder of its own"):
            asyncio.run(mirror(FolderPlace(new.folder), FolderPlace(folder)))
        with pytest.raises(PayloadError, match="a folder of its own"), Layout(folder).writing():
            pass
        assert files_in(folder) == before


def test_two_who_write_to_a_folder_take_turns(tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload", ("x86_64",))
    order: list[str] = []

    def second() -> None:
        with Layout(layout.folder).writing():
            order.append("second")

    with layout.writing():
        other = threading.Thread(target=second)
        other.start()
        time.sleep(0.1)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_a_payload_that_another_tool_archived_is_read(tmp_path: Path) -> None:
    """Its names begin with ./ and its headers are GNU's."""
    iso = publish(tmp_path / "isos", ("x86_64",)).ingredients["x86_64"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in (("iso", iso.iso.read_bytes()), ("iso.sha256", iso.sha256.encode())):
            member = tarfile.TarInfo(f"./coreos/coreos-x86_64.{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    layout = Layout(tmp_path / "payload")
    with layout.writing():
        layer = layout.add_chunks([buffer.getvalue()], MediaType.LAYER)
        plain = add_layer(layout, [LayerFile("x")], made_by="x")
        made = layout.document(add_image(layout, [plain], architecture="x86_64", config=ContainerConfig()))
        assert isinstance(made, Manifest)
        layout.point_to(layout.add(encode(Manifest(config=made.config, layers=(layer,))), MediaType.MANIFEST))
    Payload.open(layout.folder).verify("x86_64")
