"""Taking part in an election: what stands in the Lease, and what a bad API does to who leads."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from kube_scripted_api import WIDGET, ScriptedApi, hang_up, status
from prometheus_client import REGISTRY

from ingot.api.meta import Key
from ingot.kube import Client, Controller, Done, Elector, Informer, Manager, NotLeading, Timing

Eventually = Callable[[Callable[[], bool]], Awaitable[None]]
LEASE = Key("metal", "operator")
QUICK = Timing(retry=0.05)


class Clock:
    """Stands still unless the test moves it: a busy machine costs nobody the Lease."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def contender(api: ScriptedApi, tmp_path: Path, clock: Clock) -> Callable[[str], Elector]:
    kubeconfig = api.kubeconfig(tmp_path)

    def make(identity: str) -> Elector:
        return Elector(
            lambda: Client.from_kubeconfig(kubeconfig), LEASE, identity=identity, timing=QUICK, clock=clock
        )

    return make


def spec(api: ScriptedApi) -> dict[str, Any]:
    found: dict[str, Any] = api.objects["leases", LEASE]["spec"]
    return found


def renewals(api: ScriptedApi) -> int:
    return len([seen for seen in api.requests("PATCH") if "leases" in seen.path])


async def leads(elector: Elector) -> None:
    elector.contend()
    async with asyncio.timeout(60):
        await elector.leadership.acquired()


async def test_the_lease_holds_what_client_go_writes(
    api: ScriptedApi, contender: Callable[[str], Elector], eventually: Eventually
):
    async with contender("a") as a:
        await leads(a)
        await eventually(lambda: renewals(api) > 2)
        found = spec(api)
    micro_time = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
    assert found["holderIdentity"] == "a"
    assert found["leaseDurationSeconds"] == 15
    assert found["leaseTransitions"] == 0
    assert micro_time.fullmatch(found["acquireTime"])
    assert micro_time.fullmatch(found["renewTime"])
    assert found["acquireTime"] < found["renewTime"]


async def test_a_renewal_is_one_request(
    api: ScriptedApi, contender: Callable[[str], Elector], eventually: Eventually
):
    async with contender("a") as a:
        await leads(a)
        reads = len(api.requests("GET"))
        await eventually(lambda: renewals(api) > 5)
        assert len(api.requests("GET")) == reads


async def test_a_clean_stop_hands_over_at_once(
    api: ScriptedApi, contender: Callable[[str], Elector], eventually: Eventually
):
    async with contender("a") as a:
        await leads(a)
        async with contender("b") as b:
            b.contend()
            await eventually(lambda: b.holder == "a")
            assert not b.leadership.held
            await a.stop()
            assert a.leadership.over
            assert a.leadership.why_over == "the process is stopping and has handed over the Lease"
            await leads(b)
            assert spec(api)["leaseTransitions"] == 1
    assert spec(api)["holderIdentity"] == ""
    assert spec(api)["leaseDurationSeconds"] == 1


async def test_who_cannot_renew_stops_at_the_deadline_and_may_not_write(
    api: ScriptedApi, client: Client, tmp_path: Path, contender: Callable[[str], Elector], clock: Clock
):
    api.put("w", 1)
    async with contender("a") as a:
        await leads(a)
        async with Client.from_kubeconfig(tmp_path / "kubeconfig", guard=a.leadership.check) as guarded:
            key = Key("default", "w")
            await guarded.patch(WIDGET, key, {"spec": {"size": 2}})
            clock.now += 10.5
            assert not a.leadership.held
            sent = len(api.requests("PATCH"))
            with pytest.raises(NotLeading, match="not renewed in time"):
                await guarded.patch(WIDGET, key, {"spec": {"size": 3}})
            with pytest.raises(NotLeading):
                await guarded.delete(WIDGET, key)
            assert (await guarded.get(WIDGET, key)).spec.size == 2, "reads go on"
            assert len([seen for seen in api.requests("PATCH")[sent:] if "widgets" in seen.path]) == 0
        async with asyncio.timeout(60):
            assert "not renewed in time" in await a.leadership.ended()
    assert spec(api)["holderIdentity"] == "a", "what was lost is not released: it may be somebody else's"


async def test_a_write_that_is_put_off_is_not_repeated_after_the_loss(
    api: ScriptedApi, tmp_path: Path, contender: Callable[[str], Elector], clock: Clock
):
    api.put("w", 1)
    async with contender("a") as a:
        await leads(a)
        async with Client.from_kubeconfig(tmp_path / "kubeconfig", guard=a.leadership.check) as guarded:

            async def too_many(request: Any) -> Any:
                if "widgets" not in request.path:
                    # The election's: it passes, and the fault waits for the one it is meant for.
                    api.faults.append(too_many)
                    return await status(500, "InternalError")(request)
                clock.now += 11
                return await status(429, "TooManyRequests", Retry_After="1")(request)

            api.faults.append(too_many)
            with pytest.raises(NotLeading):
                await guarded.patch(WIDGET, Key("default", "w"), {"spec": {"size": 2}})
    assert len([seen for seen in api.requests("PATCH") if "widgets" in seen.path]) == 1


async def test_trouble_with_the_api_that_passes_costs_nothing(
    api: ScriptedApi, contender: Callable[[str], Elector], eventually: Eventually
):
    async with contender("a") as a:
        await leads(a)
        for fault in (
            status(500, "InternalError"),
            hang_up,
            status(409, "Conflict"),
            status(403, "Forbidden"),
        ):
            api.faults.append(fault)
            before = renewals(api)
            await eventually(lambda: not api.faults and renewals(api) > before + 1)  # noqa: B023 - awaited here
            assert a.leadership.held
        await api.stop()
        await eventually(lambda: bool(a.trouble))
        await api.start()
        await eventually(lambda: not a.trouble)
        assert a.leadership.held
        assert spec(api)["leaseTransitions"] == 0


async def test_an_api_that_does_not_answer_is_not_waited_for_longer_than_the_deadline(
    api: ScriptedApi, tmp_path: Path, eventually: Eventually
):
    kubeconfig = api.kubeconfig(tmp_path)
    timing = Timing(duration=3, renew_deadline=1.5, retry=0.1)
    async with Elector(lambda: Client.from_kubeconfig(kubeconfig), LEASE, timing=timing) as elector:
        await leads(elector)
        api.mute = True
        async with asyncio.timeout(60):
            await elector.leadership.ended()
        assert not elector.leadership.held


async def test_somebody_who_takes_the_lease_away_ends_the_work(
    api: ScriptedApi, contender: Callable[[str], Elector]
):
    async with contender("a") as a:
        await leads(a)
        api._store("leases", LEASE, {"spec": {**spec(api), "holderIdentity": "kubectl"}})
        async with asyncio.timeout(60):
            assert "held by kubectl" in await a.leadership.ended()
    assert spec(api)["holderIdentity"] == "kubectl"


async def test_a_kubeconfig_that_breaks_ends_the_election_with_a_sentence(tmp_path: Path):
    async with Elector(lambda: Client.from_kubeconfig(tmp_path / "none"), LEASE) as elector:
        elector.contend()
        async with asyncio.timeout(60):
            assert "there is no kubeconfig" in await elector.leadership.ended()
        with pytest.raises(NotLeading):
            await elector.leadership.acquired()


async def test_who_never_contended_has_nothing_to_stop(api: ScriptedApi, contender: Callable[[str], Elector]):
    async with contender("a") as a:
        pass
    assert not a.leadership.held
    assert not api.seen


async def test_who_cannot_fill_its_caches_does_not_contend(
    api: ScriptedApi, client: Client, contender: Callable[[str], Elector], eventually: Eventually
):
    async def not_served(request: Any) -> Any:
        api.faults.append(not_served)
        return await status(404, "NotFound", "the kind is not served")(request)

    api.faults.append(not_served)
    async with contender("a") as a:
        running = asyncio.create_task(Manager([Informer(client, WIDGET)], elector=a).run())
        await eventually(lambda: len(api.seen) > 3)
        running.cancel()
        await asyncio.wait([running])
    assert not [seen for seen in api.seen if "leases" in seen.path]


async def test_who_leads_is_a_metric(api: ScriptedApi, contender: Callable[[str], Elector]):
    def leading() -> float | None:
        return REGISTRY.get_sample_value("leader_election_master_status", {"name": "operator"})

    async with contender("a") as a:
        await leads(a)
        assert leading() == 1
    assert leading() == 0


async def test_a_standby_fills_its_caches_and_works_only_once_it_leads(
    api: ScriptedApi, client: Client, contender: Callable[[str], Elector], eventually: Eventually
):
    api.put("w", 1)
    informer, worked = Informer(client, WIDGET), asyncio.Event()

    async def reconcile(key: Key) -> Done:
        worked.set()
        return Done()

    controller = Controller("standby", reconcile)
    informer.subscribe(lambda change: controller.wake(change.key))
    prepared: list[bool] = []
    async with contender("a") as a:
        await leads(a)
        async with contender("b") as b:

            async def prepare() -> None:
                prepared.append(b.leadership.held)

            manager = Manager([informer], [controller], elector=b, prepare=prepare)
            running = asyncio.create_task(manager.run())
            await eventually(lambda: not manager.trouble and b.holder == "a")
            assert informer.get(Key("default", "w")) is not None
            assert not worked.is_set()
            await a.stop()
            async with asyncio.timeout(60):
                await worked.wait()
            assert prepared == [True]
            running.cancel()
            await asyncio.wait([running])


async def test_a_lost_lease_cuts_off_what_is_in_flight(
    api: ScriptedApi, client: Client, contender: Callable[[str], Elector], clock: Clock
):
    begun, ended = asyncio.Event(), []

    async def endless(key: Key) -> Done:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(key)
        return Done()

    controller = Controller("endless", endless, grace=3600)
    controller.wake(Key("default", "w"))
    async with contender("a") as a:
        running = asyncio.create_task(Manager([], [controller], elector=a).run())
        async with asyncio.timeout(60):
            await begun.wait()
            clock.now += 10
            with pytest.RaisesGroup(pytest.RaisesExc(NotLeading, match="not renewed in time")):
                await running
    assert ended == [Key("default", "w")]
