"""Kill the API server under write load, over and over, and see whether it keeps what it promised.

    writers   create, change and delete objects of their own; they keep a journal of what was acknowledged, outside the server
    watcher   follows all of it over every death, from the version it has seen last, and lists again when it is told to
    judge     after each death: what was acknowledged is there; what was under way is there or not, but not by half; versions
              never went back

Everything that is drawn by lot comes from one seed. When the processor decides who runs first, two campaigns of one seed still
differ; what they do does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from ingot.trust import client_context

PATH: Final = "/api/v1/namespaces/default/configmaps"
# Without our own definitions a start takes half the time, and they have no part in this.
SERVER: Final = """
import asyncio, pathlib, sys
from ingot.embedded.server import serve
async def main():
    async with serve(pathlib.Path(sys.argv[1]), crds=()) as running:
        print(running.url, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
START_WITHIN: Final = 120.0
# What a client sees of a server that was killed.
DEATH: Final = (aiohttp.ClientError, OSError, asyncio.IncompleteReadError)


class Broken(AssertionError):
    """A promise that was not kept."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a write leaves behind: a number that is in three places of the object, and the version it got."""

    number: int
    version: int = 0


GONE: Final = Mark(-1)


@dataclass(slots=True)
class Entry:
    """An object in the journal: what was acknowledged last, and what has been asked for since without an answer."""

    acknowledged: Mark = GONE
    asked: Mark | None = None


@dataclass(slots=True)
class Tally:
    kills: int = 0
    acknowledged: int = 0
    in_doubt: int = 0
    came_through: int = 0
    events: int = 0
    resumed: int = 0
    listed_again: int = 0


@dataclass(slots=True)
class Campaign:
    state: Path
    seed: int
    writers: int = 6
    lot: random.Random = field(init=False)
    journal: dict[str, Entry] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    # The newest version that anybody was ever shown.
    newest: int = 0

    def __post_init__(self) -> None:
        self.lot = random.Random(self.seed)

    async def run(self, kills: int) -> Tally:
        watcher = Watcher(self)
        for _ in range(kills):
            await self._one_life(watcher)
        async with living(self.state) as (_, api):
            await self._judge(api)
            await watcher.catch_up(api, self.newest)
            self._compare(watcher)
        return self.tally

    async def _one_life(self, watcher: Watcher) -> None:
        async with living(self.state) as (child, api):
            await self._judge(api)
            before = self.tally.acknowledged
            following = asyncio.create_task(watcher.follow(api))
            lots = [random.Random(self.lot.random()) for _ in range(self.writers)]
            writing = [asyncio.create_task(self._write(api, n, lot)) for n, lot in enumerate(lots)]
            enough, longer = self.lot.randrange(1, 60), self.lot.random() * 0.05
            async with asyncio.timeout(START_WITHIN):
                while self.tally.acknowledged < before + enough and not _failed(writing):  # noqa: ASYNC110 (what several tasks count has no event)
                    await asyncio.sleep(0.001)
            await asyncio.sleep(longer)
            child.send_signal(signal.SIGKILL)
            await child.wait()
            self.tally.kills += 1
            await asyncio.gather(*writing, following)

    async def _write(self, api: Api, writer: int, lot: random.Random) -> None:
        with contextlib.suppress(*DEATH):
            while True:
                name = f"m-{writer}-{lot.randrange(12)}"
                entry = self.journal.setdefault(name, Entry())
                number = lot.randrange(10**9)
                if entry.acknowledged is GONE:
                    await self._ask(api, entry, Mark(number), "POST", PATH, marked(name, number))
                elif lot.random() < 0.2:
                    await self._ask(api, entry, GONE, "DELETE", f"{PATH}/{name}")
                else:
                    await self._ask(api, entry, Mark(number), "PATCH", f"{PATH}/{name}", marked(name, number))

    async def _ask(
        self, api: Api, entry: Entry, mark: Mark, method: str, path: str, body: dict[str, Any] | None = None
    ) -> None:
        entry.asked = mark
        code, answer = await api.call(method, path, body)
        if code not in (200, 201):
            raise Broken(f"{method} {path} was answered with {code}: {answer}")
        version = int(answer.get("metadata", {}).get("resourceVersion", 0))
        entry.acknowledged, entry.asked = (mark if mark is GONE else Mark(mark.number, version)), None
        self.newest = max(self.newest, version)
        self.tally.acknowledged += 1

    async def _judge(self, api: Api) -> None:
        """Compare what is there with the journal, then bring the journal up to date."""
        code, listed = await api.call("GET", PATH)
        if code != 200:
            raise Broken(f"the list was answered with {code}: {listed}")
        version = int(listed["metadata"]["resourceVersion"])
        if version < self.newest:
            raise Broken(f"the API is at version {version}; it had given out {self.newest}")
        self.newest = version
        there = {item["metadata"]["name"]: mark_of(item) for item in listed["items"]}
        there.pop("kube-root-ca.crt", None)
        if unknown := there.keys() - self.journal.keys():
            raise Broken(f"nobody wrote {sorted(unknown)}")
        for name, entry in self.journal.items():
            self._judge_one(name, entry, there.get(name, GONE))

    def _judge_one(self, name: str, entry: Entry, found: Mark) -> None:
        was_asked = entry.asked is not None and found.number == entry.asked.number
        if entry.asked is not None:
            self.tally.in_doubt += 1
            self.tally.came_through += was_asked
        if not was_asked and found != entry.acknowledged:
            raise Broken(f"{name} is {found}; acknowledged was {entry.acknowledged}, asked {entry.asked}")
        entry.acknowledged, entry.asked = found, None

    def _compare(self, watcher: Watcher) -> None:
        expected = {
            name: e.acknowledged.number for name, e in self.journal.items() if e.acknowledged is not GONE
        }
        if watcher.objects != expected:
            wrong = {
                name
                for name in expected.keys() | watcher.objects
                if watcher.objects.get(name) != expected.get(name)
            }
            raise Broken(f"who watched all the time sees something else than is there: {sorted(wrong)}")


class Watcher:
    """Somebody who builds his picture of the objects from events alone, and lists only when he is told to."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self.objects: dict[str, int] = {}
        self._version = ""
        self._seen: dict[str, int] = {}

    async def follow(self, api: Api) -> None:
        """Until the server dies."""
        with contextlib.suppress(*DEATH):
            while True:
                if not self._version:
                    await self._list(api)
                else:
                    self._campaign.tally.resumed += 1
                await self._watch(api)

    async def catch_up(self, api: Api, version: int) -> None:
        async with asyncio.timeout(START_WITHIN):
            if not self._version:
                await self._list(api)
            while int(self._version) < version:
                await self._watch(api, timeoutSeconds="1", allowWatchBookmarks="true")

    async def _list(self, api: Api) -> None:
        _, listed = await api.call("GET", PATH)
        self.objects = {item["metadata"]["name"]: mark_of(item).number for item in listed["items"]}
        self.objects.pop("kube-root-ca.crt", None)
        self._version = listed["metadata"]["resourceVersion"]
        self._campaign.tally.listed_again += 1

    async def _watch(self, api: Api, **more: str) -> None:
        params = {"watch": "true", "resourceVersion": self._version, **more}
        async with api.session.get(api.url + PATH, params=params) as response:
            async for line in response.content:
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    if event["object"]["code"] != 410:
                        raise Broken(f"a watch ended with {event['object']}")
                    self._version = ""
                    return
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        version = int(event["object"]["metadata"]["resourceVersion"])
        if version < int(self._version) or (version == int(self._version) and event["type"] != "BOOKMARK"):
            raise Broken(f"an event of version {version} came after one of {self._version}")
        self._version = str(version)
        self._campaign.newest = max(self._campaign.newest, version)
        if event["type"] == "BOOKMARK":
            return
        self._campaign.tally.events += 1
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            self.objects.pop(name, None)
        else:
            self.objects[name] = mark_of(event["object"]).number


def marked(name: str, number: int) -> dict[str, Any]:
    """An object that says the same thing in three places: one half of a write would show."""
    text = str(number)
    return {
        "metadata": {"name": name, "labels": {"n": text}, "annotations": {"n": text, "fill": "x" * 2000}},
        "data": {"n": text},
    }


def mark_of(item: dict[str, Any]) -> Mark:
    metadata = item["metadata"]
    if metadata["name"] == "kube-root-ca.crt":
        return Mark(0)
    said = {metadata["labels"]["n"], metadata["annotations"]["n"], item["data"]["n"]}
    if len(said) != 1:
        raise Broken(f"{metadata['name']} was written by half: {said}")
    return Mark(int(said.pop()), int(metadata["resourceVersion"]))


@dataclass(frozen=True, slots=True)
class Api:
    session: aiohttp.ClientSession
    url: str

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind} if data else {}
        async with self.session.request(method, self.url + path, data=data, headers=headers) as response:
            return response.status, json.loads(await response.read())


@contextlib.asynccontextmanager
async def living(state: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, Api]]:
    """A server that answers, and a client for it."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(state), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(START_WITHIN):
            url = (await child.stdout.readline()).decode().strip()
        if not url:
            raise Broken("the server did not start again")
        token = yaml.safe_load((state / "kubeconfig").read_text())["users"][0]["user"]["token"]
        connector = aiohttp.TCPConnector(ssl=client_context(state / "ca" / "ca.crt"), limit=0)
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield child, Api(session, url)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def _failed(tasks: list[asyncio.Task[None]]) -> bool:
    return any(task.done() for task in tasks)
