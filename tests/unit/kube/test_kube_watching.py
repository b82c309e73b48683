"""The bytes of a watch: lines out of any chunks, news out of lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kube_scripted_api import WIDGET, Widget

from ingot.api.meta import Key
from ingot.kube import ApiError, BadRequest, Gone, Unavailable, Unreadable
from ingot.kube.watching import Bookmark, EventReader, Lines, Listed, News, Put, Removed


def reader() -> EventReader[Widget]:
    return EventReader(WIDGET, doing="watch Widgets")


def line(event: str, body: object) -> bytes:
    return json.dumps({"type": event, "object": body}).encode() + b"\n"


def only(lines: bytes) -> News[Widget]:
    (news,) = reader().read(lines)
    return news


@given(
    content=st.lists(st.binary(max_size=30).map(lambda part: part.replace(b"\n", b"")), max_size=12),
    cuts=st.lists(st.integers(0, 400), max_size=12),
    rest=st.sampled_from([b"", b"half a li"]),
)
def test_lines_do_not_depend_on_how_the_bytes_are_cut(content: list[bytes], cuts: list[int], rest: bytes):
    whole = b"".join(part + b"\n" for part in content) + rest
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    lines = Lines()
    found = b""
    for start, end in zip(edges, edges[1:], strict=False):  # noqa: RUF007 - pairs of edges, read as from and to
        fed = lines.feed(whole[start:end])
        assert not fed or fed.endswith(b"\n")
        found += fed
    assert found == whole.removesuffix(rest)


def test_a_line_without_end_is_refused():
    lines = Lines(longest=1000)
    for _ in range(10):
        assert lines.feed(b"x" * 100) == b""
    with pytest.raises(Unreadable, match="longer than 1000 bytes"):
        lines.feed(b"x")


def test_an_object_whose_text_is_none_is_not_there_and_hides_no_other():
    fits = line("ADDED", {"metadata": {"name": "a", "resourceVersion": "7"}})
    broken = (
        b'{"type": "ADDED", "object": {"metadata": {"name": "b", "resourceVersion": "8"}, "spec": "\xff"}}\n'
    )
    put, removed = reader().read(fits + broken)
    assert isinstance(put, Put)
    assert removed == Removed(Key("", "b"), "8")


@pytest.mark.parametrize("odd", [b'"\xff"', b"[" * 5000 + b"]" * 5000], ids=["no text", "too deep"])
def test_what_cannot_be_decoded_is_an_error_of_ours(odd: bytes):
    with pytest.raises(Unreadable, match="no watch event"):
        only(b'{"type": "ADDED", "object": {"metadata": {"name": %s}}}\n' % odd)


@pytest.mark.parametrize("event", ["ADDED", "MODIFIED"])
def test_an_object_that_is_there_is_put(event: str):
    news = only(line(event, {"metadata": {"name": "a"}, "spec": {"size": 3}, "unknown": [1]}))
    assert isinstance(news, Put)
    assert (news.object.spec.size, news.object.kind) == (3, "Widget")


def test_an_object_that_went_is_removed_at_the_version_of_its_end():
    body = {
        "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"},
        "spec": {"size": "unreadable"},
    }
    assert only(line("DELETED", body)) == Removed(Key("n", "a"), "7")


def test_a_bookmark_is_only_a_version():
    assert only(line("BOOKMARK", {"metadata": {"resourceVersion": "9"}})) == Bookmark("9")


def test_the_end_of_what_was_there_is_told_apart_from_other_bookmarks():
    metadata = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert only(line("BOOKMARK", {"metadata": metadata})) == Listed("9")


def test_a_kind_of_event_that_is_not_known_is_passed_over():
    assert list(reader().read(line("SPARKLE", {"metadata": {}}))) == []


def test_many_lines_are_told_in_their_order_up_to_the_error():
    def widget(name: str, size: object = 1) -> dict[str, object]:
        return {"metadata": {"name": name, "resourceVersion": "5"}, "spec": {"size": size}}

    lines = [
        line("ADDED", widget("a")),
        b"\n",
        line("MODIFIED", widget("unfit", "large")),
        line("DELETED", widget("c")),
        line("BOOKMARK", {"metadata": {"resourceVersion": "6"}}),
        line("ADDED", widget("d")),
    ]
    put, unfit, removed, bookmark, last = reader().read(b"".join(lines))
    assert isinstance(put, Put)
    assert put.object.key.name == "a"
    assert unfit == Removed(Key("", "unfit"), "5")
    assert removed == Removed(Key("", "c"), "5")
    assert bookmark == Bookmark("6")
    assert isinstance(last, Put)
    broken = reader().read(
        line("ADDED", widget("a")) + line("ERROR", {"code": 410}) + line("ADDED", widget("b"))
    )
    assert isinstance(next(broken), Put)
    with pytest.raises(Gone):
        next(broken)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"code": 410, "reason": "Expired", "message": "old"}, Gone),
        ({"code": 500, "reason": "InternalError", "message": "ouch"}, Unavailable),
        ({"message": "no code"}, Unavailable),
        ({"code": 400, "reason": "BadRequest", "message": "no"}, BadRequest),
    ],
)
def test_an_error_event_is_raised_as_what_it_says(body: object, error: type[ApiError]):
    with pytest.raises(error) as caught:
        only(line("ERROR", body))
    assert type(caught.value) is error
    assert str(caught.value).startswith("watch Widgets: ")


def test_an_error_event_can_ask_for_time():
    body = {"code": 429, "reason": "TooManyRequests", "details": {"retryAfterSeconds": 3}}
    with pytest.raises(ApiError) as caught:
        only(line("ERROR", body))
    assert caught.value.retry_after == 3.0


@pytest.mark.parametrize("content", [b"{", b"[]", b"7", b'{"type": 3}', b'{"type":"DELETED","object":[]}'])
def test_what_is_no_event_is_unreadable(content: bytes):
    with pytest.raises(Unreadable):
        only(content + b"\n")
