"""Building a payload: what is in it, that the same input makes the same digests, and that a wrong hash is noticed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from release_room import TWO, files_in, flip, payload_in, publish

from ingot.formats.oci import (
    ContainerConfig,
    Descriptor,
    Index,
    LayerKind,
    Manifest,
    MediaType,
    Platform,
    decode_config,
    encode,
)
from ingot.images.region import Region
from ingot.images.release import ReleaseError
from ingot.images.release.assembling import (
    LayerFile,
    add_image,
    add_index,
    add_layer,
    base_image,
    tree,
)
from ingot.images.release.building import StreamFile, build
from ingot.images.release.layout import Layout
from ingot.images.release.tool import given_tool, launchers, running_tool, this_architecture


def unpacked_layers(layout: Layout, architecture: str, folder: Path) -> Path:
    """The root file system of an image, by another program than ours."""
    image = base_image(layout, architecture)
    for layer in image.manifest.layers:
        with tarfile.open(layout.path(layer.digest)) as archive:
            archive.extractall(folder, filter="tar")
    return folder


def test_an_image_holds_the_iso_its_hash_and_the_stream_metadata(tmp_path: Path) -> None:
    stream = publish(tmp_path / "isos")
    layout = payload_in(tmp_path / "payload")
    for architecture in TWO:
        root = unpacked_layers(layout, architecture, tmp_path / architecture)
        content = stream.isos[architecture].read_bytes()
        assert files_in(root) == {
            f"coreos/coreos-{architecture}.iso": content,
            f"coreos/coreos-{architecture}.iso.sha256": hashlib.sha256(content).hexdigest().encode(),
            "coreos/coreos-stream.json": stream.file.read_bytes(),
        }


def test_the_index_names_each_architecture_as_containers_do_and_labels_say_what_is_in_it(
    tmp_path: Path,
) -> None:
    layout = payload_in(tmp_path / "payload")
    index = layout.document(layout.root())
    assert isinstance(index, Index)
    assert [one.platform and one.platform.architecture for one in index.manifests] == ["arm64", "amd64"]
    for one in index.manifests:
        manifest = layout.document(one)
        assert isinstance(manifest, Manifest)
        config = decode_config(layout.read(manifest.config))
        assert config.created == "2026-07-09T10:00:00Z"
        assert config.rootfs.diff_ids == tuple(layer.digest for layer in manifest.layers)
        assert config.config is not None
        assert config.config.labels is not None
        assert config.config.labels["org.opencontainers.image.version"] == "fedora-coreos-38.20230718.dev.0"


def test_the_same_input_makes_the_same_bytes_wherever_and_whenever(tmp_path: Path) -> None:
    one = payload_in(tmp_path / "one")
    for path in (tmp_path / "one-isos").iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o600)
    two = payload_in(tmp_path / "elsewhere" / "two")
    assert files_in(one.folder) == files_in(two.folder)


def test_an_iso_with_another_hash_than_its_stream_says_is_not_built_and_nothing_is_published(
    tmp_path: Path,
) -> None:
    stream = publish(tmp_path / "isos")
    layout = payload_in(tmp_path / "payload")
    before = layout.root()
    ingredients = stream.ingredients
    flip(stream.isos["aarch64"], 300_000)
    with pytest.raises(ReleaseError, match="must have"):
        build(layout, ingredients)
    assert layout.root() == before
    assert not [name for name in files_in(layout.folder) if "/." in name]


def test_a_file_that_is_no_live_image_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    stream = publish(tmp_path / "isos")
    stream.isos["x86_64"].write_bytes(b"no image" * 10_000)
    with pytest.raises(ReleaseError, match=r"live-iso\.x86_64\.iso"):
        build(Layout(tmp_path / "payload"), stream.ingredients)
    assert not (tmp_path / "payload").exists()


def test_an_iso_is_known_by_its_hash_in_the_stream(tmp_path: Path) -> None:
    stream = publish(tmp_path / "isos")
    found = StreamFile(stream.file.read_bytes())
    for architecture, one in stream.ingredients.items():
        assert found.architecture_of(one.sha256) == architecture
    assert found.architecture_of("0" * 64) is None


def test_a_newer_tool_leaves_the_layer_with_the_iso_as_it_is(tmp_path: Path) -> None:
    stream = publish(tmp_path / "isos", ("x86_64",))
    layout = Layout(tmp_path / "payload")

    def layers(tool: bytes) -> tuple[str, ...]:
        one = replace(stream.ingredients["x86_64"], tool=[LayerFile("usr/bin/ingot", tool, 0o755)])
        build(layout, {"x86_64": one})
        return tuple(layer.digest for layer in base_image(layout, "x86_64").manifest.layers)

    old, new = layers(b"old"), layers(b"new")
    assert old[-1] == new[-1]
    assert old[0] != new[0]


def test_the_tool_in_the_image_runs_also_under_the_name_of_coreos_installer(tmp_path: Path) -> None:
    """What the layers hold is run as it is; the packages in it are for this Python and this machine."""
    stream = publish(tmp_path / "isos", ("x86_64",))
    layout = Layout(tmp_path / "payload")
    tool = [*launchers(), *running_tool()]
    build(layout, {"x86_64": replace(stream.ingredients["x86_64"], tool=tool)})
    root = unpacked_layers(layout, "x86_64", tmp_path / "root")
    iso = root / "coreos" / "coreos-x86_64.iso"

    def run(name: str, *arguments: str) -> str:
        # Alone: without what is installed around it.
        command = [sys.executable, "-S", "-E", str(root / "usr" / "bin" / name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout

    assert "ignition.platform.id=metal" in run("coreos-installer", "iso", "kargs", "show", str(iso))
    assert "unpacked" in run("ingot", "release", "unpack", str(root / "coreos"), str(tmp_path / "images"))
    assert (tmp_path / "images" / "ironic-python-agent_x86_64.kernel").read_bytes()


def test_the_real_coreos_installer_keeps_its_name(tmp_path: Path) -> None:
    real = tmp_path / "coreos-installer"
    real.write_bytes(b"\x7fELF")
    files = {file.path: file for file in launchers(real)}
    assert files["usr/bin/coreos-installer"].content == Region.whole(real)
    assert isinstance(files["usr/bin/ingot"].content, bytes)


def test_a_folder_that_does_not_hold_our_tool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="does not hold our tool"):
        list(given_tool(tmp_path))
    (tmp_path / "ingot").mkdir()
    (tmp_path / "ingot" / "__init__.py").write_text("")
    (tmp_path / "ingot" / "__pycache__").mkdir()
    (tmp_path / "ingot" / "__pycache__" / "x.pyc").write_bytes(b"")
    assert [file.path for file in given_tool(tmp_path) if file.kind is LayerKind.FILE] == [
        "usr/lib/ingot/ingot/__init__.py"
    ]


def test_the_tool_does_not_depend_on_who_may_write_to_its_files(tmp_path: Path) -> None:
    """A checkout has the modes that the umask of its owner left."""
    package = tmp_path / "ingot"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "run").write_text("")
    found = []
    for plain, executable in ((0o644, 0o755), (0o664, 0o775), (0o600, 0o700)):
        package.chmod(executable)
        (package / "__init__.py").chmod(plain)
        (package / "run").chmod(executable)
        found.append({file.path: file.mode for file in given_tool(tmp_path)})
    assert found[0] == found[1] == found[2]
    assert list(found[0].values()) == [0o755, 0o644, 0o755]


def test_the_base_is_that_of_linux(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "base")
    with layout.writing():
        images = {
            system: add_image(layout, [], architecture="x86_64", config=ContainerConfig(user=system))
            for system in ("windows", "linux")
        }
        named = tuple(
            Descriptor(
                media_type=image.media_type,
                digest=image.digest,
                size=image.size,
                platform=Platform(architecture="amd64", os=system),
            )
            for system, image in images.items()
        )
        layout.point_to(layout.add(encode(Index(manifests=named)), MediaType.INDEX))
    found = base_image(layout, "x86_64").config.config
    assert found is not None
    assert found.user == "linux"


def test_an_image_on_top_of_another_has_what_both_say(tmp_path: Path) -> None:
    base = Layout(tmp_path / "base")
    with base.writing():
        below = add_layer(base, [LayerFile("etc/below", b"below")], made_by="below")
        config = ContainerConfig(
            env=["PATH=/bin", "LANG=C"], cmd=["sh"], labels={"from": "base"}, working_dir="/work"
        )
        made = add_image(base, [below], architecture="x86_64", config=config)
        base.point_to(add_index(base, {"x86_64": made}))
    layout = Layout(tmp_path / "above")
    with layout.writing():
        above = add_layer(layout, [LayerFile("etc/above", b"above")], made_by="above")
        config = ContainerConfig(env=["LANG=en"], entrypoint=["/run"], labels={"own": "yes"})
        layout.point_to(
            add_image(layout, [above], architecture="x86_64", config=config, base=base_image(base, "x86_64"))
        )
        with pytest.raises(ReleaseError, match="has nothing for aarch64"):
            base_image(base, "aarch64")
    found = base_image(layout, "x86_64")
    assert found.config.config == ContainerConfig(
        env=["PATH=/bin", "LANG=en"],
        entrypoint=["/run"],
        labels={"from": "base", "own": "yes"},
        working_dir="/work",
    )
    assert [entry.created_by for entry in found.config.history] == ["below", "above"]
    root = unpacked_layers(layout, "x86_64", tmp_path / "root")
    assert files_in(root) == {"etc/below": b"below", "etc/above": b"above"}


def test_a_tree_becomes_a_layer_with_its_links_and_modes(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "run").write_bytes(b"run")
    (folder / "bin" / "run").chmod(0o4755)
    (folder / "bin" / "walk").hardlink_to(folder / "bin" / "run")
    (folder / "sbin").symlink_to("bin")
    os.mkfifo(folder / "pipe")
    layout = Layout(tmp_path / "layout")
    with layout.writing():
        layer = add_layer(layout, tree(folder, "opt/x"), made_by="tree")
    with tarfile.open(layout.path(layer.descriptor.digest)) as archive:
        found = {member.name: (member.type, member.mode, member.linkname, member.uid) for member in archive}
    assert found == {
        "opt": (tarfile.DIRTYPE, 0o755, "", 0),
        "opt/x": (tarfile.DIRTYPE, 0o755, "", 0),
        "opt/x/bin": (tarfile.DIRTYPE, 0o755, "", 0),
        "opt/x/bin/run": (tarfile.REGTYPE, 0o4755, "", 0),
        "opt/x/bin/walk": (tarfile.LNKTYPE, 0o4755, "opt/x/bin/run", 0),
        "opt/x/sbin": (tarfile.SYMTYPE, 0o777, "bin", 0),
    }


def test_a_large_file_begins_at_a_whole_block(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    files = [LayerFile("small", b"x"), LayerFile("large", bytes(2 << 20))]
    with layout.writing():
        layer = add_layer(layout, files, made_by="x")
    with tarfile.open(layout.path(layer.descriptor.digest)) as archive:
        assert archive.getmember("large").offset_data % 4096 == 0


def test_documents_are_plain_json_that_others_can_read(tmp_path: Path) -> None:
    layout = payload_in(tmp_path / "payload", ("x86_64",))
    index = json.loads((layout.folder / "index.json").read_bytes())
    assert json.loads((layout.folder / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    root = index["manifests"][0]
    content = layout.path(root["digest"]).read_bytes()
    assert len(content) == root["size"]
    assert json.loads(io.BytesIO(content).read())["mediaType"] == root["mediaType"]
    assert this_architecture() == os.uname().machine
