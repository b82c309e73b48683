"""Subscriptions through the Ironic back end: found before one is made, and headers that are never repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic
from ironic_orders import NODE

from ingot.provisioner import Busy, Failed, HostRef, NotRegistered, Ready, Subscription
from ingot.provisioner.ironic.client import LOCK_PAUSES
from ingot.trust import Secret

WANTED = Subscription(
    destination="https://collector.example/events",
    context="rack 7",
    headers={"Authorization": Secret("tok3n")},
)


@pytest.fixture
def known(ironic: FakeIronic, host: HostRef) -> HostRef:
    info = {"redfish_address": "https://127.0.0.1:8443"}
    return replace(host, backend_id=ironic.add_node(NODE, driver_info=info)["uuid"])


async def test_a_subscription_is_made_with_its_headers_and_then_found(backend, ironic, known):
    assert await backend.subscribe(known, WANTED, again=False) == Ready("1")
    assert ironic.media.subscriptions["1"]["Context"] == "rack 7"
    assert ironic.media.headers == [{"Authorization": "tok3n"}]
    assert await backend.subscribe(known, WANTED, again=False) == Ready("1")
    other = replace(WANTED, context="rack 8")
    assert await backend.subscribe(known, other, again=False) == Ready("2")


async def test_a_subscription_is_ended_and_one_that_is_not_there_is_ended_already(backend, ironic, known):
    await backend.subscribe(known, WANTED, again=False)
    assert await backend.unsubscribe(known, "1", again=False) == Ready(None)
    assert ironic.media.subscriptions == {}
    assert await backend.unsubscribe(known, "1", again=False) == Ready(None)
    assert ironic.asked("DELETE") == 1


async def test_what_the_bmc_says_is_told_without_the_headers(backend, ironic, known):
    ironic.media.error = "HTTP POST returned code 400: bad header Authorization: tok3n"
    answer = await backend.subscribe(known, WANTED, again=False)
    assert isinstance(answer, Failed)
    assert "returned code 400" in answer.message
    assert "tok3n" not in answer.message


async def test_subscriptions_of_another_sort_are_not_ours(backend, ironic, known):
    ironic.media.subscriptions["stream"] = {"Id": "stream"}
    assert await backend.subscribe(known, WANTED, again=False) == Ready("1")
    assert await backend.subscribe(known, WANTED, again=False) == Ready("1")


async def test_a_bmc_without_an_event_service_is_told_as_such(backend, ironic, known):
    ironic.media.error = "The attribute EventService/@odata.id is missing from the resource /redfish/v1/"
    answer = await backend.subscribe(known, WANTED, again=False)
    assert isinstance(answer, Failed)
    assert answer.message.startswith(
        "the management controller has no event service, so it cannot send events: "
    )


async def test_a_bmc_that_cannot_end_a_subscription_has_not_ended_it(backend, ironic, known):
    """Ironic answers 404 whatever went wrong; that is not the same as "there is none"."""
    await backend.subscribe(known, WANTED, again=False)
    ironic.media.error = "Unable to connect to https://127.0.0.1:8443"
    assert isinstance(await backend.unsubscribe(known, "1", again=False), Failed)


async def test_a_node_that_is_locked_for_long_is_asked_again(backend, ironic, known):
    ironic.locks_left = len(LOCK_PAUSES) + 1
    assert isinstance(await backend.subscribe(known, WANTED, again=False), Busy)


@pytest.mark.parametrize("state", ["enroll", "verifying"])
async def test_a_node_that_is_not_under_management_is_not_asked(backend, ironic, known, state):
    ironic.change(NODE, provision_state=state)
    assert isinstance(await backend.subscribe(known, WANTED, again=False), NotRegistered)
    assert isinstance(await backend.unsubscribe(known, "1", again=False), NotRegistered)
    assert ironic.asked("vendor_passthru") == 0


async def test_a_node_that_is_gone_is_not_registered(backend, ironic, known):
    ironic.lose_database()
    assert isinstance(await backend.subscribe(known, WANTED, again=False), NotRegistered)
