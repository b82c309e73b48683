"""BMCEventSubscription: made once, by its host's name and not its own; waits by watch; ended before it goes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from scripted import ScriptedBackend

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    BareMetalHostStatus,
    OperationalStatus,
    ProvisionStatus,
)
from ingot.api.bmceventsubscription import BMC_EVENT_SUBSCRIPTIONS, FINALIZER, BMCEventSubscription
from ingot.api.core import EVENTS, SECRETS
from ingot.api.meta import Key
from ingot.api.wire import wire
from ingot.hosts import SubscriptionController
from ingot.hosts.subscriptions.subscribing import SubscriptionReconciler
from ingot.kube import (
    Again,
    Change,
    Client,
    Done,
    EventRecorder,
    Informer,
    Invalid,
    Manager,
    NotFound,
    metadata_of,
)
from ingot.provisioner import Busy, Failed, HostRef, NotRegistered, Ready, Subscription

DESTINATION = "https://collector.example/events"


class Desk:
    """What a test does with subscriptions."""

    def __init__(self, client: Client, recorder: EventRecorder, namespace: str) -> None:
        self.namespace = namespace
        self.h1 = Key(namespace, "h1")
        self.alerts = Key(namespace, "alerts")
        self.client = client
        self.recorder = recorder
        self.backend = ScriptedBackend()
        self.writes: list[str] = []
        """Versions of the subscription that are not the first one."""
        self.reconcile: SubscriptionReconciler | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """An operator begins: nothing is in its memory."""
        hosts = Informer(self.client, BARE_METAL_HOSTS, namespace=self.namespace)
        secrets = Informer(self.client, metadata_of(SECRETS), namespace=self.namespace)
        controller = SubscriptionController(
            self.client, self.backend, self.recorder, hosts=hosts, secrets=secrets, namespace=self.namespace
        )
        controller.subscriptions.subscribe(self._seen)
        self.reconcile = controller.reconciler
        manager = Manager([hosts, secrets, *controller.informers], [controller.controller])
        self._running = asyncio.create_task(manager.run())
        await manager.started()

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _seen(self, change: Change[BMCEventSubscription]) -> None:
        if change.old is not None and change.new is not None:
            self.writes.append(change.new.metadata.resource_version)

    async def host(self, *, registered: bool = True) -> None:
        spec = {"online": True, "bmc": {"address": "redfish://127.0.0.1/x", "credentialsName": "c"}}
        await self.client.create(
            BARE_METAL_HOSTS, {"metadata": {"name": "h1"}, "spec": spec}, namespace=self.namespace
        )
        if registered:
            await self.register()

    async def register(self, status: OperationalStatus = OperationalStatus.OK) -> None:
        made = BareMetalHostStatus(provisioning=ProvisionStatus(id="node-1"), operational_status=status)
        await self.client.patch(BARE_METAL_HOSTS, self.h1, {"status": wire(made)}, subresource="status")

    async def subscription(self, name: str = "alerts", **spec: Any) -> Key:
        body = {"metadata": {"name": name}, "spec": {"hostName": "h1", "destination": DESTINATION} | spec}
        await self.client.create(BMC_EVENT_SUBSCRIPTIONS, body, namespace=self.namespace)
        return Key(self.namespace, name)

    async def secret(self, **values: str) -> None:
        body = {"metadata": {"name": "headers"}, "stringData": values}
        await self.client.create(SECRETS, body, namespace=self.namespace)

    async def get(self, key: Key | None = None) -> BMCEventSubscription:
        return await self.client.get(BMC_EVENT_SUBSCRIPTIONS, key or self.alerts)

    async def delete(self, key: Key | None = None) -> None:
        await self.client.delete(BMC_EVENT_SUBSCRIPTIONS, key or self.alerts)

    async def until(
        self, condition: Callable[[BMCEventSubscription], bool], key: Key | None = None
    ) -> BMCEventSubscription:
        last: BMCEventSubscription | None = None
        try:
            async with asyncio.timeout(60):
                while True:
                    last = await self.get(key)
                    if condition(last):
                        return last
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(
                f"{key or self.alerts} never came there; its status is {last and last.status}"
            ) from None

    async def until_made(self, key: Key | None = None) -> BMCEventSubscription:
        return await self.until(lambda found: bool(found.status.subscription_id), key)

    async def until_error(self, fragment: str) -> BMCEventSubscription:
        return await self.until(lambda found: fragment in found.status.error)

    async def until_gone(self, key: Key | None = None) -> None:
        async with asyncio.timeout(60):
            while True:
                try:
                    await self.get(key)
                except NotFound:
                    return
                await asyncio.sleep(0.02)

    async def until_asked(self, verb: str, times: int = 1) -> None:
        async with asyncio.timeout(60):
            while self.backend.asked[verb] < times:  # noqa: ASYNC110 - the back end has no event for us
                await asyncio.sleep(0.02)

    @property
    def at_the_bmc(self) -> list[str]:
        return list(self.backend.machines[self.h1].subscriptions)


@pytest_asyncio.fixture(loop_scope="session")
async def desk(client: Client, namespace: str) -> AsyncIterator[Desk]:
    async with EventRecorder(client) as recorder:
        desk = Desk(client, recorder, namespace)
        await desk.start()
        yield desk
        await desk.stop()


async def test_a_subscription_is_made_with_two_writes(desk: Desk) -> None:
    await desk.host()
    await desk.subscription(context="rack 7")
    made = await desk.until_made()
    assert made.status.error == ""
    assert FINALIZER in made.metadata.finalizers
    wanted = desk.backend.machines[desk.h1].subscriptions[made.status.subscription_id]
    assert (wanted.destination, wanted.context) == (DESTINATION, "rack 7")
    await asyncio.sleep(0.3)
    assert len(desk.writes) == 2


async def test_a_host_of_another_name_wakes_its_subscription(desk: Desk) -> None:
    """Elsewhere in Metal3 a host wakes the subscription of its own name only."""
    await desk.subscription("named-otherwise")
    key = Key(desk.namespace, "named-otherwise")
    waiting = await desk.until(lambda found: bool(found.status.error), key)
    assert "BareMetalHost h1 does not exist" in waiting.status.error
    await desk.host(registered=False)
    await desk.until(lambda found: "not registered yet" in found.status.error, key)
    assert not desk.backend.asked["subscribe"]
    await desk.register()
    made = await desk.until_made(key)
    assert made.status.error == ""


async def test_our_own_finalizer_is_not_a_change_of_a_subscription_with_headers(desk: Desk) -> None:
    """Elsewhere in Metal3 such a subscription can never get its finalizer while admission is asked."""
    await desk.host()
    await desk.secret(Authorization="Bearer abc")
    await desk.subscription(httpHeadersRef={"name": "headers"})
    made = await desk.until_made()
    assert FINALIZER in made.metadata.finalizers
    with pytest.raises(Invalid, match="cannot be changed"):
        await desk.client.patch(BMC_EVENT_SUBSCRIPTIONS, desk.alerts, {"spec": {"context": "other"}})


async def test_every_key_of_the_secret_is_a_header(desk: Desk) -> None:
    await desk.host()
    await desk.secret(Authorization="Bearer abc\n", **{"X-Rack": "7"})
    await desk.subscription(httpHeadersRef={"name": "headers"})
    made = await desk.until_made()
    headers = desk.backend.machines[desk.h1].subscriptions[made.status.subscription_id].headers
    assert {name: value.reveal() for name, value in headers.items()} == {
        "Authorization": "Bearer abc",
        "X-Rack": "7",
    }


async def test_a_secret_that_comes_later_is_noticed_by_watch(desk: Desk) -> None:
    await desk.host()
    await desk.subscription(httpHeadersRef={"name": "headers"})
    await desk.until_error("Secret headers, named by spec.httpHeadersRef, does not exist")
    await desk.secret(Authorization="Bearer abc")
    made = await desk.until_made()
    assert made.status.error == ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("X-Rack", "7\r\nX-Admin: yes", "line break"), ("X.y", "a\x00b", "control character")],
)
async def test_a_header_that_would_be_two_is_refused_without_showing_it(
    desk: Desk, name: str, value: str, words: str
) -> None:
    await desk.host()
    await desk.secret(**{name: value})
    await desk.subscription(httpHeadersRef={"name": "headers"})
    refused = await desk.until_error(words)
    assert "yes" not in refused.status.error
    assert not desk.at_the_bmc


async def test_a_failure_is_told_and_a_changed_secret_starts_over(desk: Desk) -> None:
    desk.backend.script("subscribe", Failed("the management controller has no event service"))
    await desk.host()
    await desk.secret(Authorization="wrong")
    await desk.subscription(httpHeadersRef={"name": "headers"})
    await desk.until_error("has no event service.")
    await asyncio.sleep(0.3)
    assert desk.backend.asked["subscribe"] == 1
    secret = {"stringData": {"Authorization": "right"}}
    await desk.client.patch(SECRETS, Key(desk.namespace, "headers"), secret)
    made = await desk.until_made()
    assert made.status.error == ""


async def test_a_secret_that_is_corrected_while_the_wrong_one_is_tried_starts_over(desk: Desk) -> None:
    secret = {"stringData": {"Authorization": "right"}}
    desk.backend.meanwhile["subscribe"] = functools.partial(
        desk.client.patch, SECRETS, Key(desk.namespace, "headers"), secret
    )
    desk.backend.script("subscribe", Failed("the receiver says 401"))
    await desk.host()
    await desk.secret(Authorization="wrong")
    await desk.subscription(httpHeadersRef={"name": "headers"})
    made = await desk.until_made()
    assert made.status.error == ""


async def test_while_the_host_is_detached_the_subscription_waits(desk: Desk) -> None:
    await desk.host(registered=False)
    await desk.register(OperationalStatus.DETACHED)
    await desk.subscription()
    await desk.until_error("is detached")
    assert not desk.backend.asked["subscribe"]


async def test_what_the_back_end_is_busy_with_is_waited_for_without_a_write(desk: Desk) -> None:
    desk.backend.script("subscribe", Busy("the node is locked"))
    await desk.host()
    await desk.subscription()
    await desk.until_asked("subscribe")
    assert (await desk.get()).status.error == ""


async def test_a_back_end_that_has_forgotten_the_host_is_told_and_asked_again_after_it_was_registered(
    desk: Desk,
) -> None:
    desk.backend.hold("subscribe", NotRegistered("Ironic does not know it any more"))
    await desk.host()
    await desk.subscription()
    await desk.until_error("Ironic does not know it any more.")
    desk.backend.let_go("subscribe")
    status = wire(BareMetalHostStatus(provisioning=ProvisionStatus(id="node-2")))
    await desk.client.patch(BARE_METAL_HOSTS, desk.h1, {"status": status}, subresource="status")
    assert (await desk.until_made()).status.error == ""


# Deletion


async def test_deleting_ends_the_subscription_first(desk: Desk) -> None:
    await desk.host()
    await desk.subscription()
    await desk.until_made()
    await desk.delete()
    await desk.until_gone()
    assert desk.at_the_bmc == []


async def test_a_subscription_that_waits_goes_at_once(desk: Desk) -> None:
    await desk.subscription()
    await desk.until_error("does not exist")
    await desk.delete()
    await desk.until_gone()


async def test_a_subscription_goes_with_its_host(desk: Desk) -> None:
    await desk.host()
    await desk.subscription()
    await desk.until_made()
    desk.backend.hold("unsubscribe", Failed("the BMC does not answer"))
    await desk.delete()
    told = await desk.until_error("the BMC does not answer")
    assert FINALIZER in told.metadata.finalizers
    await desk.client.delete(BARE_METAL_HOSTS, desk.h1)
    await desk.until_gone()


async def test_of_a_detached_host_the_subscription_stays_until_it_is_attached_again(desk: Desk) -> None:
    await desk.host()
    await desk.subscription()
    await desk.until_made()
    await desk.register(OperationalStatus.DETACHED)
    await desk.delete()
    await desk.until_error("is ended as soon as that changes")
    await desk.register()
    await desk.until_gone()
    assert desk.at_the_bmc == []


async def test_two_subscriptions_to_one_destination_do_not_end_each_other(desk: Desk) -> None:
    await desk.host()
    first = await desk.until_made(await desk.subscription("first"))
    second = await desk.until_made(await desk.subscription("second"))
    assert first.status.subscription_id == second.status.subscription_id
    await desk.delete(first.key)
    await desk.until_gone(first.key)
    assert desk.at_the_bmc
    await desk.delete(second.key)
    await desk.until_gone(second.key)
    assert desk.at_the_bmc == []


# Interruptions


async def test_an_operator_that_dies_before_it_wrote_the_id_makes_no_second_subscription(desk: Desk) -> None:
    await desk.host()
    desk.backend.hold("subscribe", Busy("under way"))
    await desk.subscription()
    await desk.until_asked("subscribe")
    await desk.stop()
    desk.backend.let_go("subscribe")
    await _made_behind_our_back(desk)
    await desk.start()
    made = await desk.until_made()
    assert desk.at_the_bmc == [made.status.subscription_id]


async def test_what_was_made_before_the_operator_died_is_ended_when_the_subscription_is_deleted(
    desk: Desk,
) -> None:
    await desk.host()
    desk.backend.hold("subscribe", Busy("under way"))
    await desk.subscription()
    await desk.until_asked("subscribe")
    await desk.stop()
    desk.backend.let_go("subscribe")
    await _made_behind_our_back(desk)
    await desk.delete()
    await desk.start()
    await desk.until_gone()
    assert desk.at_the_bmc == []


async def test_what_may_be_left_behind_is_told(desk: Desk) -> None:
    await desk.host()
    desk.backend.hold("subscribe", Failed("the BMC does not answer"))
    await desk.subscription()
    await desk.until_error("does not answer")
    await desk.delete()
    await desk.until_gone()
    await desk.recorder.close()
    events = (await desk.client.list(EVENTS, namespace=desk.namespace)).items
    assert [(event.type, event.reason) for event in events] == [("Warning", "SubscriptionLeftBehind")]
    assert DESTINATION in events[0].message


async def _made_behind_our_back(desk: Desk) -> None:
    """What an operator that was killed after the BMC's answer leaves: it is there, and nobody wrote down its name."""
    answer = await desk.backend.subscribe(
        HostRef(desk.h1, "uid", "node-1"), Subscription(destination=DESTINATION), again=False
    )
    assert isinstance(answer, Ready)


async def test_a_back_end_that_is_away_is_asked_again_and_nothing_is_written(desk: Desk) -> None:
    desk.backend.away = "Ironic does not answer"
    await desk.host()
    await desk.subscription()
    found = await desk.until(lambda found: FINALIZER in found.metadata.finalizers)
    assert desk.reconcile is not None
    assert isinstance(await desk.reconcile(desk.alerts), Again)
    assert (await desk.get()).metadata.resource_version == found.metadata.resource_version
    desk.backend.away = ""
    assert await desk.reconcile(desk.alerts) == Done()
    assert (await desk.get()).status.subscription_id
