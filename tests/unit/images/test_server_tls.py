"""The same images over TLS: to the byte, under a certificate that changes, and never for somebody who speaks an old version."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_serving import A, Client, image_of, materialised, noise, serving

from ingot.formats.coreos import Patch
from ingot.images.region import Region
from ingot.images.server import Image, Shelf, patched
from ingot.images.server.conversation import Patience
from ingot.trust import Authority, ServingTls, client_context

SIZE = 3_000_000


class Quick(ServingTls):
    """Looks for a new certificate more often."""

    async def keep(self, every: float = 0.05) -> None:
        await super().keep(every)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def image(folder: Path) -> Image:
    path = folder / "base"
    path.write_bytes(noise(SIZE))
    return image_of(
        patched(Region.whole(path), [Patch(5000, noise(200_000, "area") + bytes(62_144)), Patch(2, b"x")])
    )


@pytest.fixture(scope="module")
def shelf(image: Image) -> Shelf:
    shelf = Shelf()
    shelf.put(A, image)
    return shelf


@pytest.fixture(scope="module")
def trust(folder: Path) -> ssl.SSLContext:
    return client_context(Authority(folder / "ca").ca_file)


@pytest.fixture(scope="module")
def port(folder: Path, shelf: Shelf) -> Iterator[int]:
    authority = Authority(folder / "ca")
    tls = ServingTls(lambda: authority.issue(folder, "images", ["127.0.0.1"]))
    with serving(shelf, tls=tls, patience=Patience(greeting=1.0)) as port:
        yield port


def test_an_image_is_what_a_copy_would_be(port: int, image: Image, trust: ssl.SSLContext) -> None:
    whole = materialised(image.pieces)
    with Client(port, trust) as client:
        assert client.get().body == whole
        assert client.get(method="HEAD").fields["content-length"] == str(SIZE)


@settings(max_examples=60)
@given(start=st.integers(0, SIZE - 1), length=st.integers(1, 400_000))
def test_any_range_is_what_a_copy_would_have_there(
    port: int, image: Image, trust: ssl.SSLContext, start: int, length: int
) -> None:
    with Client(port, trust) as client:
        for _ in range(2):
            got = client.get(range=f"bytes={start}-{start + length - 1}")
            assert got.body == materialised(image.pieces)[start : start + length]


def test_requests_in_one_record_are_all_answered(port: int, trust: ssl.SSLContext, image: Image) -> None:
    one = f"GET /images/{A} HTTP/1.1\r\nHost: h\r\nRange: bytes=%d-%d\r\n\r\n"
    with Client(port, trust) as client:
        client.say("".join(one % (at, at + 9) for at in range(100)).encode())
        whole = materialised(image.pieces)
        assert [client.hear().body for _ in range(100)] == [whole[at : at + 10] for at in range(100)]


def test_a_slow_reader_gets_every_byte(port: int, trust: ssl.SSLContext, image: Image) -> None:
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port))
    whole = materialised(image.pieces)
    with trust.wrap_socket(plain, server_hostname="127.0.0.1") as slow:
        slow.sendall(f"GET /images/{A} HTTP/1.0\r\n\r\n".encode())
        came = bytearray()
        while some := slow.recv(7919):
            came += some
    assert came.partition(b"\r\n\r\n")[2] == whole


def test_a_certificate_is_renewed_without_a_restart(
    folder: Path, shelf: Shelf, trust: ssl.SSLContext
) -> None:
    authority = Authority(folder / "ca")
    hosts = ["127.0.0.1"]
    tls = Quick(lambda: authority.issue(folder / "renewed", "images", hosts))
    with serving(shelf, tls=tls) as port, Client(port, trust) as old:
        first = _certificate(old)
        hosts.append("localhost")  # it no longer covers what is asked for, so a new one is issued
        give_up = time.monotonic() + 30
        while True:
            with Client(port, trust) as new:
                assert new.get(range="bytes=0-3").status == 206
                if _certificate(new) != first:
                    break
            assert time.monotonic() < give_up, "the certificate was never taken up"
            time.sleep(0.02)
        assert old.get(range="bytes=0-3").status == 206


def _certificate(client: Client) -> bytes | None:
    assert isinstance(client.socket, ssl.SSLSocket)
    return client.socket.getpeercert(binary_form=True)


def test_an_old_version_is_refused(port: int, trust: ssl.SSLContext, folder: Path) -> None:
    old = client_context(Authority(folder / "ca").ca_file)
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with contextlib.suppress(ssl.SSLError):
        old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Client(port, old)
    newest_of_1_2 = client_context(Authority(folder / "ca").ca_file)
    newest_of_1_2.maximum_version = ssl.TLSVersion.TLSv1_2
    with Client(port, newest_of_1_2) as client:
        assert client.get(range="bytes=0-1").status == 206


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", bytes(100), struct.pack("!BHH", 22, 0x303, 65535)]
)
def test_who_speaks_no_tls_is_left(port: int, trust: ssl.SSLContext, said: bytes) -> None:
    with Client(port) as client:
        client.say(said)
        with contextlib.suppress(ConnectionError):
            while client.socket.recv(100):
                pass
    with Client(port, trust) as client:
        assert client.get(range="bytes=0-1").status == 206


def test_who_says_nothing_is_left(port: int) -> None:
    with Client(port) as client:
        assert client.ended()


def test_a_refusal_arrives_although_more_is_said_than_is_read(port: int, trust: ssl.SSLContext) -> None:
    with Client(port, trust) as client:
        client.say(
            f"PUT /images/{A} HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n".encode() + bytes(100_000)
        )
        assert client.hear().status == 413
