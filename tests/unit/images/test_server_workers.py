"""Images served by processes of their own: all of them know the same images, and one that dies is missed by nobody for long."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from image_serving import NAMES, A, Client, Got, image_of, materialised, noise

from ingot.formats.coreos import Patch
from ingot.images.region import Region
from ingot.images.server import Image, ImageWorkers, Shelf, patched
from ingot.images.server.messages import Put, Zeros
from ingot.trust import Authority, ServingTls, client_context

SIZE = 3_000_000
LARGE = 48_000_000
"""More than a system takes off a worker's hands before anybody reads it."""
B = NAMES.name("b")
EACH = 3


class Quick(ServingTls):
    """Looks for a new certificate more often."""

    async def keep(self, every: float = 0.05) -> None:
        await super().keep(every)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    path = tmp_path / "base"
    path.write_bytes(noise(SIZE))
    return image_of(patched(Region.whole(path), [Patch(5000, noise(3_000, "area") + bytes(259_144))]))


@pytest.fixture
def shelf(image: Image) -> Shelf:
    shelf = Shelf()
    shelf.put(A, image)
    return shelf


@asynccontextmanager
async def working(shelf: Shelf, tls: ServingTls | None = None) -> AsyncIterator[ImageWorkers]:
    """Two workers, both of which answer."""
    async with ImageWorkers(shelf, listen=("127.0.0.1", 0), tls=tls, count=2) as workers:
        await until(lambda: len(workers.pids) == 2)
        await workers.has_heard()
        yield workers


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - other processes tell nobody
            await asyncio.sleep(0.02)


class Callers:
    """Connections, of which every worker has some."""

    def __init__(self, workers: ImageWorkers, context: ssl.SSLContext | None = None) -> None:
        self._workers = workers
        self._context = context
        self._stack = contextlib.ExitStack()
        self.clients: list[Client] = []

    async def __aenter__(self) -> Callers:
        await asyncio.to_thread(self._connect, self._workers.port, self._workers.pids)
        return self

    def _connect(self, port: int, pids: list[int]) -> None:
        before = {pid: sockets(pid) for pid in pids}
        while len(self.clients) < EACH * len(pids) or any(sockets(pid) < before[pid] + EACH for pid in pids):
            assert len(self.clients) < 500, "somebody never gets a connection"
            self.clients.append(self._stack.enter_context(Client(port, self._context)))
            self.clients[-1].get(range="bytes=0-9")

    async def __aexit__(self, *_: object) -> None:
        self._stack.close()

    async def get(self, name: str = A, **fields: str) -> list[Got]:
        fields = fields or {"range": "bytes=0-9"}
        return await asyncio.to_thread(
            lambda: [client.get(f"/images/{name}", **fields) for client in self.clients]
        )

    async def statuses(self, name: str) -> set[int]:
        return {got.status for got in await self.get(name)}


def sockets(pid: int) -> int:
    """How many it has open; none when it has ended."""
    with contextlib.suppress(OSError):
        return sum(
            handle.readlink().name.startswith("socket:") for handle in Path(f"/proc/{pid}/fd").iterdir()
        )
    return 0


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_an_image_is_what_a_copy_would_be_whoever_answers(shelf: Shelf, image: Image) -> None:
    whole = materialised(image.pieces)
    async with working(shelf) as workers, Callers(workers) as callers:
        assert all(got.body == whole for got in await callers.get(range="bytes=0-"))


async def test_blocks_of_zeros_are_told_by_their_length(image: Image) -> None:
    told = Put.of(A, image)
    assert sum(piece.length for piece in told.pieces if isinstance(piece, Zeros)) == 259_144
    assert told.image == image


async def test_an_image_that_is_everywhere_is_served_by_all_also_to_those_connected_before(
    shelf: Shelf, image: Image
) -> None:
    shelf.complete()
    async with working(shelf) as workers, Callers(workers) as callers:
        assert await callers.statuses(B) == {404}
        shelf.put(B, image)
        await shelf.everywhere()
        assert await callers.statuses(B) == {206}
        shelf.drop(B)
        await shelf.everywhere()
        assert await callers.statuses(B) == {404}


async def test_until_the_shelf_is_complete_all_say_later(shelf: Shelf) -> None:
    async with working(shelf) as workers, Callers(workers) as callers:
        assert await callers.statuses(B) == {503}
        shelf.complete()
        await shelf.everywhere()
        assert await callers.statuses(B) == {404}


async def test_a_worker_that_is_killed_in_the_middle_comes_back_with_all_images(
    shelf: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.truncate(tmp_path / "base", LARGE)
    image = image_of(patched(Region.whole(tmp_path / "base"), [Patch(5000, noise(3_000, "large"))]))
    whole = materialised(image.pieces)
    shelf.put(A, image)
    shelf.complete()
    async with working(shelf) as workers, Callers(workers) as callers:
        for client in callers.clients:
            client.say(f"GET /images/{A} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        killed, other = workers.pids
        os.kill(killed, signal.SIGKILL)
        shelf.put(B, image)
        await shelf.everywhere()
        came = await asyncio.to_thread(lambda: [heard(client) for client in callers.clients])
        assert whole in came
        assert None in came
        with Client(workers.port) as meanwhile:
            assert (await asyncio.to_thread(meanwhile.get, f"/images/{B}")).body == whole
        await until(lambda: len(workers.pids) == 2)
        assert other in workers.pids
        await workers.has_heard()
        async with Callers(workers) as afterwards:
            assert await afterwards.statuses(B) == {206}
            assert await afterwards.statuses(NAMES.name("c")) == {404}
    assert "ended with status -9; it is started again" in caplog.text


def heard(client: Client) -> bytes | None:
    try:
        return client.hear().body
    except (EOFError, ConnectionError):
        return None


async def test_a_worker_that_does_not_answer_is_ended(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    async with working(shelf) as workers:
        workers.confirms_within = 0.3
        stopped = workers.pids[0]
        os.kill(stopped, signal.SIGSTOP)
        await shelf.everywhere()
        assert not runs(stopped)
        assert "does not answer and is ended" in caplog.text


async def test_a_new_certificate_is_taken_up_by_all(shelf: Shelf, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    hosts = ["127.0.0.1"]
    tls = Quick(lambda: authority.issue(tmp_path / "tls", "images", hosts))
    trust = client_context(authority.ca_file)
    async with working(shelf, tls) as workers, Callers(workers, trust) as old:
        before = certificates(old)
        assert len(before) == 1
        hosts.append("localhost")  # it no longer covers what is asked for, so a new one is issued
        async with asyncio.timeout(30):
            while True:
                async with Callers(workers, trust) as new:
                    if not certificates(new) & before:
                        break
        assert await old.statuses(A) == {206}


def certificates(callers: Callers) -> set[bytes | None]:
    sockets = [client.socket for client in callers.clients]
    return {each.getpeercert(binary_form=True) for each in sockets if isinstance(each, ssl.SSLSocket)}


async def test_what_workers_log_is_logged_here(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with working(shelf) as workers, Callers(workers) as callers:
            await callers.get()
    assert f"127.0.0.1: image {A[:6]}…" in caplog.text
    assert A[:8] not in caplog.text


async def test_nothing_is_left_when_it_ends(shelf: Shelf) -> None:
    async with working(shelf) as workers:
        pids, port = workers.pids, workers.port
    assert not any(map(runs, pids))
    with pytest.raises(ConnectionRefusedError):
        Client(port)


@pytest.mark.parametrize("after", [0.0, 0.001, 0.005, 0.02, 0.1])
async def test_whoever_stops_while_workers_start_leaves_the_port_to_the_next(
    shelf: Shelf, after: float
) -> None:
    port = 0
    for _ in range(2):
        async with ImageWorkers(shelf, listen=("127.0.0.1", port), tls=None, count=2) as workers:
            port = workers.port
            await asyncio.sleep(after)


def test_no_worker_survives_the_process_that_is_killed() -> None:
    program = (
        "import asyncio\n"
        "from ingot.images.server import ImageWorkers, Shelf\n"
        "async def main():\n"
        "    async with ImageWorkers(Shelf(), listen=('127.0.0.1', 0), tls=None, count=2) as workers:\n"
        "        while len(workers.pids) < 2: await asyncio.sleep(0.02)\n"
        "        await workers.has_heard()\n"
        "        print(*workers.pids, flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()
    assert len(pids) == 2
    give_up = time.monotonic() + 30
    while any(map(runs, pids)):
        assert time.monotonic() < give_up
        time.sleep(0.05)
