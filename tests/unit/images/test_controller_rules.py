"""What is decided without an API: which image is chosen, what the status says, how long it is served, where bases come from."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from image_room import NEW, build_payload, damage, largest_blob
from ramdisk_parts import ROOTFS_URL, agent_settings, base_in, saved

from ingot.api.meta import Condition
from ingot.api.preprovisioningimage import (
    ConditionReason,
    NetworkDataStatus,
    PreprovisioningImageSpec,
    PreprovisioningImageStatus,
)
from ingot.api.wire import status_patch
from ingot.images.controller.choosing import Choice, choose
from ingot.images.controller.journal import Journal
from ingot.images.controller.publishing import Publisher
from ingot.images.controller.sources import FileSource, PayloadSource, SourceError
from ingot.images.controller.statuses import (
    Built,
    Refused,
    condition_of,
    next_look,
    status_of,
)
from ingot.images.controller.stock import ALL, Stock
from ingot.images.ramdisk import Base, BaseError, RamdiskMaker
from ingot.images.region import Region
from ingot.images.server import Image, Names, Shelf
from live_images import LABEL

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
BUILT = Built(
    format="initrd",
    architecture="x86_64",
    network=NetworkDataStatus(name="net", version="7"),
    image_url="https://a/images/x/initrd.img",
    kernel_url="https://a/images/k/vmlinuz",
    kernel_params="ignition.firstboot",
    version="coreos-1",
)
REFUSED = Refused(reason=ConditionReason.MISSING_NETWORK_DATA, message="NetworkData secret not found")
NOTHING = PreprovisioningImageStatus()


def summary(status: PreprovisioningImageStatus) -> dict[str, tuple[str, str, int | None]]:
    return {one.type: (one.status, one.reason, one.observed_generation) for one in status.conditions}


# Choosing


@pytest.fixture
def maker(tmp_path: Path) -> RamdiskMaker:
    return RamdiskMaker(base_in(tmp_path), agent_settings(), rootfs_url=ROOTFS_URL)


@pytest.mark.parametrize(
    ("formats", "architecture", "chosen"),
    [
        (["iso", "initrd"], "x86_64", "iso"),
        (["initrd", "iso"], "x86_64", "initrd"),
        (["initrd"], "", "initrd"),
        ([], "x86_64", "No acceptable image format supported"),
        (["iso"], "riscv64", "Architecture not supported: riscv64; there are images for x86_64."),
    ],
)
def test_which_image_is_chosen(maker: RamdiskMaker, formats: list, architecture: str, chosen: str) -> None:  # type: ignore[type-arg]
    spec = PreprovisioningImageSpec(accept_formats=formats, architecture=architecture)
    found = choose(spec, Stock({"x86_64": maker}), ours="x86_64")
    if isinstance(found, Choice):
        assert (found.format, found.maker) == (chosen, maker)
    else:
        assert found.message.startswith(chosen)
        assert found.reason == ConditionReason.CONFIGURATION_ERROR


@pytest.mark.parametrize(
    ("troubles", "told"),
    [
        ({}, ""),
        ({"x86_64": "damaged"}, "damaged"),
        ({"aarch64": "damaged"}, ""),
        ({ALL: "not there"}, "not there"),
        ({ALL: "not there", "x86_64": "damaged"}, "damaged; not there"),
    ],
)
def test_what_is_wrong_with_newer_images_is_told_where_it_concerns(
    maker: RamdiskMaker, troubles: dict[str, str], told: str
) -> None:
    spec = PreprovisioningImageSpec(accept_formats=["iso"], architecture="x86_64")
    found = choose(spec, Stock({"x86_64": maker}, troubles), ours="x86_64")
    assert isinstance(found, Choice)
    assert found.trouble == told
    without = choose(spec, Stock({}, troubles), ours="x86_64")
    assert isinstance(without, Refused)
    expected = f"Cannot generate image: {told}" if told else "Architecture not supported"
    assert without.message.startswith(expected)


# Statuses


def test_a_built_image_is_told() -> None:
    status = status_of(NOTHING, BUILT, generation=3, at=NOON)
    assert summary(status) == {
        "Ready": ("True", "ImageSuccess", 3),
        "Error": ("False", "ImageSuccess", 3),
    }
    assert status.image_url == BUILT.image_url
    assert status.network_data == BUILT.network
    assert status.version == "coreos-1"


def test_an_image_that_cannot_be_built_has_no_url_and_keeps_its_format() -> None:
    before = status_of(NOTHING, BUILT, generation=3, at=NOON)
    after = status_of(before, REFUSED, generation=4, at=NOON + timedelta(hours=1))
    assert summary(after) == {
        "Ready": ("False", "MissingNetworkData", 4),
        "Error": ("True", "MissingNetworkData", 4),
    }
    assert (after.image_url, after.kernel_url, after.extra_kernel_params) == ("", "", "")
    assert after.format == "initrd"
    assert status_patch(before, after) == {
        "status": {
            "imageUrl": None,
            "kernelUrl": None,
            "extraKernelParams": None,
            "version": None,
            "conditions": status_patch(NOTHING, after)["status"]["conditions"],  # type: ignore[index]
        }
    }


def test_times_move_only_when_something_turns() -> None:
    first = status_of(NOTHING, REFUSED, generation=1, at=NOON)
    later = status_of(first, REFUSED, generation=1, at=NOON + timedelta(hours=1))
    assert later == first
    assert status_patch(first, later) is None
    turned = status_of(later, BUILT, generation=1, at=NOON + timedelta(hours=2))
    assert {one.last_transition_time for one in turned.conditions} == {NOON + timedelta(hours=2)}


def test_an_image_that_is_not_the_newest_can_be_booted_and_says_so() -> None:
    stale = Built(**{**{name: getattr(BUILT, name) for name in BUILT.__slots__}, "trouble": "damaged"})
    status = status_of(NOTHING, stale, generation=1, at=NOON)
    assert summary(status)["Ready"] == ("True", "ImageSuccess", 1)
    assert summary(status)["UpToDate"] == ("False", "NewerImageUnusable", 1)
    assert "UpToDate" not in summary(status_of(status, BUILT, generation=1, at=NOON))


def test_conditions_of_others_are_kept() -> None:
    theirs = Condition(type="Theirs", status="True", reason="R", message="", last_transition_time=NOON)
    before = PreprovisioningImageStatus(conditions=[theirs])
    assert condition_of(status_of(before, BUILT, generation=1, at=NOON), "Theirs") == theirs


def test_a_long_sentence_is_cut() -> None:
    long = Refused(reason=ConditionReason.BUILD_INVALID, message="x" * 100_000)
    (message, _) = (one.message for one in status_of(NOTHING, long, generation=1, at=NOON).conditions)
    assert message == "x" * 4095 + "…"


@pytest.mark.parametrize(
    ("missing_for", "seconds"), [(0, 10), (10, 20), (60, 70), (590, 600), (3600, 600), (-50, 10)]
)
def test_the_longer_a_secret_is_missing_the_rarer_it_is_looked_for(missing_for: int, seconds: int) -> None:
    status = status_of(NOTHING, REFUSED, generation=1, at=NOON)
    assert next_look(status, NOON + timedelta(seconds=missing_for)) == seconds


# What is served, and how long


class Display:
    """A shelf, and a publisher with a linger of ten."""

    def __init__(self, folder: Path) -> None:
        self.shelf = Shelf()
        self.publisher = Publisher(
            self.shelf,
            Names(b"a key for tests, long enough"),
            "https://a:1/",
            linger=10.0,
            journal=Journal(folder),
        )

    def publish(self, owner: str, tag: str) -> str:
        return self.publisher.publish(owner, Image((b"x",), tag, NOON), "coreos.iso")

    def serves(self, url: str) -> bool:
        assert url.startswith("https://a:1/images/")
        return self.shelf.get(url.split("/")[4]) is not None


@pytest.fixture
def shop(tmp_path: Path) -> Display:
    return Display(tmp_path)


def test_an_image_that_is_no_longer_advertised_lingers_and_goes(shop: Display) -> None:
    old, new = shop.publish("h1", "a"), shop.publish("h1", "b")
    assert old != new
    shop.publisher.settle("h1", new, now=0.0)
    shop.publisher.tidy(now=9.9)
    assert shop.serves(old)
    shop.publisher.tidy(now=10.0)
    assert not shop.serves(old)
    assert shop.serves(new)


def test_an_image_that_is_advertised_again_stays(shop: Display) -> None:
    old, new = shop.publish("h1", "a"), shop.publish("h1", "b")
    shop.publisher.settle("h1", new, now=0.0)
    assert shop.publish("h1", "a") == old
    shop.publisher.settle("h1", old, now=5.0)
    shop.publisher.tidy(now=14.0)
    assert shop.serves(old)
    assert shop.serves(new)
    shop.publisher.tidy(now=15.0)
    assert shop.serves(old)
    assert not shop.serves(new)


def test_until_it_is_settled_everything_of_an_owner_is_served(shop: Display) -> None:
    urls = [shop.publish("h1", tag) for tag in "abc"]
    shop.publisher.tidy(now=1e9)
    assert all(map(shop.serves, urls))
    shop.publisher.settle("h1", "", now=0.0)
    shop.publisher.tidy(now=1e9)
    assert not any(map(shop.serves, urls))


def test_which_files_are_being_read(shop: Display) -> None:
    path = Path("/a")
    url = shop.publisher.publish("h1", Image((b"x", Region(path, 0, 1)), "a", NOON), "coreos.iso")
    assert shop.publisher.reads(path)
    assert not shop.publisher.reads(Path("/b"))
    shop.publisher.settle("h1", "", now=0.0)
    assert shop.publisher.reads(path)
    shop.publisher.tidy(now=10.0)
    assert not shop.publisher.reads(path)
    assert not shop.serves(url)


def test_what_lies_in_a_file_that_is_not_what_it_was_does_not_linger(shop: Display) -> None:
    spoilt, whole = (Image((Region(Path(path), 0, 1),), path[1:], NOON) for path in ("/a", "/b"))
    urls = [shop.publisher.publish("h1", image, "coreos.iso") for image in (spoilt, whole)]
    shop.publisher.distrust(Path("/a"))
    shop.publisher.tidy(now=0.0)
    assert shop.serves(urls[0])  # it is still advertised
    shop.publisher.settle("h1", "", now=0.0)
    shop.publisher.tidy(now=0.0)
    assert [shop.serves(url) for url in urls] == [False, True]
    shop.publisher.trust(Path("/a"))
    shop.publisher.publish("h1", spoilt, "coreos.iso")
    shop.publisher.settle("h1", "", now=0.0)
    shop.publisher.tidy(now=0.0)
    assert shop.serves(urls[0])


def test_what_lingers_already_goes_too_and_another_image_in_the_same_file_does_not_save_it(
    shop: Display,
) -> None:
    old, new = (Image((Region(Path("/a"), 0, 1),), tag, NOON) for tag in ("old", "new"))
    urls = [shop.publisher.publish("h1", image, "coreos.iso") for image in (old, new)]
    shop.publisher.settle("h1", "", now=0.0)
    shop.publisher.distrust(Path("/a"))
    assert not shop.publisher.serves("h1", urls[0])
    shop.publisher.trust(Path("/a"))
    shop.publisher.publish("h1", new, "coreos.iso")
    assert [shop.publisher.serves("h1", url) for url in urls] == [False, True]
    shop.publisher.tidy(now=0.0)
    assert [shop.serves(url) for url in urls] == [False, True]


def test_what_an_owner_leaves_behind_goes_at_once_and_others_keep_theirs(shop: Display) -> None:
    mine, old, other = shop.publish("h1", "a"), shop.publish("h1", "b"), shop.publish("h2", "a")
    shop.publisher.settle("h1", mine, now=0.0)
    shop.publisher.forget("h1")
    assert [shop.serves(url) for url in (mine, old, other)] == [False, False, True]
    assert mine != other
    shop.publisher.forget("nobody")


# Where bases come from


def test_a_payload_is_known_by_its_digest_and_by_where_it_is(tmp_path: Path) -> None:
    source = PayloadSource(build_payload(tmp_path / "a"), tmp_path / "made")
    found = source.look()
    assert found.identity == source.look().identity
    (base,) = found.load().values()
    assert isinstance(base, Base)
    assert base.version == LABEL
    build_payload(tmp_path / "a", NEW)
    assert source.look().identity != found.identity


def test_one_architecture_that_is_damaged_does_not_keep_the_other_from_being_used(tmp_path: Path) -> None:
    source = PayloadSource(build_payload(tmp_path / "a", also=True), tmp_path / "made")
    path = source.look().payload.images["aarch64"].iso.path
    assert largest_blob(tmp_path / "a").parent == path.parent
    damage(path)
    loaded = source.look().load()
    assert isinstance(loaded["x86_64"], Base)
    assert isinstance(loaded["aarch64"], BaseError)
    assert "damaged" in str(loaded["aarch64"])


def test_a_payload_that_is_none_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="ingot release mirror"):
        PayloadSource(tmp_path / "nothing", tmp_path).look()
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="cannot be used"):
        PayloadSource(tmp_path / "empty", tmp_path).look()


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["ipa.iso"], {"x86_64": "ipa.iso"}),
        (["ipa.iso", "ipa_aarch64.iso"], {"x86_64": "ipa.iso", "aarch64": "ipa_aarch64.iso"}),
        (["ipa.x86_64.iso", "ipa.iso"], {"x86_64": "ipa.x86_64.iso"}),
        (["ipa.ppc64le.iso"], {"ppc64le": "ipa.ppc64le.iso"}),
        (["other.iso"], {}),
    ],
)
def test_iso_files_are_found_by_their_names(tmp_path: Path, names: list[str], found: dict[str, str]) -> None:
    for name in names:
        saved(tmp_path, name=name)
    source = FileSource(tmp_path / "ipa.iso", None, "x86_64", tmp_path / "made")
    if not found:
        with pytest.raises(SourceError, match="DEPLOY_ISO"):
            source.look()
        return
    assert {architecture: seen.path.name for architecture, seen in source.look().files.items()} == found


def test_iso_files_for_other_architectures_are_looked_for_in_the_shared_folder(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    saved(tmp_path, name="ipa.iso")
    saved(tmp_path / "shared", name="ipa_aarch64.iso")
    found = FileSource(tmp_path / "ipa.iso", tmp_path / "shared", "x86_64", tmp_path / "made").look()
    assert set(found.files) == {"x86_64", "aarch64"}


def test_an_iso_file_that_changes_is_another_one_and_is_hashed(tmp_path: Path) -> None:
    path = saved(tmp_path, name="ipa.iso")
    source = FileSource(path, None, "x86_64", tmp_path / "made")
    before = source.look()
    base = before.load()["x86_64"]
    assert isinstance(base, Base)
    assert base.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    saved(tmp_path, label=NEW, name="new.iso").replace(path)
    after = source.look()
    assert after.identity != before.identity
    # Who read the old one still does.
    with base.iso.open() as file:
        assert hashlib.sha256(file.read()).hexdigest() == base.sha256
    assert not after.has_replaced(base)


def test_an_iso_file_that_is_written_over_is_not_the_old_one_any_more(tmp_path: Path) -> None:
    path = saved(tmp_path, name="ipa.iso")
    source = FileSource(path, None, "x86_64", tmp_path / "made")
    base = source.look().load()["x86_64"]
    assert isinstance(base, Base)
    path.write_bytes(path.read_bytes() + b"more")
    assert source.look().has_replaced(base)


def test_where_a_file_can_have_no_second_name_it_is_used_under_its_own(tmp_path: Path) -> None:
    path = saved(tmp_path, name="ipa.iso")
    (tmp_path / "made").write_bytes(b"no folder")
    base = FileSource(path, None, "x86_64", tmp_path / "made").look().load()["x86_64"]
    assert isinstance(base, Base)
    assert base.iso.path == path


def test_a_file_that_is_no_live_image_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ipa.iso"
    path.write_bytes(bytes(100_000))
    error = FileSource(path, None, "x86_64", tmp_path / "made").look().load()["x86_64"]
    assert isinstance(error, BaseError)
    assert "not a live image of CoreOS" in str(error)
