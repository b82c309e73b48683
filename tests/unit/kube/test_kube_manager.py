"""All parts together: an operator in miniature that keeps its promises through a bad day."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from kube_scripted_api import WIDGET, ScriptedApi, Widget, status
from prometheus_client import REGISTRY

from ingot.api.meta import Key, Model, Resource
from ingot.kube import Again, Backoff, Change, Client, Controller, Done, Informer, Manager

Eventually = Callable[[Callable[[], bool]], Awaitable[None]]


class DoubledStatus(Model):
    doubled: int | None = None


class DoubledWidget(Widget):
    status: DoubledStatus = DoubledStatus()


DOUBLED = Resource(
    group=WIDGET.group, version=WIDGET.version, kind=WIDGET.kind, plural=WIDGET.plural, type=DoubledWidget
)


class Doubler:
    """For every widget writes status.doubled = 2 * spec.size, by the rules: version in the patch, answer observed."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.informer = Informer(client, DOUBLED, backoff=Backoff(first=0.01, limit=0.1))
        self.controller = Controller("doubler", self.reconcile, workers=4)
        self.informer.subscribe(self.changed)
        self.before_sync = 0
        self.writes = 0

    def changed(self, change: Change[DoubledWidget]) -> None:
        self.controller.wake(change.key, low=change.initial)

    async def reconcile(self, key: Key) -> Done | Again:
        found = self.informer.get(key)
        if found is None or found.status.doubled == found.spec.size * 2:
            return Done()
        patch = {"status": {"doubled": found.spec.size * 2}}
        written = await self.client.patch(
            DOUBLED, key, patch, resource_version=found.metadata.resource_version
        )
        self.writes += 1
        self.informer.observe(written)
        return Done()


def settled(api: ScriptedApi) -> bool:
    return all(
        body.get("status", {}).get("doubled") == body["spec"]["size"] * 2 for body in api.objects.values()
    )


async def test_an_operator_converges_through_restarts_compactions_and_cuts(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    for number in range(50):
        api.put(f"w{number}", number)
    doubler = Doubler(client)
    manager = Manager([doubler.informer], [doubler.controller])
    task = asyncio.create_task(manager.run())
    await manager.started()
    await eventually(lambda: settled(api))
    for trouble in (lambda: api.cut("abort"), lambda: api.cut("midline"), lambda: (api.cut(), api.forget())):
        trouble()
        for number in range(50):
            api.put(f"w{number}", number + 100)
        await eventually(lambda: settled(api))
    await api.stop()
    api.put("w0", 1)
    await asyncio.sleep(0.1)
    await api.start()
    await eventually(lambda: settled(api))
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_host_that_does_not_change_is_written_once(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    for number in range(20):
        api.put(f"w{number}", number)
    doubler = Doubler(client)
    task = asyncio.create_task(Manager([doubler.informer], [doubler.controller]).run())
    await eventually(lambda: settled(api))
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.wait([task])
    assert doubler.writes == 20
    assert len(api.requests("PATCH")) == 20


async def test_controllers_wait_until_every_cache_is_filled(
    api: ScriptedApi, client: Client, eventually: Eventually
):
    api.put("one", 1)
    informer = Informer(client, WIDGET)
    seen: list[bool] = []

    async def reconcile(key: Key) -> Done | Again:
        seen.append(informer.get(Key("default", "one")) is not None)
        return Done()

    controller = Controller("early", reconcile)
    controller.wake(Key("default", "one"))
    other: list[str] = []

    async def task_of_mine() -> None:
        other.append("started")

    manager = Manager([informer], [controller], tasks=[task_of_mine])
    running = asyncio.create_task(manager.run())
    async with asyncio.timeout(60):
        await manager.started()
    await eventually(lambda: bool(seen and other))
    running.cancel()
    await asyncio.wait([running])
    assert seen == [True]
    assert other == ["started"]


async def test_a_part_that_breaks_stops_the_whole(api: ScriptedApi, client: Client):
    async def broken() -> None:
        raise RuntimeError("a bug")

    manager = Manager([Informer(client, WIDGET)], [], tasks=[broken])
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="a bug")):
        await manager.run()


async def test_what_holds_up_the_event_loop_shows_in_its_lag(api: ScriptedApi, client: Client):
    import time

    def slow() -> float:
        total = REGISTRY.get_sample_value("ingot_event_loop_lag_seconds_count") or 0
        quick = REGISTRY.get_sample_value("ingot_event_loop_lag_seconds_bucket", {"le": "0.1"}) or 0
        return total - quick

    before = slow()
    task = asyncio.create_task(Manager().run())
    await asyncio.sleep(0.1)
    time.sleep(0.8)  # noqa: ASYNC251 - this is the very thing to be noticed
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
    assert slow() > before


async def test_who_waits_for_its_caches_says_why(api: ScriptedApi, client: Client, eventually: Eventually):
    async def refuse(request: web.Request) -> web.Response:
        api.faults.append(refuse)
        answer: web.Response = await status(403, "Forbidden", "you may not list widgets")(request)
        return answer

    api.faults.append(refuse)
    manager = Manager([Informer(client, WIDGET)])
    task = asyncio.create_task(manager.run())
    await eventually(
        lambda: manager.trouble == "the caches are not filled yet; Widgets: you may not list widgets"
    )
    task.cancel()
    await asyncio.wait([task])
