"""Editing kernel arguments: the order of the changes, whole words only, and the laws that hold for any of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.formats import FormatError
from ingot.formats.coreos import ArgumentChanges

WORDS = st.text("abc=.,0", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("foo bar foobar", ArgumentChanges(delete=["foo"]), "bar foobar"),
        ("foo bar foobar", ArgumentChanges(delete=["foobar"]), "foo bar"),
        ("foo bar foobar", ArgumentChanges(delete=["foo bar"]), "foobar"),
        ("foo bar foobar", ArgumentChanges(delete=["bar", "foo"]), "foobar"),
        ("foo bar", ArgumentChanges(delete=["missing"]), "foo bar"),
        ("foo=1 bar", ArgumentChanges(delete=["  foo=1 "]), "bar"),
        ("foo", ArgumentChanges(append=["bar  ", "baz"]), "foo bar baz"),
        ("", ArgumentChanges(append=["bar"]), "bar"),
        ("a=1 b", ArgumentChanges(replace=["a=1=2"]), "a=2 b"),
        ("a=1 b", ArgumentChanges(replace=["a=3=2"]), "a=1 b"),
        (
            "a=1 a=1 b",
            ArgumentChanges(replace=["a=1=2"]),
            "a=2 a=1 b",
        ),  # a blank stands between two words, not for both
        ("x", ArgumentChanges(append=["k=old"], replace=["k=old=new"]), "x k=new"),
        ("x y", ArgumentChanges(append=["x"], delete=["x"]), "y x"),
    ],
)
def test_changes_are_made_in_their_order_to_whole_words(
    before: str, changes: ArgumentChanges, after: str
) -> None:
    assert changes.applied_to(before) == after


@pytest.mark.parametrize("wrong", ["a", "a=b", "=b=c", "a==c", "a=b=", "a=b=c=d", ""])
def test_a_replacement_has_three_parts(wrong: str) -> None:
    with pytest.raises(FormatError, match="format should be: KEY=OLD=NEW"):
        ArgumentChanges(replace=[wrong]).applied_to("a=b")


@pytest.mark.parametrize("wrong", ["a\nreboot", "a\0b", "a\x1bb"])
def test_a_control_character_is_refused(wrong: str) -> None:
    with pytest.raises(FormatError, match="control character"):
        ArgumentChanges(append=[wrong]).applied_to("")
    with pytest.raises(FormatError, match="control character"):
        ArgumentChanges(replace=[f"k=v={wrong}"]).applied_to("k=v")


@given(st.lists(WORDS, max_size=6), WORDS)
def test_what_is_appended_to_others_and_deleted_again_leaves_them_as_they_were(
    words: list[str], word: str
) -> None:
    before = " ".join(each for each in words if each != word)
    appended = ArgumentChanges(append=[word]).applied_to(before)
    assert appended.split() == [*before.split(), word]
    assert ArgumentChanges(delete=[word]).applied_to(appended) == before


def test_no_change_is_falsy() -> None:
    assert not ArgumentChanges()
    assert ArgumentChanges(delete=["a"])
