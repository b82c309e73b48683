"""`ingot release build`, `show`, `verify`, `mirror` and `unpack`, as a person calls them."""

from __future__ import annotations

import json
import resource
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from release_room import Stream, flip, publish

from ingot.cli.main import main
from ingot.formats.oci import ContainerConfig
from ingot.images.release import Payload
from ingot.images.release.assembling import LayerFile, add_image, add_index, add_layer, base_image
from ingot.images.release.layout import Layout


def ingot(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["release", *map(str, arguments)])


def fine(*arguments: object) -> str:
    done = ingot(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*arguments: object) -> str:
    done = ingot(*arguments)
    assert done.exit_code in (1, 2), done.output
    assert isinstance(done.exception, SystemExit), "a traceback"
    return done.output


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return publish(tmp_path / "isos")


@pytest.fixture
def payload(stream: Stream, tmp_path: Path) -> Path:
    fine("build", "--no-tool", "--stream", stream.file, tmp_path / "payload", *stream.isos.values())
    return tmp_path / "payload"


def test_a_payload_is_built_and_shown(stream: Stream, payload: Path) -> None:
    told = json.loads(fine("show", "-o", "json", payload))
    assert told["digest"] == Payload.open(payload).digest
    assert [image["architecture"] for image in told["images"]] == ["aarch64", "x86_64"]
    assert told["images"][1]["sha256"] == stream.ingredients["x86_64"].sha256
    assert not told["verified"]
    assert "fedora-coreos-38.20230718.dev.0" in fine("show", payload)


def test_building_again_makes_the_same_digest_however_the_isos_are_named(
    stream: Stream, payload: Path, tmp_path: Path
) -> None:
    named = [f"{architecture}={path}" for architecture, path in stream.isos.items()]
    again = fine("build", "--no-tool", "--stream", stream.file, "-o", "json", tmp_path / "again", *named)
    assert json.loads(again)["digest"] == Payload.open(payload).digest
    # What `ingot release fetch` left beside them is the stream metadata.
    again = fine("build", "--no-tool", "-o", "json", tmp_path / "third", *stream.isos.values())
    assert json.loads(again)["digest"] == Payload.open(payload).digest


def test_without_stream_metadata_a_hash_is_needed(stream: Stream, tmp_path: Path) -> None:
    iso, sha256 = tmp_path / "some.iso", stream.ingredients["x86_64"].sha256
    iso.write_bytes(stream.isos["x86_64"].read_bytes())
    build = ("build", "--no-tool", tmp_path / "payload")
    assert "say for which architecture" in refused(*build, iso)
    assert "nobody says what its sha256 must be" in refused(*build, f"x86_64={iso}")
    assert "must have" in refused(*build, f"x86_64={iso}", "--sha256", "x86_64=" + "0" * 64)
    fine(*build, f"x86_64={iso}", "--sha256", f"x86_64={sha256.upper()}")
    iso.with_name(f"{iso.name}.sha256").write_text(f"{sha256}  {iso.name}\n")
    fine("build", "--no-tool", tmp_path / "other", f"x86_64={iso}")
    assert Payload.open(tmp_path / "other").digest == Payload.open(tmp_path / "payload").digest


def test_a_damaged_iso_is_not_built(stream: Stream, tmp_path: Path) -> None:
    flip(stream.isos["x86_64"], 200_000)
    told = refused("build", "--stream", stream.file, tmp_path / "payload", *stream.isos.values())
    assert "which no ISO image of the stream stable has" in told
    named = f"x86_64={stream.isos['x86_64']}"
    assert "must have" in refused("build", "--no-tool", "--stream", stream.file, tmp_path / "payload", named)
    assert "is no release payload" in refused("show", tmp_path / "payload")


def test_what_does_not_fit_together_is_told(stream: Stream, tmp_path: Path) -> None:
    build, iso = ("build", "--stream", stream.file, tmp_path / "payload"), stream.isos["x86_64"]
    assert "both for x86_64" in refused(*build, iso, f"x86_64={iso}")
    assert "of which there is no ISO image" in refused(*build, iso, "--tool", "s390x=/tmp")
    assert "give ARCH=VALUE" in refused(*build, iso, "--tool", "/tmp")
    assert "does not hold our tool" in refused(*build, iso, "--tool", f"x86_64={tmp_path}")
    assert "nowhere" in refused(*build, tmp_path / "nowhere.iso")
    assert "of which there is no ISO image" in refused(*build, iso, "--sha256", f"s390x={'0' * 64}")
    assert "riscv64" in refused(
        "build", "--no-tool", tmp_path / "p", f"riscv64={iso}", "--sha256", "riscv64=" + "0" * 64
    )
    assert not (tmp_path / "p").exists(), "an ISO image was copied before it was noticed"


def test_tool_installer_and_base_go_into_the_image(stream: Stream, tmp_path: Path) -> None:
    base, tool, installer = Layout(tmp_path / "base"), tmp_path / "tool", tmp_path / "coreos-installer"
    with base.writing():
        below = add_layer(base, [LayerFile("usr/bin/python3", b"python")], made_by="base")
        images = {
            architecture: add_image(
                base, [below], architecture=architecture, config=ContainerConfig(env=["LANG=C"])
            )
            for architecture in stream.isos
        }
        base.point_to(add_index(base, images))
    (tool / "ingot").mkdir(parents=True)
    (tool / "ingot" / "__init__.py").write_text("")
    installer.write_bytes(b"\x7fELF")
    told = fine(
        "build", "-o", "json", "--stream", stream.file, "--base", base.folder, "--tool", f"aarch64={tool}",
        "--coreos-installer", f"aarch64={installer}", tmp_path / "payload", *stream.isos.values(),
    )  # fmt: skip
    assert "aarch64" in json.loads(told)["withTool"]
    image = base_image(Layout(tmp_path / "payload"), "aarch64")
    assert image.config.config is not None
    assert (image.config.config.env, image.config.config.entrypoint) == (["LANG=C"], ["/usr/bin/ingot"])
    found: dict[str, bytes] = {}
    for layer in image.manifest.layers:
        with tarfile.open(Layout(tmp_path / "payload").path(layer.digest)) as archive:
            for member in archive:
                if (content := archive.extractfile(member)) is not None:
                    found[member.name] = content.read()
    assert found["usr/bin/python3"] == b"python"
    assert found["usr/bin/coreos-installer"] == b"\x7fELF"
    assert found["usr/bin/ingot"].startswith(b"#!/usr/bin/env python3")
    assert "usr/lib/ingot/ingot/__init__.py" in found


def test_the_real_installer_alone_is_not_our_tool(stream: Stream, tmp_path: Path) -> None:
    installer = tmp_path / "coreos-installer"
    installer.write_bytes(b"\x7fELF")
    told = fine(
        "build", "-o", "json", "--stream", stream.file, "--no-tool", "--coreos-installer", f"aarch64={installer}",
        tmp_path / "payload", *stream.isos.values(),
    )  # fmt: skip
    assert json.loads(told)["withTool"] == []
    image = base_image(Layout(tmp_path / "payload"), "aarch64")
    assert image.config.config is not None
    assert image.config.config.entrypoint is None


def test_verify_reads_all_of_it(payload: Path) -> None:
    assert json.loads(fine("verify", "-o", "json", payload))["verified"]
    image = Payload.open(payload).images["aarch64"]
    flip(image.iso.path, image.iso.offset + 5)
    fine("show", payload)
    assert "was changed" in refused("verify", payload)


def test_unpack_and_verify_what_was_unpacked(payload: Path, tmp_path: Path) -> None:
    target = tmp_path / "images"
    told = json.loads(
        fine("unpack", "-o", "json", payload, target, "-k", "ip=dhcp", "--own-architecture", "aarch64")
    )
    assert told["changed"]
    assert "ironic-python-agent_x86_64.rootfs" in told["files"]
    assert (target / "ironic-python-agent.iso").read_bytes() == (target / "coreos-aarch64.iso").read_bytes()
    assert "all is there already" in fine(
        "unpack", payload, target, "-k", "ip=dhcp", "--own-architecture", "aarch64"
    )
    assert "verified" in fine("verify", target)
    flip(target / "coreos-aarch64-vmlinuz", 10)
    assert "Unpack the payload again" in refused("verify", target)
    assert "no image for s390x" in refused("unpack", payload, target, "-a", "s390x")
    assert "no image for amd64" in refused("unpack", payload, target, "--own-architecture", "amd64")
    assert "has no ISO image" in refused("unpack", payload, target, "--parts", "pxe", "-k", "ip=dhcp")


def test_a_folder_is_mirrored_to_a_disk_and_from_there(payload: Path, tmp_path: Path) -> None:
    told = json.loads(fine("mirror", "-o", "json", payload, f"oci:{tmp_path}/disk"))
    assert told["digest"] == Payload.open(payload).digest
    assert told["kept"] == 0
    assert "nothing to copy" in fine("mirror", payload, tmp_path / "disk")
    assert "is no release payload" in refused("mirror", tmp_path / "nowhere", tmp_path / "elsewhere")


def test_a_disk_that_is_full_is_named(stream: Stream, payload: Path, tmp_path: Path) -> None:
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # no file gets larger than that
    try:
        for verb in (
            ("mirror", payload, tmp_path / "disk"),
            ("unpack", payload, tmp_path / "disk"),
            ("build", "--no-tool", "--stream", stream.file, tmp_path / "disk", *stream.isos.values()),
        ):
            assert f"Error: {tmp_path / 'disk'}" in refused(*verb), "nobody knows which disk"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def test_between_folders_nobody_asks_for_credentials(
    payload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.json").write_text("{")
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "broken.json"))
    fine("show", payload)
    fine("verify", payload)
    fine("mirror", payload, tmp_path / "disk")
    assert "broken.json is no file with credentials" in refused("mirror", payload, "localhost:1/x:1")


def test_a_registry_is_named_in_full(payload: Path) -> None:
    assert "has to begin with the registry" in refused("push", payload, "payload:44")
    assert "has to begin with the registry" in refused("pull", "payload:44", payload)
    # What `mirror` takes, they take too.
    assert "'payload:44' is no reference" in refused("push", f"oci:{payload}", "docker://payload:44")
    assert "'payload:44' is no reference" in refused("pull", "docker://payload:44", f"oci:{payload}")


def test_every_verb_says_what_it_is_for() -> None:
    for verb in ("build", "show", "verify", "push", "pull", "mirror", "unpack"):
        told = fine(verb, "--help")
        assert f"ingot release {verb} " in told.split("Usage:")[1].split("\n", 1)[1], "an example is missing"
