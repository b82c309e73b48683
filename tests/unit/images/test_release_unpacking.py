"""Unpacking a payload: which files, under which names, when again, and what happens to what is in the way."""

from __future__ import annotations

import gzip
import hashlib
import io
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from release_room import files_in, flip, payload_in, publish

from ingot.formats.coreos import LiveIso
from ingot.formats.iso9660 import Iso
from ingot.images.release import Payload, PayloadDamaged, PayloadError, ReleaseError
from ingot.images.release.building import Ingredients, build
from ingot.images.release.extracting import Parts
from ingot.images.release.layout import Layout
from ingot.images.release.unpacking import Wish, check_unpacked, unpack
from live_images import noise

Mine = Wish(own_architecture="x86_64")


@pytest.fixture
def payload(tmp_path: Path) -> Payload:
    return Payload.open(payload_in(tmp_path / "payload").folder)


def test_everything_is_there_under_the_names_that_ironic_is_configured_with(
    payload: Payload, tmp_path: Path
) -> None:
    target = tmp_path / "images"
    assert unpack(payload, target, Mine).changed
    isos = publish(tmp_path / "isos").isos
    for architecture in ("x86_64", "aarch64"):
        content = isos[architecture].read_bytes()
        iso = Iso(io.BytesIO(content))
        expected = {
            "iso": content,
            "kernel": iso.read("/images/pxeboot/vmlinuz"),
            "initramfs": iso.read("/images/pxeboot/initrd.img"),
            "rootfs": iso.read("/images/pxeboot/rootfs.img"),
        }
        for kind, bytes_ in expected.items():
            assert (target / f"ironic-python-agent_{architecture}.{kind}").read_bytes() == bytes_
            if architecture == "x86_64":
                assert (target / f"ironic-python-agent.{kind}").read_bytes() == bytes_
        for name, kind in (
            ("-vmlinuz", "kernel"),
            ("-initrd.img", "initramfs"),
            ("-rootfs.img", "rootfs"),
            (".iso", "iso"),
        ):
            assert (target / f"coreos-{architecture}{name}").read_bytes() == expected[kind]
        assert (target / f"coreos-{architecture}.iso.sha256").read_text() == payload.images[
            architecture
        ].sha256


def test_what_was_unpacked_can_be_opened_as_a_payload(payload: Payload, tmp_path: Path) -> None:
    unpack(payload, tmp_path / "images", Mine)
    again = Payload.open(tmp_path / "images")
    assert {name: image.sha256 for name, image in again.images.items()} == {
        name: image.sha256 for name, image in payload.images.items()
    }


def test_doing_it_again_changes_nothing(payload: Payload, tmp_path: Path) -> None:
    target = tmp_path / "images"
    unpack(payload, target, Mine)
    before = {path: path.lstat().st_mtime_ns for path in target.rglob("*")}
    assert not unpack(payload, target, Mine).changed
    assert {path: path.lstat().st_mtime_ns for path in target.rglob("*")} == before


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        (Parts.ISO, {"iso"}),
        (Parts.PXE, {"kernel", "initramfs", "rootfs"}),
        (Parts.IMAGE_BUILD, {"iso", "initramfs"}),
    ],
)
def test_only_what_is_wanted_is_there(
    payload: Payload, tmp_path: Path, parts: Parts, kinds: set[str]
) -> None:
    unpack(payload, tmp_path / "images", Wish(parts=parts, architectures=["aarch64"]))
    found = {path.suffix[1:] for path in (tmp_path / "images").glob("ironic-python-agent_aarch64.*")}
    assert found == kinds
    assert not list((tmp_path / "images").glob("*x86_64*"))
    # With one architecture, the names without one are for it, whatever this machine is.
    assert {path.suffix[1:] for path in (tmp_path / "images").glob("ironic-python-agent.*")} == kinds


def test_kernel_arguments_are_in_the_iso_and_others_make_it_anew(payload: Payload, tmp_path: Path) -> None:
    target = tmp_path / "images"

    def arguments(wanted: list[str]) -> str:
        assert unpack(payload, target, Wish(arguments=wanted)).changed
        with (target / "coreos-x86_64.iso").open("rb") as file:
            return LiveIso(file).arguments

    assert arguments(["ip=dhcp", "fips=1"]).endswith(" ip=dhcp fips=1")
    assert arguments(["ip=dhcp6"]).endswith(" ip=dhcp6")
    assert "ip=" not in arguments([])
    content = (target / "coreos-x86_64.iso").read_bytes()
    assert hashlib.sha256(content).hexdigest() == payload.images["x86_64"].sha256


def test_arguments_that_do_not_fit_leave_the_old_release(payload: Payload, tmp_path: Path) -> None:
    target = tmp_path / "images"
    unpack(payload, target, Mine)
    before = files_in(target)
    with pytest.raises(PayloadError, match="kargs too large"):
        unpack(payload, target, Wish(arguments=["x" * 2000]))
    assert files_in(target) == before


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [lambda path: flip(path, 100), _truncate, Path.unlink])
@pytest.mark.parametrize("name", ["coreos-x86_64-rootfs.img", "coreos-x86_64.iso", "stamp.json"])
def test_what_is_not_as_it_was_written_is_made_again(
    payload: Payload, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    target = tmp_path / "images"
    unpack(payload, target, Mine)
    whole = {path.name: path.read_bytes() for path in target.glob("ironic-*")}
    damage(target / "current" / name)
    if name != "stamp.json":
        with pytest.raises(PayloadDamaged, match="Unpack the payload again"):
            check_unpacked(target)
    done = unpack(payload, target, Mine)
    # A stamp of which one letter changed may still say the truth.
    assert done.changed or name == "stamp.json"
    check_unpacked(target)
    assert {path.name: path.read_bytes() for path in target.glob("ironic-*")} == whole


def test_a_link_that_was_bent_is_straightened(payload: Payload, tmp_path: Path) -> None:
    target = tmp_path / "images"
    unpack(payload, target, Mine)
    (target / "ironic-python-agent.kernel").unlink()
    (target / "ironic-python-agent.kernel").symlink_to("/nowhere")
    (target / "coreos-x86_64.iso").unlink()
    (target / "coreos-x86_64.iso").write_bytes(b"a file of somebody else")
    unpack(payload, target, Mine)
    assert (target / "ironic-python-agent.kernel").read_bytes() == noise("kernel", 30_000)
    assert (target / "coreos-x86_64.iso").is_symlink()


def test_a_folder_in_the_way_is_told_and_not_removed(payload: Payload, tmp_path: Path) -> None:
    (tmp_path / "images" / "coreos-x86_64.iso").mkdir(parents=True)
    with pytest.raises(ReleaseError, match="Move it away"):
        unpack(payload, tmp_path / "images", Mine)


def test_other_files_in_the_folder_are_left_alone(payload: Payload, tmp_path: Path) -> None:
    target = tmp_path / "images"
    target.mkdir()
    (target / "ubuntu.qcow2").write_bytes(b"qcow2")
    (target / "link").symlink_to("ubuntu.qcow2")
    (target / "releases" / "notes").mkdir(parents=True)
    (target / "releases" / "notes" / "44.txt").write_bytes(b"notes")
    (target / "releases" / "README").write_bytes(b"readme")
    unpack(payload, target, Mine)
    assert (target / "link").read_bytes() == b"qcow2"
    assert (target / "releases" / "notes" / "44.txt").read_bytes() == b"notes"
    assert (target / "releases" / "README").read_bytes() == b"readme"


@pytest.mark.parametrize("name", ["current", "previous"])
def test_a_link_of_somebody_else_in_our_place_is_told_and_left(
    payload: Payload, tmp_path: Path, name: str
) -> None:
    """Other tools have folders of the same shape."""
    target = tmp_path / "images"
    (target / "releases" / "20260101").mkdir(parents=True)
    (target / name).symlink_to("releases/20260101")
    with pytest.raises(ReleaseError, match="a folder of its own"):
        unpack(payload, target, Mine)
    assert str((target / name).readlink()) == "releases/20260101"
    assert [path.name for path in target.iterdir() if path.name.startswith("coreos-")] == []


def test_an_architecture_that_is_gone_takes_its_names_with_it(payload: Payload, tmp_path: Path) -> None:
    target = tmp_path / "images"
    unpack(payload, target, Mine)
    unpack(payload, target, Wish(architectures=["x86_64"]))
    assert not [path.name for path in target.iterdir() if "aarch64" in path.name]
    assert all(path.exists() for path in target.iterdir())


def test_the_release_before_stays_and_older_ones_go(tmp_path: Path) -> None:
    target = tmp_path / "images"
    for number in range(4):
        made = payload_in(tmp_path / str(number), ("x86_64",), f"fedora-coreos-{number}")
        unpack(Payload.open(made.folder), target, Mine)
    assert len(list((target / "releases").iterdir())) == 2
    with (target / "previous" / "coreos-x86_64.iso").open("rb") as file:
        assert LiveIso(file).iso.label == "fedora-coreos-2"
    # And back: nothing has to be made, but another release counts.
    kept = (target / "previous").resolve()
    back = unpack(Payload.open(tmp_path / "2"), target, Mine)
    assert (back.changed, back.folder.resolve()) == (True, kept)
    assert not unpack(Payload.open(tmp_path / "2"), target, Mine).changed
    with (target / "coreos-x86_64.iso").open("rb") as file:
        assert LiveIso(file).iso.label == "fedora-coreos-2"


def test_a_damaged_payload_is_not_unpacked_and_the_old_release_stays(
    payload: Payload, tmp_path: Path
) -> None:
    target = tmp_path / "images"
    unpack(payload, target, Mine)
    before = files_in(target)
    image = Payload.open(payload_in(tmp_path / "new", label="fedora-coreos-39").folder).images["x86_64"]
    flip(image.iso.path, image.iso.offset + 100_000)
    with pytest.raises(PayloadDamaged):
        unpack(Payload.open(tmp_path / "new"), target, Mine)
    assert files_in(target) == before


def test_an_architecture_that_the_payload_lacks_is_named(payload: Payload, tmp_path: Path) -> None:
    with pytest.raises(PayloadError, match="no image for s390x; it has aarch64, x86_64"):
        unpack(payload, tmp_path / "images", Wish(architectures=["s390x"]))


def test_two_who_unpack_at_once_make_it_once(payload: Payload, tmp_path: Path) -> None:
    target, done = tmp_path / "images", list[bool]()

    def work() -> None:
        done.append(unpack(payload, target, Mine).changed)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [False, False, True]
    check_unpacked(target)


def test_a_packed_kernel_of_aarch64_is_unpacked_because_old_ipxe_cannot(tmp_path: Path) -> None:
    plain = b"MZ" + bytes(50_000)
    packed = gzip.compress(plain, mtime=0).ljust(30_000, b"\0")  # zeros behind it are padding
    for architecture, expected in (("aarch64", plain), ("x86_64", packed)):
        iso = publish(tmp_path / architecture, (architecture,)).isos[architecture]
        content = bytearray(iso.read_bytes())
        entry = Iso(io.BytesIO(bytes(content))).entry("/images/pxeboot/vmlinuz")
        assert entry.size == len(packed)
        content[entry.offset : entry.end] = packed
        iso.write_bytes(content)
        layout = Layout(tmp_path / f"payload-{architecture}")
        build(layout, {architecture: Ingredients(iso=iso, sha256=hashlib.sha256(content).hexdigest())})
        target = tmp_path / f"images-{architecture}"
        unpack(Payload.open(layout.folder), target, Wish(parts=Parts.PXE))
        assert (target / f"coreos-{architecture}-vmlinuz").read_bytes() == expected


def test_s390x_has_its_kernel_under_the_usual_name(tmp_path: Path) -> None:
    made = payload_in(tmp_path / "payload", ("s390x",))
    unpack(Payload.open(made.folder), tmp_path / "images", Wish(arguments=["rd.znet=x"]))
    assert (tmp_path / "images" / "ironic-python-agent.kernel").read_bytes() == noise("kernel", 30_000)
    with (tmp_path / "images" / "ironic-python-agent.iso").open("rb") as file:
        assert LiveIso(file).arguments.endswith("rd.znet=x")


def test_a_folder_without_a_release_is_told(tmp_path: Path) -> None:
    with pytest.raises(PayloadError, match="holds no release"):
        check_unpacked(tmp_path)
