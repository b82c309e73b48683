"""The law of the informer: whatever happens to the stream, in the end cache and API are equal, and so is the sum of changes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kube_scripted_api import WIDGET, ScriptedApi, Widget, hang_up, status

from ingot.api.meta import Key
from ingot.kube import Backoff, Change, Client, Informer
from ingot.kube.versions import is_older
from ingot.trust import Certificate

NAME = st.sampled_from(["a", "b", "c"])
STEP = st.one_of(
    st.tuples(st.just("put"), NAME),
    st.tuples(st.just("remove"), NAME),
    st.tuples(st.just("write ourselves"), NAME),
    st.tuples(st.just("cut"), st.sampled_from(["clean", "abort", "midline"])),
    st.tuples(st.just("forget"), st.sampled_from([True, False])),
    st.tuples(st.just("fail"), st.sampled_from([429, 500, 503, 504, 0])),
    st.tuples(st.just("restart"), st.just("")),
    st.tuples(st.just("begin anew"), st.just("")),
    st.tuples(st.just("back up"), st.just("")),
    st.tuples(st.just("restore"), st.just("")),
    st.tuples(st.just("bookmark"), st.just("")),
    st.tuples(st.just("stream lists"), st.sampled_from(["yes", "refused", "ignored"])),
    st.tuples(st.just("refuse the future"), st.booleans()),
    st.tuples(st.just("breathe"), st.sampled_from([0.0, 0.005, 0.02])),
)


class Day:
    """An informer, the API it follows, and what becomes of them."""

    def __init__(self, api: ScriptedApi, client: Client) -> None:
        self.api, self.client = api, client
        # A history that is replaced between the look at it and the watch is noticed when that watch ends: after a second, here.
        self.informer: Informer[Widget] = Informer(
            client, WIDGET, backoff=Backoff(first=0.002, limit=0.01), streamed_list=0.1, watch_seconds=1
        )
        self.told: dict[Key, Widget] = {}
        self.size = 0
        self.restore: Callable[[], None] | None = None

    def note(self, change: Change[Widget]) -> None:
        assert self.told.get(change.key) == change.old
        if change.new is None:
            del self.told[change.key]
        else:
            self.told[change.key] = change.new

    async def step(self, what: str, how: object) -> None:
        self.size += 1
        match what, how:
            case "put", str(name):
                self.api.put(name, self.size)
            case "remove", str(name) if name in self.api.sizes():
                self.api.remove(name)
            case "write ourselves", str(name) if name in self.api.sizes() and not self.api.faults:
                patch = {"spec": {"size": self.size}}
                self.informer.observe(await self.client.patch(WIDGET, Key("default", name), patch))
            case "cut", str(how):
                self.api.cut(how)
            case "forget", bool(as_event):
                self.api.gone_as_event = as_event
                self.api.forget()
                self.api.cut()
            case "fail", int(code):
                self.api.faults.append(status(code, "Because") if code else hang_up)
                self.api.cut()
            case "restart", _:
                await self.api.stop()
                await self.api.start()
            case "begin anew", _:
                self.api.begin_anew()
                self.restore = None
                await self.noticed()
            case "back up", _:
                self.restore = self.api.backup()
            case "restore", _ if self.restore is not None:
                self.restore()
                await self.noticed()
            case "bookmark", _:
                self.api.bookmark()
            case "stream lists", str(how):
                self.api.streams_lists = how
            case "refuse the future", bool(how):
                self.api.too_new_is_told = how
            case "breathe", float(seconds):
                await asyncio.sleep(seconds)

    async def noticed(self) -> None:
        """A history that has come to our version again before anybody looks cannot be told from the one we know."""
        async with asyncio.timeout(60):
            while is_older(str(self.api.version), self.informer.version):  # noqa: ASYNC110 - noticing has no event
                await asyncio.sleep(0.005)

    def agrees(self) -> bool:
        cached = {item.metadata.name: item.spec.size for item in self.informer.items()}
        told = {key.name: item.spec.size for key, item in self.told.items()}
        return cached == told == self.api.sizes()


async def live(steps: list[tuple[str, object]], certificate: Certificate, folder: Path) -> None:
    api = ScriptedApi(certificate)
    await api.start()
    async with Client.from_kubeconfig(api.kubeconfig(folder)) as client:
        day = Day(api, client)
        day.informer.subscribe(day.note)
        running = asyncio.create_task(day.informer.run())
        try:
            for what, how in steps:
                await day.step(what, how)
            # Without a last change nobody could tell a cache that follows from one that stopped.
            api.put("last", 1)
            async with asyncio.timeout(60):
                while not day.agrees():  # noqa: ASYNC110 - the agreement has no event of its own
                    await asyncio.sleep(0.005)
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.wait([running])
            await api.stop()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, max_size=25))
def test_the_cache_equals_the_api_after_any_day(steps: list[tuple[str, object]], certificate: Certificate):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(steps, certificate, Path(folder)))
