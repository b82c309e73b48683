"""The relay: whoever reads from it gets the whole of an image only when its hash is right."""

from __future__ import annotations

import hashlib
import http.client
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from image_host import ImageHost
from ingot_agent.checksum import Digest
from ingot_agent.download import opener, text_at, trust
from ingot_agent.errors import Failed, Hopeless, InstallError
from ingot_agent.relay import Relay

IMAGE = bytes(range(256)) * 12345
OPENED = opener(trust(True))


@pytest.fixture
def images() -> Iterator[ImageHost]:
    with ImageHost.running() as host:
        host.files["/a.raw"] = IMAGE
        yield host


def sha(content: bytes, algorithm: str = "sha256") -> Digest:
    return Digest(algorithm, hashlib.new(algorithm, content).hexdigest())


def taken(url: str) -> tuple[int, bytes, bool]:
    """Status, what came, and whether it came to its proper end."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), True
        except http.client.IncompleteRead as cut:
            return answer.status, cut.partial, False
    finally:
        connection.close()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("says_length", [True, False])
@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_an_image_with_the_right_hash_arrives_whole(
    images: ImageHost, algorithm: str, says_length: bool
) -> None:
    images.says_length = says_length
    with Relay(f"{images.url}/a.raw", sha(IMAGE, algorithm), OPENED) as relay:
        assert taken(relay.url) == (200, IMAGE, True)
        assert relay.failure is None


@pytest.mark.parametrize("says_length", [True, False])
@pytest.mark.parametrize("content", [IMAGE, b"tiny", b""])
def test_the_end_of_an_image_with_a_wrong_hash_never_arrives(
    images: ImageHost, content: bytes, says_length: bool
) -> None:
    images.files["/a.raw"] = content
    images.says_length = says_length
    with Relay(f"{images.url}/a.raw?sig=hunter2", sha(b"other"), OPENED) as relay:
        _, came, _whole = taken(relay.url)
        assert len(came) < max(len(content), 1)
        # Whoever reads an image of no bytes has all of it before anybody has judged it.
        until(lambda: relay.failure is not None)
        assert isinstance(relay.failure, Hopeless)
        assert not relay.verified
        assert sha(content).value in str(relay.failure)
        assert sha(b"other").value in str(relay.failure)
        assert "hunter2" not in str(relay.failure)


def test_a_wrong_image_is_seen_as_cut_off_by_its_reader(images: ImageHost) -> None:
    with Relay(f"{images.url}/a.raw", sha(b"other"), OPENED) as relay:
        assert taken(relay.url)[2] is False
    images.says_length = False
    with Relay(f"{images.url}/a.raw", sha(b"other"), OPENED) as relay:
        assert taken(relay.url)[2] is False


def test_a_download_that_breaks_off_is_worth_another_try(images: ImageHost) -> None:
    images.script.append("cut")
    with Relay(f"{images.url}/a.raw", sha(IMAGE), OPENED) as relay:
        assert taken(relay.url)[2] is False
        assert type(relay.failure) is Failed
        assert f"ended after {len(IMAGE) // 2} of {len(IMAGE)} bytes" in str(relay.failure)


@pytest.mark.parametrize(("code", "kind"), [(503, Failed), (500, Failed), (404, Hopeless), (403, Hopeless)])
def test_a_servers_refusal_is_told(images: ImageHost, code: int, kind: type[InstallError]) -> None:
    images.script.append(code)
    with Relay(f"{images.url}/a.raw", sha(IMAGE), OPENED) as relay:
        assert taken(relay.url)[0] == 502
        assert type(relay.failure) is kind
        assert f"answered {code}" in str(relay.failure)


def test_an_image_may_be_elsewhere(images: ImageHost) -> None:
    images.script.append(f"{images.url}/a.raw")
    with Relay(f"{images.url}/b.raw", sha(IMAGE), OPENED) as relay:
        assert taken(relay.url) == (200, IMAGE, True)


def test_a_password_in_the_url_is_for_its_server_alone(images: ImageHost) -> None:
    with ImageHost.running() as other:
        other.files["/a.raw"] = IMAGE
        images.script.append(f"{other.url}/a.raw")
        url = images.url.replace("//", "//me:p%40ss@")
        with Relay(f"{url}/a.raw", sha(IMAGE), OPENED) as relay:
            assert taken(relay.url)[1] == IMAGE
        assert images.told == [f"Basic {b64encode(b'me:p@ss').decode()}"]
        assert other.told == [None]


@pytest.mark.parametrize("elsewhere", ["file:///etc/passwd", "ftp://127.0.0.1:1/a"])
def test_an_image_is_nowhere_but_on_a_server_of_http(images: ImageHost, elsewhere: str) -> None:
    images.script.append(elsewhere)
    with Relay(f"{images.url}/a.raw", sha(IMAGE), OPENED) as relay:
        assert taken(relay.url)[0] == 502
        assert isinstance(relay.failure, Failed)


def test_nobody_gets_the_image_without_knowing_its_path(images: ImageHost) -> None:
    with Relay(f"{images.url}/a.raw", sha(IMAGE), OPENED) as relay:
        parts = urlsplit(relay.url)
        assert taken(f"http://{parts.netloc}/a.raw")[0] == 404
        assert taken(relay.url + ".sig")[0] == 404
    assert images.asked == []


def test_an_odd_name_of_an_image_makes_a_proper_url(images: ImageHost) -> None:
    images.files["/x%20y.raw"] = IMAGE
    with Relay(f"{images.url}/x%20y.raw", sha(IMAGE), OPENED) as relay:
        assert relay.url.endswith("/x%20y.raw")
        assert taken(relay.url)[1] == IMAGE


def test_a_reader_that_goes_away_is_not_the_images_fault(images: ImageHost) -> None:
    images.files["/a.raw"] = IMAGE * 20
    with Relay(f"{images.url}/a.raw", sha(IMAGE * 20), OPENED) as relay:
        parts = urlsplit(relay.url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        connection.request("GET", parts.path)
        connection.getresponse().read(10)
        connection.close()
    assert relay.failure is None


def test_a_file_of_checksums_is_fetched_and_bounded(images: ImageHost) -> None:
    images.files["/SUMS"] = b"abc\n"
    assert text_at(f"{images.url}/SUMS", OPENED) == "abc\n"
    images.files["/SUMS"] = b"x" * (2 << 20)
    with pytest.raises(Hopeless, match="larger than a file of checksums"):
        text_at(f"{images.url}/SUMS", OPENED)


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(Failed, match="could not be downloaded"):
        OPENED("http://127.0.0.1:1/a.raw")


def test_trust_follows_the_agents_settings() -> None:
    assert trust(True).verify_mode is ssl.CERT_REQUIRED
    assert trust(False).verify_mode is ssl.CERT_NONE
