"""The rules of fetching, without a network: what an answer means, when to try again, which proxy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from ingot.images.fetching import Patience, Refused, Wanted
from ingot.images.fetching.answers import (
    Answer,
    Body,
    Complete,
    StartOver,
    TryLater,
    meaning,
    range_headers,
    version_in,
)
from ingot.images.fetching.patience import Tries, retry_after
from ingot.images.fetching.proxies import proxy_for
from ingot.images.fetching.requesting import shown

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ETAG = '"v1"'


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {"Content-Length": "9", "ETag": ETAG}, Body(0, 9, ETAG)),
        (200, {}, Body(0, None, None)),
        (200, {"Content-Length": "-9"}, Body(0, None, None)),
        (200, {"Content-Encoding": "identity"}, Body(0, None, None)),
        (206, {"Content-Range": "bytes 5-8/9"}, Body(5, 9, ETAG)),
        (206, {"Content-Range": "bytes 5-8/*"}, Body(5, None, ETAG)),
        (206, {"Content-Range": "bytes 5-8/9", "ETag": ETAG}, Body(5, 9, ETAG)),
        (206, {"Content-Range": "bytes 5-8/9", "ETag": '"v2"'}, StartOver()),
        (206, {"Content-Range": "bytes 4-8/9"}, StartOver()),
        (206, {"Content-Range": "bytes 5-7/9"}, StartOver()),
        (206, {"Content-Range": "bytes ٥-8/9"}, StartOver()),
        (206, {}, StartOver()),
        (416, {"Content-Range": "bytes */5"}, Complete()),
        (416, {"Content-Range": "bytes */4"}, StartOver()),
        (416, {}, StartOver()),
        (503, {"Retry-After": "7"}, TryLater("HTTP 503", 7.0)),
        (429, {}, TryLater("HTTP 429")),
    ],
)
def test_what_an_answer_means_when_five_bytes_are_there(
    status: int, headers: dict[str, str], expected: Answer
) -> None:
    assert meaning(status, headers, have=5, version=ETAG, who="x") == expected


@pytest.mark.parametrize("status", [100, 204, 206, 304, 400, 404, 416, 451, 501, 505])
def test_what_nobody_asked_for_is_refused(status: int) -> None:
    with pytest.raises(Refused, match=f"x answers HTTP {status}"):
        meaning(status, {"Content-Range": "bytes 0-8/9"}, have=0, version=None, who="x")


@given(
    st.integers(0, 1 << 40),
    st.one_of(st.none(), st.text(max_size=5)),
    st.sampled_from([200, 206, 404, 416, 500]),
    st.dictionaries(
        st.sampled_from(["Content-Range", "Content-Length", "ETag", "Last-Modified", "Retry-After"]),
        st.one_of(st.text(max_size=20), st.from_regex(r"bytes \d+-\d+/(\d+|\*)", fullmatch=True)),
    ),
)
def test_any_answer_is_refused_or_continues_exactly_where_our_bytes_end(
    have: int, version: str | None, status: int, headers: dict[str, str]
) -> None:
    try:
        answer = meaning(status, headers, have=have, version=version, who="x")
    except Refused:
        return
    if isinstance(answer, Body):
        assert answer.offset in (0, have)
        assert answer.total is None or answer.total >= answer.offset


def test_a_range_is_asked_for_only_with_the_version_it_is_of() -> None:
    assert range_headers(5, ETAG) == {"Range": "bytes=5-", "If-Range": ETAG}
    assert range_headers(5, None) == range_headers(0, ETAG) == {}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"ETag": '"a"', "Last-Modified": "then"}, '"a"'),
        ({"ETag": 'W/"a"', "Last-Modified": "then"}, "then"),
        ({"ETag": 'W/"a"'}, None),
        ({}, None),
    ],
)
def test_a_weak_etag_tells_no_versions_apart(headers: dict[str, str], expected: str | None) -> None:
    assert version_in(headers) == expected


def test_waits_double_within_bounds_and_are_drawn_at_random() -> None:
    patience = Patience(retries=9, first=1.0, longest=10.0)
    assert [patience.pause(n, None, 1.0) for n in range(1, 7)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert [patience.pause(n, None, 0.0) for n in range(1, 4)] == [0.5, 1.0, 2.0]
    assert patience.pause(10, None, 1.0) is None


def test_a_server_that_asks_for_more_time_gets_it_within_reason() -> None:
    patience = Patience(first=1.0)
    assert patience.pause(1, 30.0, 1.0) == 30.0
    assert patience.pause(1, 0.0, 1.0) == 1.0
    assert patience.pause(1, 1e9, 1.0) == 600.0


def test_infinite_patience_does_not_end() -> None:
    assert Patience(retries=None).pause(10**9, None, 1.0) == 60.0


def test_progress_makes_up_for_failures_and_standing_still_does_not() -> None:
    tries = Tries(Patience(retries=2, first=0.0))
    reached = [0, 10, 10, 20, 20, 5]
    assert [tries.pause(at) is not None for at in reached] == [True, True, True, True, True, False]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("120", 120.0),
        (" 3 ", 3.0),
        ("²", None),
        ("-1", None),
        ("Fri, 02 Jan 2026 03:04:35 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:00 GMT", 0.0),
    ],
)
def test_a_wish_to_wait_is_a_number_or_a_date(value: str | None, expected: float | None) -> None:
    assert retry_after(value, NOW) == expected


def test_a_date_without_a_zone_is_taken_as_one_of_utc() -> None:
    later = (NOW + timedelta(seconds=9)).strftime("%a, %d %b %Y %H:%M:%S -0000")
    assert retry_after(later, NOW) == 9.0


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("https://a.example/", {}, None),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://a.example/", {"https_proxy": "p:3128", "HTTPS_PROXY": "http://q:1"}, "http://p:3128"),
        ("https://a.example/", {"ALL_PROXY": "https://p"}, "https://p"),
        ("https://a.example/", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://a.example/", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("http://a.example/", {"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, None),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b.example, .example"}, None),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "no_proxy": "EXAMPLE"}, None),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*.example"}, None),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample,a.exam"}, "http://p:1"),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example:443"}, None),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example:80"}, "http://p:1"),
        ("https://10.1.2.3/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://10.1.2.3/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.1.2.3:443"}, None),
        ("https://11.1.2.3/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://p:1"),
        ("https://[fd00::1]/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "fd00::/8"}, None),
        ("https://[fd00::1]:8443/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1]:8443"}, None),
        ("https://[fd00::1]/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1]:8443"}, "http://p:1"),
        ("https://a.example/", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": " , .,"}, "http://p:1"),
    ],
)
def test_which_proxy_a_url_goes_through(url: str, environment: dict[str, str], expected: str | None) -> None:
    found = proxy_for(URL(url), environment)
    assert (found and str(found.url).rstrip("/")) == expected


def test_a_password_of_a_proxy_goes_into_a_header() -> None:
    found = proxy_for(URL("https://a.example/"), {"HTTPS_PROXY": "http://u:p%40ss@p:1"})
    assert found is not None
    assert str(found.url).rstrip("/") == "http://p:1"
    assert found.headers == {"Proxy-Authorization": "Basic dTpwQHNz"}


@pytest.mark.parametrize(
    "proxy", ["socks5://p:1", "http://", "http://u:secret@p:99999", "ftp://u:secret@p:1"]
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(proxy: str) -> None:
    with pytest.raises(Refused, match="HTTPS_PROXY") as caught:
        proxy_for(URL("https://a.example/"), {"HTTPS_PROXY": proxy})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "/a", "a\0b"])
def test_a_name_that_leads_elsewhere_is_not_built(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a file"):
        Wanted(url="https://a.example/", sha256="0" * 64, name=name)


@pytest.mark.parametrize("sha256", ["", "0" * 63, "A" * 64, "0" * 64 + "\n"])
def test_nothing_is_wanted_without_a_digest(sha256: str) -> None:
    with pytest.raises(ValueError, match="no sha256"):
        Wanted(url="https://a.example/", sha256=sha256, name="a")


def test_a_version_that_is_no_text_is_not_asked_with() -> None:
    assert range_headers(5, '"a"\r\nX: y') == {}


def test_urls_are_shown_without_what_is_secret_in_them() -> None:
    assert shown("https://u:p@a.example:8443/b%20c?key=k#f") == "https://a.example:8443/b%20c"
    assert shown("https://u:p@a.example:port/") == "a URL that is none"
