"""The bytes of a watch: lines out of any chunks, news out of lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_scripted_api import WIDGET, Widget

from ingot.api.meta import Key
from ingot.kube import ApiError, Gone, Unavailable, Unreadable
from ingot.kube.watching import Bookmark, EventReader, Lines, Put, Removed


def reader() -> EventReader[Widget]:
    return EventReader(WIDGET, doing="watch Widgets")


def line(event: str, body: object) -> bytes:
    return json.dumps({"type": event, "object": body}).encode()


@given(
    content=st.lists(st.binary(max_size=30).map(lambda part: part.replace(b"\n", b"")), max_size=12),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    rest=st.sampled_from([b"", b"half a li"]),
)
def test_lines_do_not_depend_on_how_the_bytes_are_cut(content: list[bytes], cuts: list[int], rest: bytes):
    whole = b"".join(part + b"\n" for part in content) + rest
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    lines = Lines()
    found: list[bytes] = []
    for start, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007 - pairs of edges, read as from and to
        found += lines.feed(whole[start:end])
    assert found == [part for part in content if part]


def test_a_line_without_end_is_refused():
    lines = Lines(longest=1000)
    for _ in range(10):
        assert lines.feed(b"x" * 100) == []
    with pytest.raises(Unreadable, match="longer than 1000 bytes"):
        lines.feed(b"x")


@pytest.mark.parametrize("event", ["ADDED", "MODIFIED"])
def test_an_object_that_is_there_is_put(event: str):
    news = reader().read(line(event, {"metadata": {"name": "a"}, "spec": {"size": 3}, "unknown": [1]}))
    assert isinstance(news, Put)
    assert (news.object.spec.size, news.object.kind) == (3, "Widget")


def test_an_object_that_went_is_removed_at_the_version_of_its_end():
    body = {
        "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"},
        "spec": {"size": "unreadable"},
    }
    assert reader().read(line("DELETED", body)) == Removed(Key("n", "a"), "7")


def test_a_bookmark_is_only_a_version():
    assert reader().read(line("BOOKMARK", {"metadata": {"resourceVersion": "9"}})) == Bookmark("9")


def test_a_kind_of_event_that_is_not_known_is_passed_over():
    assert reader().read(line("SPARKLE", {"metadata": {}})) is None


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"code": 410, "reason": "Expired", "message": "old"}, Gone),
        ({"code": 500, "reason": "InternalError", "message": "ouch"}, Unavailable),
        ({"message": "no code"}, Unavailable),
        ({"code": 400, "reason": "BadRequest", "message": "no"}, ApiError),
    ],
)
def test_an_error_event_is_raised_as_what_it_says(body: object, error: type[ApiError]):
    with pytest.raises(error) as caught:
        reader().read(line("ERROR", body))
    assert type(caught.value) is error
    assert str(caught.value).startswith("watch Widgets: ")


@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b'{"type": 3}', b'{"type":"DELETED","object":[]}'])
def test_what_is_no_event_is_unreadable(content: bytes):
    with pytest.raises(Unreadable):
        reader().read(content)
