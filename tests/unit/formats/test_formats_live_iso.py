"""Live images of every generation: what is embedded is read back, removing it restores the bytes, hostile ones are refused."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.formats import DoesNotFit, FormatError, UnsupportedFormat
from ingot.formats.coreos import IGNITION, NETWORK, ArgumentChanges, LiveIso, Patch
from ingot.formats.initrd import Members, pack
from ingot.formats.iso9660 import Iso, build_iso
from live_images import AREA, BY_NAME, DEFAULT, GENERATIONS, NEWEST, WHEN, Generation, live_image, noise

CONFIG = {IGNITION: b'{"ignition": {"version": "3.3.0"}}'}
KEYFILES = {f"{NETWORK}/a.nmconnection": b"[connection]\nid=a\n", f"{NETWORK}/b.nmconnection": b"id=b\n"}
every_generation = pytest.mark.parametrize("generation", GENERATIONS, ids=lambda generation: generation.name)
with_arguments = pytest.mark.parametrize(
    "generation", [each for each in GENERATIONS if each.arguments], ids=lambda generation: generation.name
)


@cache
def image_of(generation: Generation) -> bytes:
    return live_image(generation)


def opened(image: bytes) -> LiveIso:
    return LiveIso(io.BytesIO(image))


def patched(image: bytes, patches: list[Patch]) -> bytes:
    made = bytearray(image)
    for patch in patches:
        made[patch.offset : patch.offset + len(patch.content)] = patch.content
    assert len(made) == len(image)
    return bytes(made)


def edited(image: bytes, path: str, change: Callable[[bytes], bytes]) -> bytes:
    """The image with a file of it changed; what is written is as long as what it replaces."""
    entry = Iso(io.BytesIO(image), plain_names=True).entry(path)
    content = change(image[entry.offset : entry.offset + entry.size])
    return patched(image, [Patch(entry.offset, content.ljust(entry.size))])


@every_generation
def test_an_image_as_published_holds_nothing(generation: Generation) -> None:
    live = opened(image_of(generation))
    assert live.embedded == {}
    assert live.ignition is None
    assert live.ignition_area.length == AREA
    assert not live.customized
    assert live.reset() == []
    assert live.features.live_initrd_network == generation.network


@every_generation
def test_what_is_embedded_is_read_back_and_removing_it_restores_the_bytes(generation: Generation) -> None:
    original = image_of(generation)
    once = patched(original, opened(original).embedding(CONFIG))
    assert opened(once).ignition == CONFIG[IGNITION]
    assert opened(once).network == {}
    assert opened(once).customized
    both = patched(once, opened(once).embedding({**opened(once).embedded, **KEYFILES}))
    assert opened(both).embedded == CONFIG | KEYFILES
    assert opened(both).network == KEYFILES
    assert patched(both, opened(both).embedding({})) == original
    assert patched(both, opened(both).reset()) == original


@with_arguments
def test_arguments_are_changed_in_all_places_and_restored(generation: Generation) -> None:
    original = image_of(generation)
    live = opened(original)
    assert live.arguments == live.default_arguments == DEFAULT
    changes = ArgumentChanges(append=["console=ttyS0"], delete=["ignition.firstboot"])
    wanted = changes.applied_to(live.arguments)
    changed = patched(original, live.arguing(wanted))
    assert opened(changed).arguments == wanted
    assert opened(changed).default_arguments == DEFAULT
    assert opened(changed).customized
    assert changed.count(b"console=ttyS0") == (1 if generation.architecture != "x86_64" else 2)
    assert patched(changed, opened(changed).reset()) == original
    assert patched(changed, opened(changed).arguing(DEFAULT)) == original


@with_arguments
def test_the_longest_arguments_fit_and_one_more_character_does_not(generation: Generation) -> None:
    live = opened(image_of(generation))
    assert live.argument_areas is not None
    room = live.argument_areas.length - len(DEFAULT) - 2
    longest = f"{DEFAULT} {'x' * room}"
    assert opened(patched(image_of(generation), live.arguing(longest))).arguments == longest
    with pytest.raises(DoesNotFit, match="kargs too large for area"):
        live.arguing(longest + "x")
    with pytest.raises(DoesNotFit, match="kargs too large for area"):
        live.arguing(f"{DEFAULT} {'é' * (room // 2 + 1)}")


def test_the_bytes_of_an_area_are_text_end_and_filling() -> None:
    original = image_of(NEWEST)
    for patch in opened(original).arguing("a b"):
        assert patch.content == b"a b\n".ljust(len(DEFAULT) + 1024, b"#")
    s390x = opened(image_of(BY_NAME["2023-07-s390x"]))
    assert [patch.content for patch in s390x.arguing("a b")] == [b"a b".ljust(896, b"\0")]


@pytest.mark.parametrize("name", ["2020-09", "2023-03-s390x"])
def test_an_image_from_before_the_argument_areas_says_so(name: str) -> None:
    live = opened(image_of(BY_NAME[name]))
    for ask in (lambda: live.arguments, lambda: live.default_arguments, lambda: live.arguing("a")):
        with pytest.raises(UnsupportedFormat, match="No karg embed areas found"):
            ask()
    assert not live.customized


@given(st.dictionaries(st.text("abc/", min_size=1, max_size=6), st.binary(max_size=400), max_size=3))
@settings(max_examples=30)
def test_any_members_survive_and_nothing_of_them_is_left_afterwards(members: Members) -> None:
    members = {f"{NETWORK}/{number}": content for number, content in enumerate(members.values())}
    original = image_of(NEWEST)
    first = patched(original, opened(original).embedding(CONFIG | {"long": noise("long", 5000)}))
    second = patched(first, opened(first).embedding(members))
    assert opened(second).embedded == members
    # Every patch covers the whole area: the image does not depend on what was in it before.
    assert second == patched(original, opened(original).embedding(members))
    assert patched(second, opened(second).reset()) == original


def test_what_is_there_already_is_not_written_again() -> None:
    original = image_of(NEWEST)
    live = opened(patched(original, opened(original).embedding(CONFIG)))
    assert live.embedding(CONFIG) == []
    assert live.arguing(DEFAULT) == []


def test_an_archive_of_another_tool_stays_as_it_is_when_its_members_stay() -> None:
    original = image_of(NEWEST)
    foreign = pack(CONFIG, limit=0).ljust(AREA, b"\0")
    image = patched(original, [Patch(opened(original).ignition_area.offset, foreign)])
    assert opened(image).embedded == CONFIG
    assert opened(image).embedding(CONFIG) == []


def test_a_config_that_does_not_fit_is_refused_and_one_that_only_xz_makes_fit_is_taken() -> None:
    live = opened(image_of(NEWEST))
    with pytest.raises(DoesNotFit, match=r"Compressed initramfs is too large: [0-9]+ > 262144"):
        live.embedding({IGNITION: noise("large", AREA)})
    # Two equal halves further apart than gzip looks back.
    half = noise("half", AREA - 60_000)
    (patch,) = live.embedding({IGNITION: half + half})
    assert patch.content[:6] == b"\xfd7zXZ\0"
    assert opened(patched(image_of(NEWEST), [patch])).ignition == half + half


def test_an_image_that_was_cut_short_says_so() -> None:
    with pytest.raises(FormatError, match="ISO image is incomplete"):
        opened(image_of(NEWEST)[: 300 << 10])


def test_another_iso_image_is_not_recognized() -> None:
    plain = build_iso({"/a": b"x" * 40_000}, label="OTHER", made_at=WHEN)
    with pytest.raises(UnsupportedFormat, match="Unrecognized CoreOS ISO image"):
        opened(plain)
    with pytest.raises(FormatError, match="not an ISO 9660 image"):
        opened(bytes(100_000))


def test_what_the_json_leaves_out_may_be_said_to_be_nothing() -> None:
    said = live_image(NEWEST, {"/coreos/igninfo.json": {"offset": None, "length": None}})
    assert opened(said).ignition_area.length == AREA


def test_the_oldest_header_alone_leads_to_the_area() -> None:
    image = bytearray(image_of(BY_NAME["2020-09"]))
    area = opened(bytes(image)).ignition_area
    renamed = bytes(image).replace(b"IGNITION.IMG;1", b"SOMEELSE.IMG;1")
    assert opened(renamed).ignition_area == area


def test_the_header_counts_only_where_there_is_no_json() -> None:
    image = bytearray(image_of(BY_NAME["2021-12"]))
    areas = opened(bytes(image)).argument_areas
    image[32672:32680] = bytes(8)
    assert opened(bytes(image)).argument_areas == areas
    only_header = image_of(BY_NAME["2021-12"]).replace(b"KARGS.JSO;1", b"OTHER.JSO;1")
    assert opened(only_header).argument_areas == areas
    assert opened(bytes(image).replace(b"KARGS.JSO;1", b"OTHER.JSO;1")).argument_areas is None


def test_areas_with_different_arguments_are_an_error_that_a_reset_mends() -> None:
    original = image_of(NEWEST)
    first, *_ = opened(original).arguing("something else")
    torn = patched(original, [first])
    with pytest.raises(FormatError, match="kargs don't match at all offsets"):
        _ = opened(torn).arguments
    assert patched(torn, opened(torn).reset()) == original


def test_an_area_with_half_an_archive_is_an_error_that_a_reset_mends() -> None:
    original = image_of(NEWEST)
    (patch,) = opened(original).embedding(CONFIG)
    torn = patched(original, [Patch(patch.offset, patch.content[:60])])
    with pytest.raises(FormatError, match="`iso reset` empties it"):
        _ = opened(torn).embedded
    assert patched(torn, opened(torn).reset()) == original


KARGS, INFO = "/coreos/kargs.json", "/coreos/igninfo.json"
GRUB = {"path": "EFI/fedora/grub.cfg", "offset": 44}


@pytest.mark.parametrize(
    ("path", "changes", "sentence"),
    [
        (INFO, {"file": "images/none.img"}, "names a file images/none.img"),
        (INFO, {"file": "images"}, "is a directory"),
        (INFO, {"file": "../../../etc/passwd"}, "Unrecognized CoreOS ISO image"),
        (INFO, {"offset": 1 << 40}, "which has 262144 bytes"),
        (INFO, {"offset": -4096}, "at byte -4096"),
        (INFO, {"length": 1 << 40}, "which has 262144 bytes"),
        (INFO, {"length": -1}, "is said to be -1 bytes"),
        (INFO, {"length": 0}, "is said to be 0 bytes"),
        (INFO, {"file": 7}, "not what is expected"),
        (KARGS, {"size": 1 << 20}, "they have 1 to 2048"),
        (KARGS, {"size": 0}, "they have 1 to 2048"),
        (KARGS, {"size": 20}, "more than their areas"),
        (KARGS, {"files": []}, "No karg embed areas found; corrupted"),
        (KARGS, {"files": [{**GRUB, "offset": 1 << 30}]}, "at byte 1073741824 of EFI/FEDORA/GRUB.CFG"),
        (KARGS, {"files": [GRUB, {**GRUB, "offset": 60}]}, "overlap"),
        (KARGS, {"files": [GRUB, GRUB]}, "overlap"),
        (KARGS, {"files": [{"path": "images/ignition.img", "offset": 0}]}, "overlap"),
        (INFO, {"file": "coreos/kargs.jso"}, "overlap"),
        (INFO, {"file": "coreos/miniso.dat"}, "overlap"),
        (KARGS, {"files": [{**GRUB, "pad": "##"}]}, "not one character"),
        (KARGS, {"files": [{**GRUB, "end": "é"}]}, "not one character"),
    ],
)
def test_an_image_that_lies_about_its_areas_is_refused(
    path: str, changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(FormatError, match=sentence):
        opened(live_image(NEWEST, {path: changes}))


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (struct.pack("<8sQQ6Q", b"coreKarg", 1 << 40, 0, *[0] * 6), "they have 1 to 2048"),
        (struct.pack("<8sQQ6Q", b"coreKarg", 1000, 1 << 50, *[70_000] * 6), "cut short"),
        (struct.pack("<8sQQ6Q", b"coreKarg", 1000, 40_000, *[0] * 6), "No karg embed areas found"),
        (struct.pack("<8sQQ6Q", b"coreKarg", 1000, 40_000, 1 << 50, *[0] * 5), "is said to be 1000 bytes"),
        (struct.pack("<8sQQ6Q", b"coreKarg", 1000, 40_000, 16, *[0] * 5), "is said to be 1000 bytes"),
        (struct.pack("<8sQQ6Q", b"coreKarg", 1000, 40_000, 32_800, *[0] * 5), "overlap"),
    ],
)
def test_a_header_that_lies_is_refused(header: bytes, sentence: str) -> None:
    image = image_of(BY_NAME["2021-01"])
    with pytest.raises(FormatError, match=sentence):
        opened(image[:32672] + header + image[32744:])


def test_arguments_that_are_not_utf8_are_an_error() -> None:
    image = edited(
        image_of(NEWEST),
        "EFI/FEDORA/GRUB.CFG",
        lambda content: content.replace(b"mitig", b"\xff\xfe\xfd\xfc\xfb"),
    )
    with pytest.raises(FormatError, match="not UTF-8"):
        _ = opened(image).arguments


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"live-initrd-network": "yes"}', b"\xff"])
def test_features_that_cannot_be_read_are_an_error(content: bytes) -> None:
    with pytest.raises(FormatError, match=r"features\.json"):
        _ = opened(edited(image_of(NEWEST), "COREOS/FEATURES.JSO", lambda _: content)).features


@settings(max_examples=150)
@given(st.data())
def test_damage_never_ends_in_anything_but_a_format_error(data: st.DataObject) -> None:
    image = bytearray(image_of(data.draw(st.sampled_from(GENERATIONS))))
    structures = st.one_of(st.integers(32_000, 72_000), st.integers(72_000, len(image) - 1))
    for _ in range(data.draw(st.integers(1, 8))):
        image[data.draw(structures)] = data.draw(st.integers(0, 255))
    try:
        live = opened(bytes(image))
        live.embedding({**live.embedded, **CONFIG})
        live.arguing(live.arguments + " a")
        live.reset()
        _ = live.features
    except FormatError:
        pass
