"""Reading requests: what is one is understood in one way, and what could be understood in two is refused."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from image_serving import A, Client, image_of, serving

from ingot.images.server import Shelf
from ingot.images.server.ranges import MOST_PARTS, Unsatisfiable, parts_wanted
from ingot.images.server.request import LARGEST_HEAD, MOST_FIELDS, Refused, parsed

START = b"GET /x HTTP/1.1\r\nHost: h\r\n"
TOKENS = st.text("!#$%&'*+-.^_`|~abcXYZ019", min_size=1, max_size=12)
VALUES = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=30
)


@given(
    method=TOKENS,
    target=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=30),
    fields=st.dictionaries(TOKENS.map(lambda name: f"x-{name}".lower()), VALUES, max_size=10),
)
def test_what_is_a_request_is_understood(method: str, target: str, fields: dict[str, str]) -> None:
    fields = {name: "".join(char for char in value if char.isprintable()) for name, value in fields.items()}
    lines = "".join(f"{name.upper()}: \t{value} \r\n" for name, value in fields.items())
    request = parsed(f"{method} {target} HTTP/1.1\r\nHost: h\r\n{lines}".encode("latin-1"))
    assert (request.method, request.target) == (method, target)
    assert dict(request.fields) == {"host": "h"} | {
        name: value.strip(" \t") for name, value in fields.items()
    }


@given(st.binary(max_size=200))
@example(b"")
@example(b"GET / HTTP/1.1")
def test_whatever_comes_is_a_request_or_refused(head: bytes) -> None:
    with contextlib.suppress(Refused):
        parsed(head)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /x HTTP/1.1\r\n",
        b"GET /x HTTP/1.1\r\nHost: a\r\nHost: a\r\n",
        b"GET /x HTTP/1.1\r\nHost: a b\r\n",
        b"GET /x HTTP/2.0\r\nHost: h\r\n",
        b"GET /x\r\nHost: h\r\n",
        b"GET  /x HTTP/1.1\r\nHost: h\r\n",
        b"GET /a b HTTP/1.1\r\nHost: h\r\n",
        b"GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n",
        b" GET /x HTTP/1.1\r\nHost: h\r\n",
        b"GET /x HTTP/1.1\nHost: h\r\n",
        START + b"A: b\n",
        START + b"A: b\rC: d\r\n",
        START + b"A : b\r\n",
        START + b" A: b\r\n",
        START + b"A: b\r\n folded\r\n",
        START + b": b\r\n",
        START + b"A\r\n",
        START + b"A: \x00\r\n",
        START + b"A: \x7f\r\n",
        START + b"A: b\r\n" * MOST_FIELDS,
    ],
)
def test_what_could_mean_two_things_is_refused(head: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parsed(head)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 5\r\n",
        b"Content-Length: 0\r\nContent-Length: 5\r\n",
        b"Content-Length: 0\r\nContent-Length: 0\r\n",
        b"Content-Length: +0\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length:\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"transfer-encoding:\r\nContent-Length: 0\r\n",
    ],
)
def test_no_request_has_a_body(lines: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parsed(START + lines)
    assert refused.value.status == 413


@pytest.mark.parametrize(
    ("version", "connection", "stays"),
    [
        ("1.1", "", True),
        ("1.1", "close", False),
        ("1.1", "x, Close", False),
        ("1.0", "", False),
        ("1.0", "Keep-Alive", True),
        ("1.0", "keep-alive, close", False),
    ],
)
def test_who_wants_to_stay(version: str, connection: str, stays: bool) -> None:
    line = f"Connection: {connection}\r\n" if connection else ""
    assert parsed(f"GET /x HTTP/{version}\r\nHost: h\r\n{line}".encode()).stays is stays


def test_reading_takes_no_longer_for_a_head_that_is_made_to_be_slow() -> None:
    head = START + b"".join(b"a: " + b" " * 100 + b"\r\n" for _ in range(MOST_FIELDS - 2)) + b"\x00"
    began = time.process_time()
    for _ in range(100):
        with pytest.raises(Refused):
            parsed(head)
    assert (
        time.process_time() - began < 10
    )  # it is a few milliseconds; an expression that tries again and again never ends


@given(st.text(max_size=60), st.integers(0, 1000))
def test_whatever_a_range_says_parts_lie_within_the_image(header: str, size: int) -> None:
    for said in (header, f"bytes={header}"):
        try:
            parts = parts_wanted(said, size)
        except Unsatisfiable:
            continue
        for start, length in parts or ():
            assert 0 <= start < start + length <= size


@given(
    st.lists(st.from_regex(r"\A(\d{1,4}-\d{0,4}|-\d{1,4})\Z"), min_size=1, max_size=20), st.integers(1, 2000)
)
def test_parts_are_few_and_together_no_more_than_the_image(specs: list[str], size: int) -> None:
    try:
        parts = parts_wanted("bytes=" + ",".join(specs), size)
    except Unsatisfiable:
        return
    if parts is not None:
        assert 1 <= len(parts) <= MOST_PARTS
        assert sum(length for _, length in parts) <= size


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    shelf = Shelf()
    shelf.put(A, image_of((b"the whole image",)))
    with serving(shelf) as port:
        yield port


def test_nothing_of_what_follows_a_refused_request_is_answered(port: int) -> None:
    smuggled = f"GET /images/{A} HTTP/1.1\r\nHost: h\r\n\r\n".encode()
    with Client(port) as client:
        client.say(START + b"Transfer-Encoding: chunked\r\n\r\n" + smuggled)
        got = client.hear()
        assert (got.status, got.fields["connection"]) == (413, "close")
        assert client.ended()


def test_requests_that_come_together_are_answered_one_after_the_other(port: int) -> None:
    one = f"GET /images/{A} HTTP/1.1\r\nHost: h\r\nRange: bytes=%d-%d\r\n\r\n"
    with Client(port) as client:
        client.say("".join(one % (at, at) for at in range(15)).encode())
        assert b"".join(client.hear().body for _ in range(15)) == b"the whole image"


def test_a_request_may_come_byte_by_byte_after_an_empty_line(port: int) -> None:
    with Client(port) as client:
        for byte in f"\r\nGET /images/{A} HTTP/1.1\r\nHost: h\r\n\r\n".encode():
            client.say(bytes([byte]))
        assert client.hear().body == b"the whole image"


@pytest.mark.parametrize("line", [b"a", b"a: b\r\n"], ids=["one long line", "very many lines"])
def test_a_head_without_end_is_refused(port: int, line: bytes) -> None:
    with Client(port) as client:
        with contextlib.suppress(ConnectionError):  # it may have been refused before all of it is said
            client.say(START + line * (4 * LARGEST_HEAD // len(line)))
        assert client.hear().status == 431


def test_a_client_of_http_1_0_is_answered_and_left(port: int) -> None:
    with Client(port) as client:
        client.say(f"GET /images/{A} HTTP/1.0\r\n\r\n".encode())
        assert client.hear().body == b"the whole image"
        assert client.ended()


@given(st.binary(min_size=1, max_size=300))
def test_whatever_is_said_the_server_goes_on(port: int, said: bytes) -> None:
    with Client(port) as client, contextlib.suppress(OSError, EOFError):
        client.say(said)
    with Client(port) as client:
        assert client.get(range="bytes=0-2").body == b"the"
