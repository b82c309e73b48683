"""Files come whole and verified, or not at all, whatever servers and lines do."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from unruly_server import Cuts, File, Lies, Proxy, Says, Stalls, UnrulyServer, proxying, unruly

from ingot.images.fetching import (
    Absent,
    Fetched,
    Fetcher,
    FetchSettings,
    NotVerified,
    Patience,
    Progress,
    Refused,
    Unreachable,
    Unwritable,
    Wanted,
    write_whole,
)
from ingot.trust import Authority
from moving_files import sizes_in

CONTENT = hashlib.shake_256(b"an image").digest(3_000_000)
OTHER = hashlib.shake_256(b"another image").digest(3_000_000)
QUICK = Patience(retries=3, first=0.001)
LEFT = ".image.iso.part"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[UnrulyServer]:
    async with unruly() as made:
        made.arrived = lambda: max(sizes_in(tmp_path, LEFT), default=0)
        made.files["/image.iso"] = File(CONTENT)
        yield made


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wanted(server: UnrulyServer, content: bytes = CONTENT, path: str = "/image.iso") -> Wanted:
    return Wanted(url=server.url(path), sha256=sha256(content), name="image.iso")


async def fetch(what: Wanted, folder: Path, told: list[Progress] | None = None, **rules: object) -> Fetched:
    settings = FetchSettings(**{"patience": QUICK, **rules})
    async with Fetcher(settings) as fetcher:
        return await fetcher.fetch(what, folder, None if told is None else told.append)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_comes_whole_and_its_progress_is_told(server: UnrulyServer, tmp_path: Path) -> None:
    told: list[Progress] = []
    folder = tmp_path / "new" / "folder"
    fetched = await fetch(wanted(server), folder, told)
    assert fetched == Fetched(path=folder / "image.iso", sha256=sha256(CONTENT), size=len(CONTENT))
    assert fetched.path.read_bytes() == CONTENT
    assert names(folder) == ["image.iso"]
    done = [progress.done for progress in told]
    assert done == sorted(done)
    assert told[-1] == Progress(name="image.iso", done=len(CONTENT), total=len(CONTENT))
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_a_file_that_is_there_is_not_fetched_again(server: UnrulyServer, tmp_path: Path) -> None:
    (tmp_path / "image.iso").write_bytes(CONTENT)
    (tmp_path / LEFT).write_bytes(b"left over")
    fetched = await fetch(wanted(server), tmp_path)
    assert fetched.reused
    assert server.asked == []
    assert names(tmp_path) == ["image.iso"]


async def test_another_file_under_its_name_is_replaced_when_the_right_one_is_whole(
    server: UnrulyServer, tmp_path: Path
) -> None:
    (tmp_path / "image.iso").write_bytes(OTHER)
    server.faults = [Says(404)]
    with pytest.raises(Absent, match="the file is not there"):
        await fetch(wanted(server), tmp_path)
    assert (tmp_path / "image.iso").read_bytes() == OTHER
    await fetch(wanted(server), tmp_path)
    assert (tmp_path / "image.iso").read_bytes() == CONTENT


async def test_a_connection_that_is_cut_again_and_again_goes_on_where_it_ended(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Cuts(1_000_000), Cuts(7), Cuts(0), Cuts(1_500_000)]
    fetched = await fetch(wanted(server), tmp_path)
    assert fetched.path.read_bytes() == CONTENT
    assert [asked.range for asked in server.asked] == [
        None,
        "bytes=1000000-",
        "bytes=1000007-",
        "bytes=1000007-",
        "bytes=2500007-",
    ]
    assert server.asked[1].headers["if-range"] == server.files["/image.iso"].etag


async def test_what_an_earlier_try_left_is_used(server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Cuts(1_000_000), *[Says(503)] * 9]
    with pytest.raises(Unreachable, match=r"HTTP 503, 4 times in a row\. 1000000 bytes are kept"):
        await fetch(wanted(server), tmp_path)
    assert not (tmp_path / "image.iso").exists()
    server.faults = []
    fetched = await fetch(wanted(server), tmp_path)
    assert fetched.resumed == 1_000_000
    assert server.asked[-1].range == "bytes=1000000-"
    assert fetched.path.read_bytes() == CONTENT
    assert names(tmp_path) == ["image.iso"]


async def test_what_was_left_of_another_file_is_not_used(server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Cuts(1_000_000), *[Says(503)] * 9]
    with pytest.raises(Unreachable):
        await fetch(wanted(server), tmp_path)
    server.faults = []
    server.files["/image.iso"] = File(OTHER)
    fetched = await fetch(wanted(server, OTHER), tmp_path)
    assert (fetched.resumed, server.asked[-1].range) == (0, None)
    assert fetched.path.read_bytes() == OTHER


async def test_bytes_that_were_damaged_on_disk_are_fetched_again(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Cuts(1_000_000), *[Says(503)] * 9]
    with pytest.raises(Unreachable):
        await fetch(wanted(server), tmp_path)
    with (tmp_path / LEFT).open("r+b") as file:
        file.write(b"damaged")
    server.faults = []
    fetched = await fetch(wanted(server), tmp_path)
    assert [asked.range for asked in server.asked[-2:]] == ["bytes=1000000-", None]
    assert fetched.path.read_bytes() == CONTENT


@pytest.mark.parametrize("left", [b"", CONTENT, CONTENT + b"and more"])
async def test_a_left_over_of_any_length_does_no_harm(
    left: bytes, server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Cuts(1_000_000), *[Says(503)] * 9]
    with pytest.raises(Unreachable):
        await fetch(wanted(server), tmp_path)
    (tmp_path / LEFT).write_bytes(left)
    server.faults = []
    assert (await fetch(wanted(server), tmp_path)).path.read_bytes() == CONTENT


async def test_a_file_that_changes_between_two_tries_is_begun_anew(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso"] = File(OTHER)
    server.faults = [Cuts(1_000_000), None]
    fetching = asyncio.create_task(
        fetch(wanted(server, CONTENT), tmp_path, patience=Patience(retries=3, first=0.4))
    )
    await server.was_asked(1)
    server.files["/image.iso"] = File(CONTENT)
    assert (await fetching).path.read_bytes() == CONTENT


async def test_two_versions_that_a_server_mixes_up_get_a_second_chance_and_no_more(
    server: UnrulyServer, tmp_path: Path
) -> None:
    same = '"the same"'
    middle = len(CONTENT) // 2
    ranged = {"ETag": same, "Content-Range": f"bytes {middle}-{len(OTHER) - 1}/{len(OTHER)}"}
    server.files["/image.iso"] = File(CONTENT, etag=same)
    server.faults = [Cuts(middle), Lies(206, ranged, OTHER[middle:])]
    assert (await fetch(wanted(server), tmp_path / "a")).path.read_bytes() == CONTENT
    assert len(server.asked) == 3
    again = [Cuts(middle), Lies(206, ranged, OTHER[middle:])]
    server.faults = [*again, *again, *again]
    with pytest.raises(NotVerified, match="is expected"):
        await fetch(wanted(server), tmp_path / "b")
    assert len(server.asked) == 3 + 4
    assert names(tmp_path / "b") == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Range": "bytes 5-2999999/3000000"},
        {"Content-Range": "bytes 1000000-1999999/3000000"},
        {"Content-Range": "nonsense"},
        {},
        {"ETag": '"a new one"', "Content-Range": "bytes 1000000-2999999/3000000"},
    ],
)
async def test_a_range_that_was_not_asked_for_is_not_taken(
    headers: dict[str, str], server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Cuts(1_000_000), Lies(206, headers, CONTENT[1_000_000:])]
    assert (await fetch(wanted(server), tmp_path)).path.read_bytes() == CONTENT
    assert server.asked[-1].range is None


async def test_a_server_without_ranges_is_asked_for_everything(server: UnrulyServer, tmp_path: Path) -> None:
    server.files["/image.iso"].ranges = False
    server.faults = [Cuts(2_000_000)]
    fetched = await fetch(wanted(server), tmp_path)
    assert fetched.path.read_bytes() == CONTENT


async def test_a_server_that_never_gets_further_is_given_up(server: UnrulyServer, tmp_path: Path) -> None:
    server.files["/image.iso"].ranges = False
    server.faults = [Cuts(1000)] * 50
    with pytest.raises(Unreachable, match="cut"):
        await fetch(wanted(server), tmp_path)
    assert len(server.asked) == 4


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_busy_server_is_asked_again(status: int, server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Says(status, {"Retry-After": "0"})] * 3
    assert (await fetch(wanted(server), tmp_path)).size == len(CONTENT)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 501])
async def test_a_clear_no_is_not_asked_again(status: int, server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Says(status)]
    with pytest.raises(Refused, match=f"HTTP {status}"):
        await fetch(wanted(server), tmp_path)
    assert len(server.asked) == 1
    assert names(tmp_path) == []


async def test_nobody_there_is_weather(tmp_path: Path) -> None:
    async with unruly() as server:
        gone = wanted(server)
    with pytest.raises(Unreachable, match="4 times in a row"):
        await fetch(gone, tmp_path)


async def test_a_connection_that_stalls_is_given_up_and_tried_again(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Stalls(1_000_000)]
    assert (await fetch(wanted(server), tmp_path, stall=0.3)).size == len(CONTENT)
    assert server.asked[-1].range == "bytes=1000000-"


async def test_a_file_that_takes_too_long_is_given_up_and_kept(server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Cuts(1_000_000), Stalls(100_000)]
    with pytest.raises(Unreachable, match="took more than 1 s"):
        await fetch(wanted(server), tmp_path, deadline=1.0)
    assert (tmp_path / LEFT).stat().st_size >= 1_000_000


async def test_other_bytes_are_refused_and_what_was_there_stays(server: UnrulyServer, tmp_path: Path) -> None:
    (tmp_path / "image.iso").write_bytes(b"what was there")
    with pytest.raises(NotVerified, match=sha256(CONTENT)) as caught:
        await fetch(wanted(server, OTHER), tmp_path)
    assert sha256(OTHER) in str(caught.value)
    assert (tmp_path / "image.iso").read_bytes() == b"what was there"
    assert names(tmp_path) == ["image.iso"]
    assert len(server.asked) == 1


@pytest.mark.parametrize("length", [True, False])
async def test_bytes_behind_the_end_are_refused(length: bool, server: UnrulyServer, tmp_path: Path) -> None:
    server.files["/image.iso"] = File(CONTENT + b"and more", length=length)
    with pytest.raises(NotVerified, match=f"{len(CONTENT) + 8} bytes"):
        await fetch(wanted(server), tmp_path)
    assert names(tmp_path) == []


async def test_a_range_with_more_than_it_announced_is_refused(server: UnrulyServer, tmp_path: Path) -> None:
    headers = {"Content-Range": f"bytes 1000000-{len(CONTENT) - 1}/{len(CONTENT)}"}
    server.faults = [Cuts(1_000_000), Lies(206, headers, CONTENT[1_000_000:] + b"and more")]
    with pytest.raises(Refused, match="more than the 3000000 bytes"):
        await fetch(wanted(server), tmp_path)
    assert names(tmp_path) == []


async def test_a_length_that_is_too_short_is_noticed(server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Lies(200, {"Content-Length": str(len(CONTENT) - 10)}, CONTENT)]
    with pytest.raises(NotVerified):
        await fetch(wanted(server), tmp_path)


async def test_a_file_without_a_length_that_was_cut_gets_a_second_chance(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso"].length = False
    server.faults = [Cuts(1_000_000)]
    assert (await fetch(wanted(server), tmp_path)).path.read_bytes() == CONTENT


@pytest.mark.parametrize("length", [True, False])
async def test_a_file_that_is_too_large_is_refused(
    length: bool, server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/image.iso"].length = length
    with pytest.raises(Refused, match="more than 2000000 bytes"):
        await fetch(wanted(server), tmp_path, limit=2_000_000)
    assert names(tmp_path) == []


async def test_a_file_that_the_disk_has_no_room_for_is_not_begun(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Lies(200, {"Content-Length": str(1 << 60)}, b"")]
    with pytest.raises(Unwritable, match="has room for"):
        await fetch(wanted(server), tmp_path, limit=1 << 61)


async def test_a_file_that_is_packed_on_the_way_is_refused(server: UnrulyServer, tmp_path: Path) -> None:
    server.faults = [Lies(200, {"Content-Encoding": "gzip", "Content-Length": "3"}, b"abc")]
    with pytest.raises(Refused, match="Content-Encoding"):
        await fetch(wanted(server), tmp_path)


async def test_redirects_are_followed_and_each_try_begins_at_the_first(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.files["/far/away"] = server.files.pop("/image.iso")
    hop = Says(302, {"Location": "/far/away?x=%20y"})
    server.files["/far/away?x=%20y"] = server.files["/far/away"]
    server.faults = [hop, Cuts(1_000_000), hop, None]
    assert (await fetch(wanted(server), tmp_path)).path.read_bytes() == CONTENT
    assert [asked.path for asked in server.asked] == ["/image.iso", "/far/away?x=%20y"] * 2
    assert server.asked[-1].range == "bytes=1000000-"


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("ftp://127.0.0.1/x", "of the kind ftp"),
        ("file:///etc/passwd", "of the kind file"),
        ("", "without saying where"),
        ("/image.iso", "one redirect to the next"),
    ],
)
async def test_redirects_that_lead_nowhere_are_refused(
    location: str, why: str, server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Says(302, {"Location": location})] * 20
    with pytest.raises(Refused, match=why):
        await fetch(wanted(server), tmp_path)
    assert len(server.asked) <= 11


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def trusted(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    return authority.issue(tmp_path_factory.mktemp("tls"), "server", ["127.0.0.1"]).server_context()


async def test_a_server_is_trusted_when_its_authority_is_named(
    authority: Authority, trusted: ssl.SSLContext, tmp_path: Path
) -> None:
    async with unruly(trusted) as server:
        server.files["/image.iso"] = File(CONTENT)
        with pytest.raises(Refused, match=r"the certificate of 127\.0\.0\.1 is not trusted"):
            await fetch(wanted(server), tmp_path)
        assert (await fetch(wanted(server), tmp_path, authorities=authority.ca_file)).size == len(CONTENT)


async def test_a_redirect_from_https_to_http_is_refused(
    authority: Authority, trusted: ssl.SSLContext, tmp_path: Path, server: UnrulyServer
) -> None:
    async with unruly(trusted) as secure:
        secure.faults = [Says(301, {"Location": server.url() + "?key=secret"})]
        with pytest.raises(Refused, match="from https to http") as caught:
            await fetch(wanted(secure), tmp_path, authorities=authority.ca_file)
    assert server.asked == []
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"no certificate", None])
async def test_a_file_without_authorities_is_named(content: bytes | None, tmp_path: Path) -> None:
    authorities = tmp_path / "ca.crt"
    if content is not None:
        authorities.write_bytes(content)
    with pytest.raises(Unwritable, match=r"ca\.crt"):
        await fetch(
            Wanted(url="https://x.example/", sha256="0" * 64, name="x"), tmp_path, authorities=authorities
        )


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying() as made:
        yield made


async def test_the_proxy_of_the_environment_is_used_and_its_password_is_not_shown(
    server: UnrulyServer, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://user:secret@127.0.0.1:{proxy.port}")
    assert (await fetch(wanted(server), tmp_path)).size == len(CONTENT)
    assert proxy.asked[0].path == server.url()
    assert proxy.asked[0].headers["proxy-authorization"].startswith("Basic ")
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
    with pytest.raises(Unreachable) as caught:
        await fetch(wanted(server, OTHER), tmp_path)
    assert "secret" not in str(caught.value)


async def test_a_tunnel_through_the_proxy_is_verified_to_its_end(
    authority: Authority,
    trusted: ssl.SSLContext,
    proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{proxy.port}")
    async with unruly(trusted) as server:
        server.files["/image.iso"] = File(CONTENT)
        server.faults = [Cuts(1_000_000)]
        assert (await fetch(wanted(server), tmp_path, authorities=authority.ca_file)).size == len(CONTENT)
        assert proxy.asked[0].method == "CONNECT"
        assert proxy.asked[0].headers["proxy-authorization"].startswith("Basic ")
        assert "proxy-authorization" not in server.asked[0].headers
        monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
        await fetch(wanted(server), tmp_path / "b", authorities=authority.ca_file)
    assert len(proxy.asked) == 2


async def test_two_at_once_fetch_a_file_once(server: UnrulyServer, tmp_path: Path) -> None:
    both = await asyncio.gather(fetch(wanted(server), tmp_path), fetch(wanted(server), tmp_path))
    assert sorted(fetched.reused for fetched in both) == [False, True]
    assert len(server.asked) == 1
    assert names(tmp_path) == ["image.iso"]


async def test_who_is_cancelled_leaves_a_file_that_the_next_one_goes_on_with(
    server: UnrulyServer, tmp_path: Path
) -> None:
    server.faults = [Cuts(2_000_000), Stalls(0)]
    fetching = asyncio.create_task(fetch(wanted(server), tmp_path))
    await server.was_asked(2)
    fetching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await fetching
    assert (await fetch(wanted(server), tmp_path)).resumed == 2_000_000


async def test_a_link_in_the_way_is_not_followed(server: UnrulyServer, tmp_path: Path) -> None:
    target = tmp_path / "of somebody else"
    target.write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / LEFT).symlink_to(target)
    with pytest.raises(Unwritable, match=LEFT):
        await fetch(wanted(server), tmp_path / "folder")
    (tmp_path / "folder" / LEFT).unlink()
    os.link(target, tmp_path / "folder" / LEFT)
    with pytest.raises(Unwritable, match="in the way"):
        await fetch(wanted(server), tmp_path / "folder")
    assert target.read_text() == "precious"


async def test_a_folder_in_place_of_the_file_is_an_error(server: UnrulyServer, tmp_path: Path) -> None:
    (tmp_path / "image.iso").mkdir()
    with pytest.raises(Unwritable, match=r"image\.iso"):
        await fetch(wanted(server), tmp_path)


async def test_a_small_document_is_read_through_bad_weather_and_within_a_limit(server: UnrulyServer) -> None:
    server.files["/stream.json"] = File(b"{}")
    server.faults = [Says(503), Cuts(1)]
    server.arrived = None
    async with Fetcher(FetchSettings(patience=QUICK)) as fetcher:
        assert await fetcher.read(server.url("/stream.json"), limit=2) == b"{}"
        with pytest.raises(Refused, match="more than 1 bytes"):
            await fetcher.read(server.url("/stream.json"), limit=1)
        with pytest.raises(Absent):
            await fetcher.read(server.url("/nothing"), limit=1)
        with pytest.raises(Refused, match="not an http or https URL"):
            await fetcher.read("file:///etc/passwd", limit=1)


def test_two_who_write_the_same_small_file_at_once_leave_one_of_both_whole(tmp_path: Path) -> None:
    """Two architectures are fetched into one folder at the same time: both keep the metadata there."""
    path, errors = tmp_path / "coreos-stream.json", []
    contents = {bytes([64 + number]) * 200_000 for number in range(4)}

    def writes(content: bytes) -> None:
        try:
            for _ in range(10):
                write_whole(path, content)
                assert path.read_bytes() in contents, "half of a file, or parts of two"
        except Exception as error:  # all that goes wrong in a thread is for the test to see
            errors.append(error)

    threads = [threading.Thread(target=writes, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [found.name for found in tmp_path.iterdir()] == [path.name]
