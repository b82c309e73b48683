"""Clients as they are: many at once, slow, silent, gone in the middle, without end. None of them disturbs another."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from image_serving import NAMES, A, Client, image_of, materialised, noise, serving

from ingot.formats.coreos import Patch
from ingot.images.region import Region
from ingot.images.server import Image, ImageServer, Shelf, patched
from ingot.images.server.access import AT_LEAST_EVERY, QUIET, AccessLog
from ingot.images.server.conversation import Patience

SIZE = 8_000_000
LIMITED = Patience(idle=0.5, head=0.5, stalled=1.0, parting=0.5)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    path = tmp_path_factory.mktemp("clients") / "base"
    path.write_bytes(noise(SIZE))
    return image_of(patched(Region.whole(path), [Patch(100_000, noise(262_144, "area"))]))


@pytest.fixture(scope="module")
def whole(image: Image) -> bytes:
    return materialised(image.pieces)


@pytest.fixture
def shelf(image: Image) -> Shelf:
    shelf = Shelf()
    shelf.put(A, image)
    return shelf


def eventually(true: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 30
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    eventually(lambda: threading.active_count() <= before)


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def with_a_window_of(size: int, port: int) -> socket.socket:
    """A connection that takes so many bytes before somebody reads them."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    made.connect(("127.0.0.1", port))
    return made


def test_parallel_ranges_of_one_image_do_not_mix(shelf: Shelf, whole: bytes) -> None:
    def read(number: int) -> None:
        with Client(port) as client:
            for turn in range(20):
                start = (number * 7_919 + turn * 104_729) % (SIZE - 70_000)
                got = client.get(range=f"bytes={start}-{start + 65_535}")
                assert got.body == whole[start : start + 65_536]

    with serving(shelf) as port, ThreadPoolExecutor(16) as readers:
        list(readers.map(read, range(32)))


def test_a_slow_client_gets_every_byte_while_others_are_served(shelf: Shelf, whole: bytes) -> None:
    with serving(shelf, threads=1) as port, with_a_window_of(16_384, port) as slow:
        slow.sendall(f"GET /images/{A} HTTP/1.0\r\n\r\n".encode())
        with Client(port) as client:
            assert client.get().body == whole
        came = bytearray()
        while some := slow.recv(50_021):
            came += some
        assert came.partition(b"\r\n\r\n")[2] == whole


def test_clients_that_go_away_in_the_middle_leave_nothing_behind(shelf: Shelf) -> None:
    with serving(shelf) as port:
        with Client(port) as client:
            client.get(range="bytes=0-1")
        before = handles()
        for number in range(50):
            with contextlib.closing(socket.create_connection(("127.0.0.1", port))) as rude:
                rude.sendall(f"GET /images/{A} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
                rude.recv(100 * number + 1)
                if number % 2:  # with a reset
                    rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        eventually(lambda: handles() <= before)
        with Client(port) as client:
            assert client.get(range="bytes=0-1").status == 206


@pytest.mark.parametrize("said", [b"", b"GET / HT", f"GET /images/{A} HTTP/1.1\r\nHost: h\r\n\r\n".encode()])
def test_who_says_nothing_or_takes_nothing_is_left(shelf: Shelf, said: bytes) -> None:
    with serving(shelf, patience=LIMITED) as port:
        before = handles()
        with with_a_window_of(4096, port) as still:
            still.sendall(said)
            eventually(lambda: handles() > before + 1)
            eventually(lambda: handles() <= before + 1)


def test_a_head_that_trickles_in_has_a_deadline(shelf: Shelf) -> None:
    with serving(shelf, patience=LIMITED) as port, Client(port) as client:
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 30:
                client.say(b"a")
                client.socket.settimeout(0.1)
                with contextlib.suppress(TimeoutError):
                    if client.socket.recv(1) == b"":
                        break
        assert time.monotonic() - began < 30


def test_a_client_that_is_slow_but_goes_on_is_not_left(shelf: Shelf) -> None:
    with serving(shelf, patience=LIMITED) as port, with_a_window_of(65_536, port) as slow:
        slow.sendall(f"GET /images/{A} HTTP/1.0\r\nHost: h\r\n\r\n".encode())
        came, began = 0, time.monotonic()
        while some := slow.recv(262_144, socket.MSG_WAITALL):
            came += len(some)
            time.sleep(0.08)
        assert came > SIZE
        assert time.monotonic() - began > LIMITED.stalled


def test_when_all_places_are_taken_the_one_that_idles_longest_makes_room(shelf: Shelf) -> None:
    with serving(shelf, connections=3, threads=1) as port, contextlib.ExitStack() as stack:
        first, second, third = (stack.enter_context(Client(port)) for _ in range(3))
        for client in (first, third, second):
            assert client.get(range="bytes=0-1").status == 206
        newcomer = stack.enter_context(Client(port))
        assert newcomer.get(range="bytes=0-1").status == 206
        assert first.ended()
        assert second.get(range="bytes=0-1").status == 206


def test_when_nobody_idles_the_newcomer_has_to_go(shelf: Shelf) -> None:
    with serving(shelf, connections=2, threads=1) as port, contextlib.ExitStack() as stack:
        busy = [stack.enter_context(Client(port)) for _ in range(2)]
        for client in busy:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.say(f"GET /images/{A} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            client.socket.recv(1)
        assert stack.enter_context(Client(port)).ended()


def test_answers_on_their_way_are_finished_when_the_server_stops(shelf: Shelf, whole: bytes) -> None:
    came: list[bytes] = []

    def read(client: Client) -> None:
        came.append(client.hear().body)

    with contextlib.ExitStack() as stack:
        with serving(shelf) as port:
            idle, busy = (stack.enter_context(Client(port)) for _ in range(2))
            assert idle.get(range="bytes=0-1").status == 206
            busy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            busy.say(f"GET /images/{A} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            assert busy.socket.recv(1, socket.MSG_PEEK)
            reading = threading.Thread(target=read, args=(busy,))
            reading.start()
        reading.join()
        assert idle.ended()
        with pytest.raises(ConnectionRefusedError):
            Client(port)
    assert came == [whole]


def test_a_port_that_is_taken_is_an_error_and_leaves_nothing(shelf: Shelf) -> None:
    with serving(shelf) as port:
        before = handles()

        async def again() -> None:
            async with ImageServer(shelf, listen=("127.0.0.1", port), tls=None, ready=lambda: True):
                pass

        with pytest.raises(OSError, match="in use"):
            asyncio.run(again())
        assert handles() <= before


def test_a_process_that_has_no_handles_left_accepts_again_when_it_has(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with serving(shelf) as port:
        ours = socket.socket()
        os.close(lowest_free := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            client = Client(port, over=ours)
            eventually(lambda: "no connection can be accepted" in caplog.text)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with client:
            assert client.get(range="bytes=0-1").status == 206


async def test_a_server_listens_at_every_address_that_a_name_stands_for(shelf: Shelf) -> None:
    async with ImageServer(shelf, listen=("", 0), tls=None, ready=lambda: True) as server:
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with contextlib.closing(socket.socket(family)) as client:
                if family == socket.AF_INET6 and not _is_here(address):
                    continue
                await asyncio.get_running_loop().sock_connect(_unblocked(client), (address, server.port))


def _is_here(address: str) -> bool:
    with contextlib.closing(socket.socket(socket.AF_INET6)) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True


def _unblocked(client: socket.socket) -> socket.socket:
    client.setblocking(False)
    return client


class TestTheAccessLog:
    def test_says_one_line_for_all_that_was_read_in_a_row_and_never_the_name(
        self, shelf: Shelf, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO), serving(shelf, threads=1) as port:
            for _ in range(2):
                with Client(port) as client:
                    for _ in range(5):
                        client.get(range="bytes=0-99")
                    client.get(f"/images/{NAMES.name('another')}")
                    client.get("/images/something/else")
        lines = [record.message for record in caplog.records if record.name.endswith("access")]
        assert len(lines) == 3
        assert f"127.0.0.1: image {A[:6]}…, 1000 bytes" in caplog.text
        assert "10 × 206" in caplog.text
        assert A[:8] not in caplog.text
        assert NAMES.name("another")[:8] not in caplog.text
        assert "something" not in caplog.text

    def test_speaks_when_it_has_been_quiet_and_now_and_then_while_it_goes_on(self) -> None:
        now, said = 0.0, list[str]()
        access = AccessLog(said.append, lambda: now)
        access.note("bmc", A, 206, 10)
        access.tell()
        now = QUIET
        access.tell()
        assert len(said) == 1
        for _ in range(3 * int(AT_LEAST_EVERY) + 20):
            now += 1
            access.note("bmc", A, 206, 10)
            access.tell()
        assert len(said) == 4

    def test_does_not_grow_without_end(self) -> None:
        said: list[str] = []
        access = AccessLog(said.append, lambda: 0.0)
        for number in range(10_000):
            access.note(str(number), A, 206, 10)
        assert len(said) > 5_000
