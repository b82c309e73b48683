"""Minimal images: the recipe leads to the image it was made from, and to nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.coreos import LiveIso, Patch
from ingot.formats.coreos.bincode import Reader, number, sized
from ingot.formats.coreos.minimal import Piece, Recipe, minimal_changes, parse_recipe, recipe_of
from ingot.formats.iso9660 import Iso
from live_images import BY_NAME, DEFAULT, GENERATIONS, LABEL, NEWEST, Generation, live_image, minimal_image

with_recipe = pytest.mark.parametrize(
    "generation",
    [each for each in GENERATIONS if each.recipe and each.arguments],
    ids=lambda generation: generation.name,
)
WITHOUT_LABEL = DEFAULT.replace(f"coreos.liveiso={LABEL} ", "")


@cache
def image_of(generation: Generation) -> bytes:
    return live_image(generation)


def opened(image: bytes) -> LiveIso:
    return LiveIso(io.BytesIO(image))


def patched(image: bytes, patches: list[Patch]) -> bytes:
    made = bytearray(image)
    for patch in patches:
        made[patch.offset : patch.offset + len(patch.content)] = patch.content
    return bytes(made)


def minimal_of(live: LiveIso) -> bytes:
    return b"".join(recipe_of(live).chunks(live.iso))


@with_recipe
def test_the_recipe_leads_to_the_image_that_it_was_made_from(generation: Generation) -> None:
    assert minimal_of(opened(image_of(generation))) == minimal_image(generation)


@with_recipe
def test_a_minimal_image_looks_elsewhere_for_its_root_file_system_also_after_a_reset(
    generation: Generation,
) -> None:
    minimal = minimal_of(opened(image_of(generation)))
    changed = patched(minimal, minimal_changes(opened(minimal), "https://images.example/rootfs.img"))
    live = opened(changed)
    assert live.arguments == f"{WITHOUT_LABEL} coreos.live.rootfs_url=https://images.example/rootfs.img"
    assert live.default_arguments == WITHOUT_LABEL
    assert opened(patched(changed, live.reset())).arguments == WITHOUT_LABEL
    assert opened(patched(minimal, minimal_changes(opened(minimal), None))).arguments == WITHOUT_LABEL


def test_the_list_of_argument_areas_keeps_its_length_and_its_places() -> None:
    minimal = minimal_of(opened(image_of(NEWEST)))
    before = Iso(io.BytesIO(minimal), plain_names=True).read("COREOS/KARGS.JSO")
    after = Iso(io.BytesIO(patched(minimal, minimal_changes(opened(minimal), None))), plain_names=True)
    content = after.read("COREOS/KARGS.JSO")
    assert len(content) == len(before)
    assert json.loads(content) == {**json.loads(before), "default": WITHOUT_LABEL}


@pytest.mark.parametrize("url", ["http://a/b c", " http://a", "http://a\n", "", "http://a\x7f"])
def test_an_address_with_blanks_is_refused(url: str) -> None:
    with pytest.raises(FormatError, match="forbidden whitespace found"):
        minimal_changes(opened(minimal_image()), url)


def test_a_customized_image_is_refused() -> None:
    live = opened(image_of(NEWEST))
    for patches in (live.embedding({"config.ign": b"{}"}), live.arguing("other")):
        with pytest.raises(UnsupportedFormat, match="Cannot operate on ISO with embedded customizations"):
            recipe_of(opened(patched(image_of(NEWEST), patches)))


def test_an_image_without_a_recipe_says_so() -> None:
    with pytest.raises(UnsupportedFormat, match="does not support extracting a minimal ISO"):
        recipe_of(opened(image_of(BY_NAME["2021-09"])))


def test_an_image_that_was_changed_is_found_out_by_its_digest() -> None:
    changed = image_of(NEWEST).replace(b"set timeout=5", b"set timeout=9")
    with pytest.raises(FormatError, match="wrong final digest"):
        minimal_of(opened(changed))


def recipe(pieces: list[tuple[int, int, int]], filler: bytes = b"", digest: bytes = bytes(32)) -> bytes:
    table = b"".join(number(part) for piece in pieces for part in piece)
    head = b"MINISO\0\0" + number(1) + sized(b"x") + number(len(pieces))
    return head + table + digest + sized(lzma.compress(filler))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (bytes(100), "does not begin with MINISO"),
        (b"MINISO\0\0" + number(2) + sized(b"later"), "version 2 \\(made by later\\)"),
        (b"MINISO\0\0" + number(1) + b"\xfe" * 20, "more than 64 bits"),
        (b"MINISO\0\0" + number(1) + sized(b"x") + number(0), "names 0 files"),
        (b"MINISO\0\0" + number(1) + sized(b"x") + number(1 << 60), "names 1152921504606846976 files"),
        (recipe([(1, 1, 10)])[:-40], "cut short"),
        (recipe([(1, 1, 5000), (2, 9, 10)]), "overlap"),
        (recipe([(5, 1, 10), (2, 9, 10)]), "overlap"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        parse_recipe(data)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (recipe([(1, 1 << 40, 10)], bytes(2048)), "cut short"),
        (recipe([(1, 20, 10)], bytes(100)), "ends too early"),
        (recipe([(0, 20, 10)], bytes(64 << 20)), "larger than the full one"),
        (recipe([(0, 0, 300_000), (147, 0, 300_000)]), "larger than the full one"),
    ],
)
def test_a_recipe_that_does_not_fit_its_image_ends_in_an_error(made: bytes, sentence: str) -> None:
    full = opened(image_of(NEWEST)).iso
    with pytest.raises(FormatError, match=sentence):
        for _ in parse_recipe(made).chunks(full):
            pass


def test_a_filler_that_is_cut_short_is_an_error() -> None:
    full = opened(image_of(NEWEST)).iso
    whole = hashlib.shake_256(b"x").digest(4000)
    for packed in (lzma.compress(whole)[:2000], b"no xz at all"):
        cut = Recipe((Piece(2048, 0, 10),), bytes(32), packed)
        with pytest.raises(FormatError, match=r"cut short|damaged"):
            list(cut.chunks(full))


@given(st.lists(st.one_of(st.integers(0, 1 << 64 - 1), st.integers(0, 70_000)), max_size=20))
def test_numbers_survive_the_round_trip(values: list[int]) -> None:
    reader = Reader(b"".join(number(value) for value in values))
    assert [reader.number() for _ in values] == values
