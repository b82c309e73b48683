"""The law of the informer on the embedded API: after any day, restarts and restored backups included, cache and API agree."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.meta import Key
from ingot.embedded.server import serve
from ingot.kube import AlreadyExists, Backoff, Change, Client, Informer, NotFound
from ingot.kube.versions import is_older

NAME = st.sampled_from(["a", "b", "c"])
QUIET = st.one_of(
    st.tuples(st.just("create"), NAME),
    st.tuples(st.just("patch"), NAME),
    st.tuples(st.just("write ourselves"), NAME),
    st.tuples(st.just("delete"), NAME),
    st.tuples(st.just("breathe"), st.just("")),
)
BAD = st.sampled_from([("restart", ""), ("back up", ""), ("restore", ""), ("remove the database", "")])
DAY = st.lists(st.tuples(st.lists(QUIET, max_size=6), BAD), min_size=1, max_size=3)


class Day:
    """A server in a folder, an informer that follows it, and what becomes of them."""

    def __init__(self, folder: Path) -> None:
        self.state, self.backup = folder / "state", folder / "backup"
        self.port = 0
        self.running = AsyncExitStack()
        self.told: dict[Key, BareMetalHost] = {}
        self.numbers: Iterator[int] = iter(range(10_000))

    async def start(self) -> None:
        server = await self.running.enter_async_context(serve(self.state, port=self.port))
        self.port, self.kubeconfig = server.port, server.kubeconfig

    async def stop(self) -> None:
        await self.running.aclose()

    def follow(self, client: Client) -> None:
        self.client = client
        self.informer = Informer(client, BARE_METAL_HOSTS, backoff=Backoff(first=0.01, limit=0.05))
        self.informer.subscribe(self.note)

    def note(self, change: Change[BareMetalHost]) -> None:
        assert self.told.get(change.key) == change.old
        if change.new is None:
            del self.told[change.key]
        else:
            self.told[change.key] = change.new

    async def step(self, what: str, name: str) -> None:
        key = Key("default", name)
        patch = {"metadata": {"labels": {"n": str(next(self.numbers))}}}
        try:
            match what:
                case "create":
                    body = {"metadata": {"name": name}, "spec": {"online": False}}
                    await self.client.create(BARE_METAL_HOSTS, body, namespace="default")
                case "patch":
                    await self.client.patch(BARE_METAL_HOSTS, key, patch)
                case "write ourselves":
                    self.informer.observe(await self.client.patch(BARE_METAL_HOSTS, key, patch))
                case "delete":
                    await self.client.delete(BARE_METAL_HOSTS, key)
                case "breathe":
                    await asyncio.sleep(0.02)
                case "restart":
                    await self.stop()
                    await self.start()
                case "back up":
                    await self.stop()
                    shutil.rmtree(self.backup, ignore_errors=True)
                    shutil.copytree(self.state / "api", self.backup)
                    await self.start()
                case "restore" if self.backup.exists():
                    await self.put_back(self.backup)
                case "remove the database":
                    await self.put_back(None)
        except (NotFound, AlreadyExists):
            pass

    async def put_back(self, backup: Path | None) -> None:
        await self.stop()
        replace_database(self.state / "api", backup)
        await self.start()
        # A history that has come to our version again before anybody looks cannot be told from the one we know.
        async with asyncio.timeout(60):
            # Noticing has no event of its own, and neither has the agreement below.
            while is_older(await self.client.latest_version(BARE_METAL_HOSTS), self.informer.version):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def agrees(self) -> bool:
        listed = {item.key: item for item in (await self.client.list(BARE_METAL_HOSTS)).items}
        return {item.key: item for item in self.informer.items()} == self.told == listed


def replace_database(folder: Path, backup: Path | None) -> None:
    """By the one in the backup, or by none. The keys to the door stay."""
    for file in folder.glob("api.db*"):
        file.unlink()
    for file in backup.glob("api.db*") if backup else ():
        shutil.copy(file, folder)


async def live(day: Day, steps: list[tuple[list[tuple[str, str]], tuple[str, str]]]) -> None:
    await day.start()
    try:
        async with Client.from_kubeconfig(day.kubeconfig) as client:
            day.follow(client)
            following = asyncio.create_task(day.informer.run())
            try:
                for quiet, bad in steps:
                    for what, name in [*quiet, bad]:
                        await day.step(what, name)
                # Without a last change nobody could tell a cache that follows from one that stopped.
                await day.step("create", "last")
                async with asyncio.timeout(60):
                    while not await day.agrees():  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
                assert not following.done()
            finally:
                following.cancel()
                await asyncio.wait([following])
    finally:
        await day.stop()


@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(steps=DAY)
def test_the_cache_equals_the_api_after_any_day(steps: list[tuple[list[tuple[str, str]], tuple[str, str]]]):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Day(Path(folder)), steps))
