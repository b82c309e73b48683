"""Push: who may speak, what a message means, and what is done with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import aiohttp
import pytest
from fake_plugin import FakePlugin
from ironic_orders import NODE, until

from ingot.api.meta import Key
from ingot.provisioner import EVERYTHING, Busy, Power, PowerOffMode, Ready
from ingot.provisioner.ironic import IronicProvisioner
from ingot.provisioner.ironic.push import PushEvent, PushLedger, PushMessage
from ingot.trust import client_context


def message(first: int, *seqs: int, sender: str = "s", gap: bool = False) -> PushMessage:
    return PushMessage(sender, first, gap, {}, [PushEvent(seq, f"u{seq}") for seq in seqs])


@pytest.mark.parametrize(
    ("messages", "fresh", "missed"),
    [
        ([message(1, 1)], [1], True),
        ([message(1, 1), message(2, 2, 3)], [2, 3], False),
        ([message(1, 1), message(2)], [], False),
        ([message(1, 1), message(3, 3)], [3], True),
        ([message(1, 1), message(3)], [], True),
        ([message(1, 1, 2), message(1, 1, 2)], [], False),
        ([message(1, 1, 2), message(2, 2, 3)], [3], False),
        ([message(1, 1), message(2, 2, gap=True)], [2], True),
        ([message(1, 1), message(2, 3, 2)], [2, 3], False),
        ([message(1, 1), message(2, 2, 4)], [2, 4], True),
        ([message(1, 1), message(1, 1, sender="t")], [1], True),
        ([message(1, 1), message(1, 1, sender="t"), message(2, 2)], [2], False),
    ],
)
def test_the_ledger_knows_what_is_new_and_whether_something_was_missed(messages, fresh, missed):
    ledger = PushLedger()
    for one in messages:
        news = ledger.enter(one)
    assert [event.seq for event in news.events] == fresh
    assert news.missed is missed


def test_a_message_as_the_plugin_writes_it_is_understood():
    import msgspec

    text = (
        b'{"sender":"h-1-x","first":17,"gap":false,"patches":{"save_hook":true},"events":[{"seq":17,"uuid":"u",'
        b'"name":"ns~n","deleted":false,"fields":{"provision_state":"active","clean_step":null}}]}'
    )
    read = msgspec.json.decode(text, type=PushMessage)
    assert read.complete
    assert read.events[0].fields["provision_state"] == "active"


async def post(backend: IronicProvisioner, ca_file, body: bytes, token: str | None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    connector = aiohttp.TCPConnector(ssl=client_context(ca_file))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post(f"https://127.0.0.1:{backend.push_port}/v1/push", data=body, headers=headers) as answer,
    ):
        return answer.status


async def test_only_the_token_opens_the_door(backend, listen, certificate):
    good = b'{"sender":"s","first":1,"events":[]}'
    assert await post(backend, certificate.ca_file, good, None) == 401
    assert await post(backend, certificate.ca_file, good, "wrong") == 401
    assert not backend.push_is_heard
    assert await post(backend, certificate.ca_file, good, listen.token.reveal()) == 204
    assert backend.push_is_heard


async def test_what_is_no_push_message_is_refused_and_harms_nobody(backend, listen, certificate):
    token = listen.token.reveal()
    assert await post(backend, certificate.ca_file, b"{]", token) == 400
    assert await post(backend, certificate.ca_file, b'{"sender":1,"first":"x"}', token) == 400
    assert await post(backend, certificate.ca_file, b'{"sender":"s","first":1}', token) == 204


async def next_change(stream, wanted):
    async with asyncio.timeout(20):
        async for change in stream:
            if change == wanted:
                return change
    return None


async def test_a_change_in_ironic_wakes_exactly_its_host(backend, ironic, plugin):
    ironic.add_node(NODE)
    ironic.add_node("rack~h2")
    plugin.heartbeat()
    await plugin.delivered()
    await listed(backend, ironic)
    stream = backend.changes()
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    ironic.change(NODE, provision_state="active")
    async with asyncio.timeout(20):
        assert await waiting == Key("rack", "h1")


async def listed(backend, ironic, times: int = 2) -> None:
    """The list that the first message of a new sender asks for is through."""
    await until(lambda: ironic.asked("GET /v1/nodes") >= 2 * times)


async def test_a_lost_event_shows_in_the_numbers_and_everything_is_looked_at(backend, ironic, plugin, host):
    node = ironic.add_node(NODE)
    plugin.heartbeat()
    await plugin.delivered()
    await listed(backend, ironic)
    stream = backend.changes()
    waiting = asyncio.ensure_future(next_change(stream, EVERYTHING))
    await asyncio.sleep(0)
    plugin.lossy = True
    ironic.change(NODE, provision_state="deploying", power_state="power on")
    plugin.lossy = False
    plugin.heartbeat()
    assert await waiting is EVERYTHING
    assert (await backend.vitals(host)).powered_on is True
    assert node["provision_state"] == "deploying"


async def test_an_ironic_that_was_restarted_is_listed_anew(backend, ironic, plugin, listen, certificate):
    ironic.add_node(NODE)
    plugin.heartbeat()
    await plugin.delivered()
    await listed(backend, ironic)
    stream = backend.changes()
    waiting = asyncio.ensure_future(next_change(stream, EVERYTHING))
    await asyncio.sleep(0)
    reborn = FakePlugin(backend.push_port, listen.token, certificate.ca_file, sender="ironic-2-def")
    reborn.heartbeat()
    assert await waiting is EVERYTHING
    await reborn.stop()


async def test_a_node_deleted_behind_our_back_wakes_its_host(backend, ironic, plugin):
    node = ironic.add_node(NODE)
    plugin.heartbeat()
    await plugin.delivered()
    await listed(backend, ironic)
    waiting = asyncio.ensure_future(next_change(backend.changes(), Key("rack", "h1")))
    await asyncio.sleep(0)
    del ironic.nodes[node["uuid"]]
    ironic.on_change(node, True)
    assert await waiting


async def test_a_list_that_was_under_way_does_not_undo_a_push(backend, ironic, plugin, host, guard):
    """The list is read from the database, then a node changes and is pushed, then the old list arrives."""
    ironic.add_node(NODE, "active", power_state="power off")
    plugin.heartbeat()
    await plugin.delivered()
    await listed(backend, ironic)
    pushed = asyncio.Event()

    async def change_while_the_list_travels() -> None:
        if not pushed.is_set():
            pushed.set()
            ironic.change(NODE, power_state="power on")
            await plugin.delivered()

    ironic.before_list_answer = change_while_the_list_travels
    waiting = asyncio.ensure_future(next_change(backend.changes(), EVERYTHING))
    await asyncio.sleep(0)
    plugin.send({"sender": plugin.sender, "first": 1, "gap": True, "events": []})
    await waiting
    assert pushed.is_set()
    assert (await backend.vitals(host)).powered_on is True


async def test_without_push_what_is_in_flight_is_seen_by_the_list(backend, ironic, host, guard):
    ironic.add_node(NODE, "active", power_state="power off")
    await backend.set_power(host, Power.ON, mode=PowerOffMode.HARD, permit=guard, again=False)
    await backend.vitals(host)
    stream = backend.changes()
    waiting = asyncio.ensure_future(next_change(stream, Key("rack", "h1")))
    await asyncio.sleep(0)
    ironic.change(NODE, power_state="power on", target_power_state=None)
    assert await waiting
    assert (await backend.vitals(host)).powered_on is True


async def test_the_stream_ends_when_the_back_end_is_closed(where):
    async with IronicProvisioner(where) as backend:
        stream = backend.changes()
        waiting = asyncio.ensure_future(_all(stream))
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await waiting


async def _all(stream) -> list:
    return [change async for change in stream]


async def test_a_plugin_that_lost_its_hook_does_not_count_as_push(backend, plugin):
    plugin.send({"sender": "s", "first": 1, "patches": {"save_hook": False}, "events": []})
    await plugin.delivered()
    assert plugin.answers == [204]
    assert not backend.push_is_heard


async def test_a_pass_over_a_host_that_nothing_happens_to_asks_ironic_for_nothing(
    backend, ironic, plugin, host, access, guard
):
    """What a controller does in each pass of a host at rest: register, vitals, power. The peer pays three requests for it."""
    await backend.register(host, access, credentials_changed=True, again=False)
    ironic.finish(NODE)
    await plugin.delivered()
    answer = await backend.register(host, access, credentials_changed=True, again=False)
    while isinstance(answer, Busy):
        await asyncio.sleep(0.01)
        answer = await backend.register(host, access, credentials_changed=False, again=False)
    known = replace(host, backend_id=answer.value.backend_id)
    ironic.change(NODE, provision_state="active", power_state="power on", instance_uuid=host.uid)
    await plugin.delivered()
    await backend.register(known, access, credentials_changed=False, again=False)
    await backend.adopt(known, None, permit=guard, again=False)
    before = [request for request in ironic.requests if request != "GET /v1/nodes"]
    for _ in range(20):
        assert isinstance(
            await backend.register(known, access, credentials_changed=False, again=False), Ready
        )
        assert (await backend.vitals(known)).powered_on is True
    assert [request for request in ironic.requests if request != "GET /v1/nodes"] == before


async def test_push_heals_after_the_operator_was_restarted(where, ironic, listen, certificate, host):
    """Ironic goes on with the numbers it had; who begins in the middle of them knows that it missed something."""
    ironic.add_node(NODE, "active", power_state="power off")
    async with IronicProvisioner(where, listen) as first:
        sender = FakePlugin(first.push_port, listen.token, certificate.ca_file)
        ironic.on_change = sender.changed
        ironic.change(NODE, health="OK")
        await sender.delivered()
        await until(lambda: first.push_is_heard)
        await sender.stop()
    async with IronicProvisioner(where, listen) as second:
        again = FakePlugin(second.push_port, listen.token, certificate.ca_file)
        again._seq = 41
        ironic.on_change = again.changed
        waiting = asyncio.ensure_future(next_change(second.changes(), Key("rack", "h1")))
        await asyncio.sleep(0)
        ironic.change(NODE, power_state="power on")
        assert await waiting
        assert second.push_is_heard
        assert (await second.vitals(host)).powered_on is True
        await again.stop()


async def test_a_node_of_which_nothing_was_heard_since_it_was_read_is_not_read_again(
    backend, ironic, plugin, host, guard
):
    node = ironic.add_node(NODE, "active", power_state="power on")
    plugin.heartbeat()

    async def reads() -> int:
        """How often the node is read for something that is so already."""
        before = ironic.asked(f"GET /v1/nodes/{NODE}")
        answer = await backend.set_power(host, Power.ON, mode=PowerOffMode.HARD, permit=guard, again=False)
        assert answer == Ready(None)
        return ironic.asked(f"GET /v1/nodes/{NODE}") - before

    async with asyncio.timeout(60):
        # All nodes are listed first, because this plugin was never heard before.
        while await reads():  # noqa: ASYNC110 - what ends it is the back end's own business
            await asyncio.sleep(0.05)
    ironic.change(NODE, last_error="something happened")
    await plugin.delivered()
    assert [await reads(), await reads()] == [1, 0]
    # Somebody changed its record, of which the news says only that it is another.
    plugin.changed(node, deleted=False)
    await plugin.delivered()
    assert await reads() == 1


async def test_without_push_a_node_is_read_each_time(backend, ironic, host, guard):
    ironic.add_node(NODE, "active", power_state="power on")
    for times in (1, 2, 3):
        await backend.set_power(host, Power.ON, mode=PowerOffMode.HARD, permit=guard, again=False)
        assert ironic.asked(f"GET /v1/nodes/{NODE}") == times
