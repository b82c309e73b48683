"""A host's image: read back with the same tools that read published ones, for every generation and architecture."""

from __future__ import annotations

import base64
import gzip
import random
from dataclasses import replace
from pathlib import Path

import pytest
from image_serving import materialised
from ramdisk_parts import (
    KEYFILES,
    ROOTFS_URL,
    agent_settings,
    appended_members,
    base_in,
    embedded,
    published,
    saved,
)

from ingot.api.inputs import kernel_arguments
from ingot.images.ramdisk import (
    Base,
    BaseError,
    CannotBuild,
    HostImage,
    RamdiskMaker,
    agent_ignition,
    kernel_of,
    minimal_of,
)
from ingot.images.ramdisk.kept import forget_others
from ingot.images.region import Region
from live_images import (
    BY_NAME,
    DEFAULT,
    GENERATIONS,
    LABEL,
    NEWEST,
    Generation,
    live_initrd,
    root_file_system,
)

ALL = pytest.mark.parametrize("generation", GENERATIONS, ids=lambda generation: generation.name)


def maker(folder: Path, generation: Generation = NEWEST, **settings: object) -> RamdiskMaker:
    return RamdiskMaker(base_in(folder, generation), agent_settings(**settings), rootfs_url=ROOTFS_URL)


def whole(made: HostImage) -> bytes:
    content = materialised(made.image.pieces)
    assert len(content) == made.image.size
    return content


@ALL
def test_an_iso_has_the_config_and_the_network_and_is_otherwise_what_was_published(
    generation: Generation, tmp_path: Path
) -> None:
    iso = whole(maker(tmp_path, generation).make("iso", hostname="h1", keyfiles=KEYFILES))
    live = embedded(iso)
    assert live.ignition == agent_ignition(agent_settings(), hostname="h1", keyfiles=KEYFILES)
    expected = {f"etc/coreos-firstboot-network/{name}": content for name, content in KEYFILES.items()}
    assert live.network == (expected if generation.network else {})
    area, original = live.ignition_area, published(generation)
    assert iso[: area.offset] == original[: area.offset]
    assert iso[area.end :] == original[area.end :]


@ALL
def test_an_initrd_is_the_published_one_with_an_archive_behind_it(
    generation: Generation, tmp_path: Path
) -> None:
    made = maker(tmp_path, generation).make("initrd", hostname="h1", keyfiles=KEYFILES)
    initrd, original = whole(made), live_initrd(generation)
    assert initrd.startswith(original)
    assert (len(original) + -len(original) % 4) == initrd.index(b"\x1f\x8b", len(original))
    members = appended_members(initrd)
    assert members["config.ign"] == agent_ignition(agent_settings(), hostname="h1", keyfiles=KEYFILES)
    assert (len(members) > 1) is generation.network


@ALL
def test_an_image_knows_whether_it_fetches_its_root_without_the_hosts_network(
    generation: Generation, tmp_path: Path
) -> None:
    made = maker(tmp_path, generation)
    assert made.make("initrd", hostname="h1", keyfiles=KEYFILES).network_is_late is not generation.network
    assert not made.make("initrd", hostname="h1", keyfiles={}).network_is_late
    assert not made.make("iso", hostname="h1", keyfiles=KEYFILES).network_is_late, "its root is on the medium"


@ALL
def test_kernel_and_root_file_system_come_out_of_the_iso(generation: Generation, tmp_path: Path) -> None:
    base = base_in(tmp_path, generation)
    assert materialised(base.rootfs_image().pieces) == root_file_system()
    assert materialised(base.kernel_image().pieces)[:16] in published(generation)
    assert (base.version, base.architecture) == (LABEL, generation.architecture)
    assert base.kernel_image().etag != base.rootfs_image().etag


def test_a_kernel_is_told_where_its_root_file_system_is_and_never_to_look_for_the_iso(tmp_path: Path) -> None:
    made = maker(tmp_path, ip_options=("ip=dhcp",)).make("initrd", hostname="h1", keyfiles={})
    assert made.kernel_params.split() == [
        f"coreos.live.rootfs_url={ROOTFS_URL}",
        "ignition.firstboot",
        "ignition.platform.id=metal",
        "ip=dhcp",
    ]
    assert "liveiso" not in made.kernel_params
    assert kernel_arguments.problem_with(made.kernel_params) is None


def test_a_url_that_a_boot_loader_would_read_as_more_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaseError, match="root file system"):
        RamdiskMaker(base_in(tmp_path), agent_settings(), rootfs_url="https://a/;reboot")


@pytest.mark.parametrize(
    "generation", [one for one in GENERATIONS if one.arguments], ids=lambda one: one.name
)
def test_ip_options_are_put_behind_the_arguments_of_an_iso(generation: Generation, tmp_path: Path) -> None:
    made = maker(tmp_path, generation, ip_options=("ip=dhcp,dhcp6",))
    live = embedded(whole(made.make("iso", hostname="h1", keyfiles={})))
    assert live.arguments == f"{DEFAULT} ip=dhcp,dhcp6"


def test_what_ironic_adds_over_the_network_is_in_the_iso(tmp_path: Path) -> None:
    """A console or FIPS mode that holds for one way to boot holds for the other; neither has it twice."""
    made = maker(tmp_path, iso_arguments=("fips=1", "console=ttyS0,115200"), ip_options=("ip=dhcp",))
    live = embedded(whole(made.make("iso", hostname="h1", keyfiles={})))
    assert live.arguments == f"{DEFAULT} fips=1 console=ttyS0,115200 ip=dhcp"
    assert "fips" not in made.make("initrd", hostname="h1", keyfiles={}).kernel_params


def test_arguments_that_an_iso_has_no_room_for_are_told_of_before_a_host_boots_it(tmp_path: Path) -> None:
    with pytest.raises(BaseError, match=r"no room .*kargs too large.* IRONIC_KERNEL_PARAMS shorter"):
        maker(tmp_path, iso_arguments=("x=" + "y" * 800,), ip_options=("z=" + "y" * 800,))


def test_an_image_without_room_for_arguments_says_so_before_a_host_boots_it(tmp_path: Path) -> None:
    oldest = BY_NAME["2020-09"]
    with pytest.raises(BaseError, match="No karg embed areas"):
        maker(tmp_path, oldest, ip_options=("ip=dhcp",))
    assert embedded(whole(maker(tmp_path, oldest).make("iso", hostname="h1", keyfiles={}))).ignition


def test_what_does_not_fit_is_said_when_it_is_built(tmp_path: Path) -> None:
    noise = base64.b64encode(random.Random(1).randbytes(200_000))
    made = maker(tmp_path, registries_conf=b"# " + noise)
    with pytest.raises(CannotBuild, match=r"has room for 262144 .*config.ign \d+.*REGISTRIES_CONF_PATH"):
        made.make("iso", hostname="h1", keyfiles={"a": noise})
    # There is no such limit behind an initial RAM disk.
    assert appended_members(whole(made.make("initrd", hostname="h1", keyfiles={"a": noise})))


def test_the_same_host_has_the_same_image_and_every_difference_makes_another(tmp_path: Path) -> None:
    usual = maker(tmp_path)
    again = usual.make("iso", hostname="h1", keyfiles=KEYFILES)
    assert again == usual.make("iso", hostname="h1", keyfiles=KEYFILES)
    (tmp_path / "b").mkdir()
    other_base = RamdiskMaker(
        base_in(tmp_path / "b", label="fedora-coreos-39"), agent_settings(), rootfs_url=ROOTFS_URL
    )
    others = [
        usual.make("iso", hostname="h2", keyfiles=KEYFILES),
        usual.make("iso", hostname="h1", keyfiles={}),
        usual.make("initrd", hostname="h1", keyfiles=KEYFILES),
        maker(tmp_path, ssh_key="ssh-rsa AAAA").make("iso", hostname="h1", keyfiles=KEYFILES),
        other_base.make("iso", hostname="h1", keyfiles=KEYFILES),
    ]
    tags = {made.image.etag for made in [again, *others]}
    assert len(tags) == 1 + len(others)


def test_a_base_that_somebody_customized_shines_through_nowhere(tmp_path: Path) -> None:
    live, content = embedded(published()), bytearray(published())
    for patch in [*live.embedding({"config.ign": b"theirs" * 9000}), *live.arguing("theirs")]:
        content[patch.offset : patch.offset + len(patch.content)] = patch.content
    path = tmp_path / "customized.iso"
    path.write_bytes(content)
    base = Base.read(Region.whole(path), architecture="x86_64", sha256="0" * 64)
    made = RamdiskMaker(base, agent_settings(), rootfs_url=ROOTFS_URL)
    usual = maker(tmp_path).make("iso", hostname="h1", keyfiles={})
    assert whole(made.make("iso", hostname="h1", keyfiles={})) == whole(usual)


def test_a_host_costs_little_memory(tmp_path: Path) -> None:
    made = maker(tmp_path, ca=b"x" * 2000).make("iso", hostname="h1", keyfiles=KEYFILES)
    own = [piece for piece in made.image.pieces if isinstance(piece, bytes) and piece.strip(b"\0")]
    assert sum(map(len, own)) < 16_000


# What is no base


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not a live image"),
        (b"\0" * 100_000, "not a live image"),
        (published()[:200_000], "incomplete"),
    ],
)
def test_what_is_no_live_image_says_what_it_is(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "live.iso"
    path.write_bytes(content)
    with pytest.raises(BaseError, match=told):
        Base.read(Region.whole(path), architecture="x86_64", sha256="0" * 64)


def test_a_base_that_is_gone_says_where_it_was(tmp_path: Path) -> None:
    region = Region.whole(saved(tmp_path))
    region.path.unlink()
    with pytest.raises(BaseError, match=r"live\.iso.*cannot be read"):
        Base.read(region, architecture="x86_64", sha256="0" * 64)


# The kernel


def with_kernel(folder: Path, kernel: bytes, architecture: str) -> Base:
    """A base with another kernel, which lies behind the ISO image in the same file."""
    base = base_in(folder)
    with base.iso.path.open("ab") as file:
        file.write(kernel)
    place = Region(base.iso.path, base.iso.length, len(kernel))
    return replace(base, kernel=place, architecture=architecture)


def test_a_kernel_of_aarch64_that_is_packed_is_unpacked_for_boot_loaders(tmp_path: Path) -> None:
    kernel = b"MZ" + bytes(3_000_000) + b"the end"
    base = with_kernel(tmp_path, gzip.compress(kernel), "aarch64")
    served = kernel_of(base, tmp_path / "made")
    assert materialised(served.pieces) == kernel
    assert served.etag != base.kernel_image().etag
    assert kernel_of(base, tmp_path / "made") == served


@pytest.mark.parametrize(
    ("kernel", "architecture"), [(gzip.compress(b"x"), "x86_64"), (b"MZ and so on", "aarch64")]
)
def test_other_kernels_are_served_as_they_are(tmp_path: Path, kernel: bytes, architecture: str) -> None:
    base = with_kernel(tmp_path, kernel, architecture)
    assert kernel_of(base, tmp_path / "made") == base.kernel_image()
    assert not (tmp_path / "made").exists()


def test_a_packed_kernel_that_is_cut_short_is_damage(tmp_path: Path) -> None:
    packed = gzip.compress(random.Random(1).randbytes(100_000))
    with pytest.raises(BaseError, match="cut short"):
        kernel_of(with_kernel(tmp_path, packed[:-20_000], "aarch64"), tmp_path / "made")
    with pytest.raises(BaseError, match="damaged"):
        kernel_of(with_kernel(tmp_path, packed[:500] + b"?" * 99_000, "aarch64"), tmp_path / "made")
    assert list((tmp_path / "made").iterdir()) == []


# Without the root file system


def test_a_minimal_image_looks_for_its_root_file_system_where_it_is_told(tmp_path: Path) -> None:
    base = base_in(tmp_path)
    minimal = minimal_of(base, tmp_path / "minimal")
    assert minimal is not None
    settings = agent_settings(ip_options=("ip=dhcp",), iso_arguments=("fips=1",))
    made = RamdiskMaker(base, settings, rootfs_url=ROOTFS_URL, minimal=minimal)
    image = made.make("iso", hostname="h1", keyfiles=KEYFILES)
    live = embedded(whole(image))
    assert live.ignition == agent_ignition(made.settings, hostname="h1", keyfiles=KEYFILES)
    expected = DEFAULT.replace(f" coreos.liveiso={LABEL}", "")
    assert live.arguments == f"{expected} coreos.live.rootfs_url={ROOTFS_URL} fips=1 ip=dhcp"
    assert image.image.size < base.iso.length
    assert "IMAGES/PXEBOOT/ROOTFS.IMG" not in live.iso


def test_a_minimal_image_is_made_once_and_anew_when_it_is_damaged(tmp_path: Path) -> None:
    base, folder = base_in(tmp_path), tmp_path / "minimal"
    first = minimal_of(base, folder)
    (path,) = folder.iterdir()
    before = path.stat()
    assert minimal_of(base, folder) == first
    assert path.stat().st_ino == before.st_ino
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    assert minimal_of(base, folder) == first
    assert path.read_bytes() == content


def test_minimal_images_of_other_bases_are_removed_when_nobody_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "minimal"
    base = base_in(tmp_path)
    minimal_of(base, folder)
    (folder / f"{'0' * 64}.minimal.iso").write_bytes(b"")
    (folder / f".{base.sha256}.minimal.iso.half").write_bytes(b"")
    used, other = (folder / f"{base.sha256}.{name}.blob" for name in ("a", "b"))
    for blob in (used, other):
        blob.write_bytes(b"")
    forget_others(folder, {base.sha256}, {used})
    assert {path.name for path in folder.iterdir()} == {f"{base.sha256}.minimal.iso", used.name}


def test_a_base_without_a_recipe_has_no_minimal_image(tmp_path: Path) -> None:
    assert minimal_of(base_in(tmp_path, BY_NAME["2021-09"]), tmp_path / "minimal") is None


def test_a_minimal_image_that_cannot_be_kept_says_why(tmp_path: Path) -> None:
    (tmp_path / "minimal").write_bytes(b"a file, where a folder is needed")
    with pytest.raises(BaseError, match="cannot be kept"):
        minimal_of(base_in(tmp_path), tmp_path / "minimal")
