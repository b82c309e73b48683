"""What the server answers, over real connections: the same bytes as a copy on disk would have, and what HTTP says of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_serving import A, Client, Got, image_of, materialised, noise, serving

from ingot.formats.coreos import Patch
from ingot.images.region import Region
from ingot.images.server import Image, Shelf, patched

SIZE = 300_000


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """An image inside a larger file, with three patches, one of them mostly zeros."""
    path = tmp_path_factory.mktemp("base") / "layer"
    path.write_bytes(noise(SIZE + 1000))
    patches = [
        Patch(0, b"at the start"),
        Patch(100_000, b"area" + bytes(70_000)),
        Patch(SIZE - 5, b"ending"[:5]),
    ]
    return image_of(patched(Region(path, 500, SIZE), patches))


@pytest.fixture(scope="module")
def whole(image: Image) -> bytes:
    return materialised(image.pieces)


@pytest.fixture(scope="module")
def port(image: Image) -> Iterator[int]:
    shelf = Shelf()
    shelf.put(A, image)
    with serving(shelf) as port:
        yield port


@pytest.fixture(scope="module")
def client(port: int) -> Iterator[Client]:
    with Client(port) as client:
        yield client


def test_an_image_is_what_a_copy_would_be(client: Client, whole: bytes) -> None:
    got = client.get()
    assert (got.status, len(got.body)) == (200, SIZE)
    assert got.body == whole


@pytest.mark.parametrize(
    "target", [f"/images/{A}/coreos.iso", f"/images/{A}?x=/y", f"http://h:1/images/{A}/%2e"]
)
def test_the_file_name_is_decoration(client: Client, whole: bytes, target: str) -> None:
    assert client.get(target).body == whole


def test_head_says_the_same_without_the_bytes(client: Client) -> None:
    headed, got = client.get(method="HEAD"), client.get()
    assert headed.body == b""
    assert headed.fields | {"date": ""} == got.fields | {"date": ""}
    assert headed.fields["content-length"] == str(SIZE)
    assert headed.fields["accept-ranges"] == "bytes"
    assert headed.fields["last-modified"] == "Wed, 04 Mar 2026 05:06:07 GMT"


@given(start=st.integers(0, SIZE - 1), length=st.integers(1, SIZE))
def test_any_range_is_what_a_copy_would_have_there(
    client: Client, whole: bytes, start: int, length: int
) -> None:
    got = client.get(range=f"bytes={start}-{start + length - 1}")
    expected = whole[start : start + length]
    assert (got.status, got.body) == (206, expected)
    assert got.fields["content-range"] == f"bytes {start}-{start + len(expected) - 1}/{SIZE}"


@given(length=st.integers(1, 2 * SIZE))
def test_the_last_bytes_can_be_asked_for(client: Client, whole: bytes, length: int) -> None:
    assert client.get(range=f"bytes=-{length}").body == whole[-min(length, SIZE) :]


@given(
    parts=st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, 500)), min_size=2, max_size=16),
)
def test_several_ranges_come_in_several_parts(
    client: Client, whole: bytes, parts: list[tuple[int, int]]
) -> None:
    got = client.get(range="bytes=" + ", ".join(f"{start}-{start + length - 1}" for start, length in parts))
    kind, _, boundary = got.fields["content-type"].partition("; boundary=")
    assert (got.status, kind) == (206, "multipart/byteranges")
    before, *found, after = got.body.split(f"--{boundary}".encode())
    assert (before, after) == (b"", b"--\r\n")
    for part, (start, length) in zip(found, parts, strict=True):
        head, _, content = part.partition(b"\r\n\r\n")
        expected = whole[start : start + length]
        assert f"Content-Range: bytes {start}-{start + len(expected) - 1}/{SIZE}".encode() in head
        assert content == expected + b"\r\n"


@pytest.mark.parametrize(
    "asked",
    [
        f"bytes={SIZE}-",
        "bytes=-0",
        "bytes=5-2",
        "bytes=a-b",
        "bytes=",
        "bytes=1-2-3",
        "bytes=" + "9" * 30 + "-",
    ],
)
def test_a_range_that_is_not_there_is_refused_with_the_size(client: Client, asked: str) -> None:
    got = client.get(range=asked)
    assert (got.status, got.fields["content-range"]) == (416, f"bytes */{SIZE}")


@pytest.mark.parametrize(
    "asked",
    ["lines=1-2", "bytes", "bytes=" + ",".join(f"{n}-{n}" for n in range(17)), f"bytes=0-,0-{SIZE},1-"],
    ids=["another unit", "no unit", "very many", "more than there is"],
)
def test_a_range_that_nobody_needs_gets_everything(client: Client, asked: str) -> None:
    got = client.get(range=asked)
    assert (got.status, len(got.body)) == (200, SIZE)


def test_head_knows_no_ranges(client: Client) -> None:
    assert client.get(method="HEAD", range="bytes=0-1").fields["content-length"] == str(SIZE)


class TestConditions:
    """Each with the tag and the date of the image as it is, and with others."""

    DATE = "Wed, 04 Mar 2026 05:06:07 GMT"
    EARLIER = "Wed, 04 Mar 2026 05:06:06 GMT"
    LATER = "Thu, 05 Mar 2026 05:06:07 GMT"

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    @pytest.mark.parametrize(
        ("fields", "status"),
        [
            ({"if_none_match": "TAG"}, 304),
            ({"if_none_match": 'W/TAG, "x"'}, 304),
            ({"if_none_match": "*"}, 304),
            ({"if_none_match": '"x"'}, 200),
            ({"if_none_match": '"x"', "if_modified_since": LATER}, 200),
            ({"if_modified_since": DATE}, 304),
            ({"if_modified_since": LATER}, 304),
            ({"if_modified_since": EARLIER}, 200),
            ({"if_modified_since": "yesterday"}, 200),
            ({"if_match": "TAG"}, 200),
            ({"if_match": "*"}, 200),
            ({"if_match": "W/TAG"}, 412),
            ({"if_match": '"x"'}, 412),
            ({"if_unmodified_since": DATE}, 200),
            ({"if_unmodified_since": EARLIER}, 412),
        ],
    )
    def test_is_it_still_the_same(
        self, client: Client, image: Image, method: str, fields: dict[str, str], status: int
    ) -> None:
        asked = {name: value.replace("TAG", f'"{image.etag}"') for name, value in fields.items()}
        got = client.get(method=method, **asked)
        assert got.status == status
        if status == 304:
            assert got.fields["etag"] == f'"{image.etag}"'
            assert "content-length" not in got.fields

    @pytest.mark.parametrize(
        ("condition", "status"),
        [
            ("TAG", 206),
            (DATE, 206),
            ("W/TAG", 200),
            ('"x"', 200),
            (LATER, 200),
            (EARLIER, 200),
            ("TAG, TAG", 200),
        ],
    )
    def test_a_transfer_goes_on_only_with_the_same_image(
        self, client: Client, image: Image, condition: str, status: int
    ) -> None:
        said = condition.replace("TAG", f'"{image.etag}"')
        assert client.get(range="bytes=10-19", if_range=said).status == status


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/images",
        "/images/",
        f"/images/{A[:-1]}",
        f"/images/{A}/a/b",
        f"/images/{A[::-1]}",
        f"//images/{A}",
        "*",
        f"/images/{A}x",
    ],
)
def test_what_is_not_there_gives_no_hint(client: Client, target: str) -> None:
    got = client.get(target)
    assert (got.status, got.body) == (404, b"There is nothing here.\n")
    assert set(got.fields) == {"server", "date", "connection", "content-type", "content-length"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "X"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    got = client.get(method=method)
    assert (got.status, got.fields["allow"]) == (405, "GET, HEAD")


def test_until_all_images_are_there_nobody_is_told_that_one_is_not(image: Image) -> None:
    shelf, ready = Shelf(), False
    with serving(shelf, ready=lambda: ready) as port, Client(port) as client:
        for target in (f"/images/{A}", "/images/other"):
            got = client.get(target)
            assert (got.status, got.fields["retry-after"]) == (503, "5")
        shelf.put(A, image)
        assert client.get(range="bytes=0-9").status == 206
        assert client.get("/images/other").status == 503
        ready = True
        assert client.get("/images/other").status == 404


def test_an_image_can_be_replaced_and_dropped(image: Image) -> None:
    shelf = Shelf()
    with serving(shelf) as port, Client(port) as client:
        assert client.get().status == 404
        shelf.put(A, image)
        assert client.get(range="bytes=0-3").body == b"at t"
        shelf.put(A, image_of((b"another",)))
        got = client.get(range="bytes=0-3", if_range=f'"{image.etag}"')
        assert (got.status, got.body) == (200, b"another")
        shelf.drop(A)
        assert client.get().status == 404


def test_an_image_of_no_bytes_is_an_image() -> None:
    shelf = Shelf()
    shelf.put(A, image_of(()))
    with serving(shelf) as port, Client(port) as client:
        assert (client.get().status, client.get().body) == (200, b"")
        assert client.get(range="bytes=0-").status == 416


def test_a_base_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "base"
    path.write_bytes(noise(1000))
    shelf = Shelf()
    shelf.put(A, image_of((Region(path, 0, 1000),)))
    path.unlink()
    with serving(shelf) as port, Client(port) as client:
        got: Got = client.get()
        assert (got.status, got.body) == (500, b"The image cannot be read.\n")
        assert client.get(method="HEAD").status == 500
        path.write_bytes(noise(1000))
        assert client.get().body == noise(1000)


def test_a_base_that_was_cut_short_ends_the_connection_and_sends_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "base"
    path.write_bytes(noise(100_000))
    shelf = Shelf()
    shelf.put(A, image_of((Region(path, 0, 200_000), b"the end")))
    with serving(shelf) as port, Client(port) as client, pytest.raises(EOFError):
        client.get()
