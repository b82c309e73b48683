"""What images are made of: regions, patches, archives behind a base, names, the shelf."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from image_serving import NAMES, A, image_of, materialised, noise

from ingot.formats.coreos import Patch
from ingot.images.region import Region
from ingot.images.server import Image, Names, Shelf, appended, entity_tag, patched
from ingot.images.server.names import NAME, shown

SIZE = 5000
WHEN = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Region:
    path = tmp_path_factory.mktemp("pieces") / "file"
    path.write_bytes(noise(SIZE + 100))
    return Region(path, 50, SIZE)


class TestARegion:
    @given(
        st.lists(
            st.tuples(st.sampled_from(["seek", "end", "on", "read"]), st.integers(0, 2 * SIZE)), max_size=8
        )
    )
    def test_reads_like_a_file_of_its_own(self, base: Region, steps: list[tuple[str, int]]) -> None:
        same = io.BytesIO(base.path.read_bytes()[50 : 50 + SIZE])
        with base.open() as view:
            for what, number in steps:
                match what:
                    case "seek":
                        assert view.seek(number) == same.seek(number)
                    case "end":
                        back = -(number % SIZE)
                        assert view.seek(back, os.SEEK_END) == same.seek(back, os.SEEK_END)
                    case "on":
                        assert view.seek(number, os.SEEK_CUR) == same.seek(number, os.SEEK_CUR)
                    case _:
                        assert view.read(number) == same.read(number)
                assert view.tell() == same.tell()

    def test_has_parts_within_itself_alone(self, base: Region) -> None:
        assert base.part(10, 20) == Region(base.path, 60, 20)
        for offset, length in ((-1, 2), (0, SIZE + 1), (SIZE, 1), (0, -1)):
            with pytest.raises(ValueError, match="not all within"):
                base.part(offset, length)
        with pytest.raises(ValueError, match="no file has"):
            Region(base.path, -1, 5)

    def test_whole_is_as_long_as_the_file(self, base: Region) -> None:
        assert Region.whole(base.path) == Region(base.path, 0, SIZE + 100)

    def test_views_do_not_disturb_each_other(self, base: Region) -> None:
        with base.open() as one, base.open() as other:
            one.seek(100)
            assert other.read(5) == base.path.read_bytes()[50:55]
            with pytest.raises(ValueError, match="before the beginning"):
                other.seek(-1)


@given(
    st.lists(st.tuples(st.integers(0, SIZE), st.binary(max_size=40), st.integers(0, 2000)), max_size=6),
    st.integers(0, SIZE),
    st.integers(0, SIZE),
)
@example([(0, b"", 0), (0, b"x", 0)], 0, 0)
def test_patches_lie_over_the_base_and_parts_are_parts_of_that(
    base: Region, given_patches: list[tuple[int, bytes, int]], start: int, length: int
) -> None:
    patches, whole, free = [], bytearray(materialised((base,))), 0
    for offset, content, zeros in sorted(given_patches):
        patch = Patch(offset, content + bytes(zeros))
        end = offset + len(patch.content)
        if free <= offset and end <= SIZE:
            patches.append(patch)
            whole[offset:end] = patch.content
            free = end
    image = image_of(patched(base, patches[::-1]))
    assert materialised(image.pieces) == whole
    assert image.size == SIZE
    length = min(length, SIZE - start)
    assert materialised(tuple(image.part(start, length))) == whole[start : start + length]


def test_patches_that_overlap_or_stick_out_are_refused(base: Region) -> None:
    with pytest.raises(ValueError, match="overlap at 12"):
        patched(base, [Patch(12, b"b"), Patch(10, b"abc")])
    with pytest.raises(ValueError, match="behind the end"):
        patched(base, [Patch(SIZE - 1, b"ab")])


def test_the_zeros_of_areas_are_kept_once_for_all_hosts(base: Region) -> None:
    one = patched(base, [Patch(0, b"a" + bytes(4000))])
    other = patched(base, [Patch(0, b"bc" + bytes(3999))])
    kept = {id(piece): len(piece) for image in (one, other) for piece in image if isinstance(piece, bytes)}
    assert sum(kept.values()) < 4500


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 4096])
def test_an_archive_comes_after_a_base_that_is_padded(base: Region, length: int) -> None:
    whole = materialised(appended(base.part(0, length), b"archive"))
    assert whole == materialised((base.part(0, length),)) + bytes(-length % 4) + b"archive"


class TestAnEntityTag:
    def test_changes_with_what_is_in_the_image_and_with_nothing_else(self, base: Region) -> None:
        elsewhere = Region(Path("elsewhere"), 7, SIZE)
        tags = [
            entity_tag(base, "1" * 64, patched(base, [Patch(10, b"abc")])),
            entity_tag(base, "1" * 64, patched(base, [Patch(10, b"abd")])),
            entity_tag(base, "1" * 64, patched(base, [Patch(11, b"abc")])),
            entity_tag(base, "2" * 64, patched(base, [Patch(10, b"abc")])),
            entity_tag(base, "1" * 64, (base.part(0, 100),)),
            entity_tag(base, "1" * 64, (base.part(100, 100),)),
        ]
        assert len(set(tags)) == len(tags)
        assert entity_tag(elsewhere, "1" * 64, patched(elsewhere, [Patch(10, b"abc")])) == tags[0]

    def test_vouches_for_its_base_alone(self, base: Region) -> None:
        with pytest.raises(ValueError, match="is not the base"):
            entity_tag(base, "1" * 64, (Region(Path("another"), 0, 1),))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"etag": 'a"b'}, "entity tag"),
        ({"etag": ""}, "entity tag"),
        ({"modified": datetime(2026, 1, 2)}, "time zone"),
        ({"media_type": "a/b\r\nX: y"}, "media type"),
    ],
)
def test_an_image_that_is_wrong_cannot_be_built(wrong: dict[str, object], why: str) -> None:
    right: dict[str, object] = {"etag": "a", "modified": WHEN, "media_type": "a/b"}
    with pytest.raises(ValueError, match=why):
        Image((b"x",), **{**right, **wrong})


def test_an_image_is_of_a_whole_second() -> None:
    given_time = datetime(2026, 1, 2, 2, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert Image((), "a", given_time).modified == WHEN


def test_a_part_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="not all within"):
        Image((b"abc",), "a", WHEN).part(1, 3)


class TestNames:
    def test_are_the_same_after_a_restart_and_with_another_key_others(self, tmp_path: Path) -> None:
        first = Names.kept_in(tmp_path / "state" / "key").name("rack", "host", "x86_64")
        assert Names.kept_in(tmp_path / "state" / "key").name("rack", "host", "x86_64") == first
        assert Names.kept_in(tmp_path / "other" / "key").name("rack", "host", "x86_64") != first
        assert NAME.fullmatch(first)

    @given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
    def test_differ_where_the_parts_do(self, one: list[str], other: list[str]) -> None:
        assert (NAMES.name(*one) == NAMES.name(*other)) == (one == other)

    def test_need_a_key(self) -> None:
        with pytest.raises(ValueError, match="guessed"):
            Names(b"short")

    def test_are_shown_by_their_beginning(self) -> None:
        assert shown(A) == f"{A[:6]}…"
        assert shown("no name at all") == "…"


def test_a_shelf_takes_only_names_that_nobody_guesses() -> None:
    shelf = Shelf()
    for name in ("coreos.iso", "", "a" * 31, "a" * 33, "ä" * 32, f"{'a' * 31}/"):
        with pytest.raises(ValueError, match="guessing"):
            shelf.put(name, Image((), "a", WHEN))
    shelf.drop(A)
    assert len(shelf) == 0
