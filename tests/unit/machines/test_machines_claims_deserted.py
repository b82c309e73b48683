"""Hosts whose claim was torn away from them: what the tenant had on them does not stay, and nobody else's is touched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from claims_room import IMAGE, OTHER_IMAGE, Dead, Room, consumer, opened

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.meta import Key
from ingot.embedded.server import Running
from ingot.kube import Done
from ingot.machines.claims.linking import TAKEN_FOR

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def room(machine_api: Running) -> AsyncIterator[Room]:
    async with opened(machine_api) as room:
        yield room


async def taken(room: Room, name: str = "1") -> tuple[Key, Key]:
    """A claim and its host, on which what is asked for runs."""
    await room.secret("words", userData="of the tenant")
    host = await room.host(f"h{name}", labels={"name": name})
    claim = await room.claim(
        f"c{name}", userData={"name": "words"}, hostSelector={"matchLabels": {"name": name}}
    )
    await room.rest(claim)
    await room.bring(host, "provisioned")
    await room.rest(claim)
    assert await room.hosts_of(claim) == [host.name]
    return claim, host


def is_empty(host: BareMetalHost) -> bool:
    return host.spec.image is None and host.spec.user_data is None and not host.spec.online


def is_as_it_was(host: BareMetalHost) -> bool:
    return host.spec.consumer_ref is not None and host.spec.image is not None and host.spec.online


async def test_a_host_is_emptied_and_released_when_its_claim_was_torn_away(room: Room) -> None:
    await room.policy()
    claim, host = await taken(room)
    async with room.operator(settled=0.0):
        await room.tear_away(claim)
        emptied = await room.until_host(host, is_empty)
        assert emptied.spec.consumer_ref is not None
        message = await room.until_event(room.racks, "ConsumerGone")
        assert str(claim) in message
        assert "it is emptied and released" in message
        await room.bring(host, "deprovisioning")
        assert (await room.get_host(host)).spec.consumer_ref is not None
        await room.bring(host, "available")
        await room.until_host(host, lambda found: found.spec.consumer_ref is None)
        following = await room.claim("c2", image=OTHER_IMAGE)
        await room.until_told(following, "Associated", "True")
    assert await room.copies() == []


async def test_a_claim_that_was_torn_away_while_nobody_looked_is_found_out_by_the_next_operator(
    room: Room,
) -> None:
    await room.policy()
    claim, host = await taken(room)
    await room.tear_away(claim)
    async with room.operator(settled=0.0):
        await room.until_host(host, is_empty)
        await room.bring(host, "available")
        freed = await room.until_host(host, lambda found: found.spec.consumer_ref is None)
    assert freed.metadata.annotations == {}
    assert await room.copies() == []


@pytest.mark.parametrize("unheard", [False, True])
async def test_an_operator_that_dies_while_it_lets_such_a_host_go_is_followed_by_one_that_ends_it(
    room: Room, unheard: bool
) -> None:
    await room.policy()
    for number in range(10):
        claim, host = await taken(room, str(number))
        await room.tear_away(claim)
        # Whatever is written is written at once.
        await room.bring(host, "available")
        died = False
        async with room.operator(works=False, writes=number, unheard=unheard, settled=0.0) as operator:
            try:
                await operator.once(claim)
            except Dead:
                died = True
        await room.rest(claim, settled=0.0)
        freed = await room.get_host(host)
        assert freed.spec.consumer_ref is None
        assert is_empty(freed)
        assert await room.copies() == []
        if not died:
            assert number > 2
            return
    raise AssertionError("it never comes to an end")


async def test_a_host_is_left_alone_until_its_claim_has_been_gone_for_a_while(room: Room) -> None:
    """Whoever made a mistake makes the claim anew, and has the host again."""
    await room.policy()
    claim, host = await taken(room)
    await room.tear_away(claim)
    async with room.operator(works=False, settled=600.0) as operator:
        for _ in range(3):
            again = await operator.once(claim)
            assert not isinstance(again, Done)
        assert operator.pen.written == []
    await room.claim("c1")
    await room.host("h2")
    await room.rest(claim)
    assert await room.hosts_of(claim) == [host.name]
    found = await room.get_host(host)
    assert is_as_it_was(found)
    assert (await room.get(claim)).metadata.uid in found.metadata.annotations[TAKEN_FOR]


async def test_a_claim_that_a_cache_does_not_know_keeps_its_host(room: Room) -> None:
    await room.policy()
    async with room.operator(works=False, settled=0.0) as deaf:
        await deaf.go_deaf()
        claim, host = await taken(room)
        deaf.hosts.observe(await room.get_host(host))
        assert await deaf.once(claim) == Done()
        assert deaf.pen.written == []
    assert is_as_it_was(await room.get_host(host))


async def test_a_name_that_somebody_wrote_on_a_host_is_told_about_and_nothing_is_done(room: Room) -> None:
    host = await room.host(state="provisioned", online=True, image=IMAGE, consumerRef=consumer(room, "c1"))
    async with room.operator(settled=0.0) as operator:
        message = await room.until_event(room.racks, "ConsumerGone")
        assert f"names HostClaim {room.tenant}/c1, which does not exist" in message
        assert await operator.once(Key(room.tenant, "c1")) == Done()
    assert is_as_it_was(await room.get_host(host))


async def test_a_host_that_comes_back_from_a_backup_before_its_claim_is_left_alone(room: Room) -> None:
    await room.policy()
    claim, host = await taken(room)
    kept = await room.get_host(host)
    await room.tear_away(claim)
    await room.client.delete(BARE_METAL_HOSTS, host)
    await room.until_gone(host, BARE_METAL_HOSTS)
    image = {"image": IMAGE, "online": True, "consumerRef": consumer(room, "c1")}
    await room.host("h1", state="provisioned", **image)
    mark = {TAKEN_FOR: kept.metadata.annotations[TAKEN_FOR]}
    await room.client.patch(BARE_METAL_HOSTS, host, {"metadata": {"annotations": mark}})
    async with room.operator(settled=0.0):
        assert "does not exist" in await room.until_event(room.racks, "ConsumerGone")
        assert is_as_it_was(await room.get_host(host))
        await room.claim("c1")
        await room.until_told(claim, "Associated", "True", "h1")
    assert is_as_it_was(await room.get_host(host))


async def test_another_claim_of_the_name_that_wants_another_host_does_not_have_both(room: Room) -> None:
    """Torn away and made anew, for hosts of elsewhere: a quota of one would be good for two."""
    await room.policy()
    claim, host = await taken(room)
    cellar = await room.another_namespace()
    await room.policy(namespace=cellar)
    await room.host("h2", namespace=cellar)
    await room.tear_away(claim)
    await room.claim("c1", hostSelector={"inNamespace": cellar})
    async with room.operator():
        await room.until_told(claim, "Associated", "True", "h2")
        await room.until_host(host, is_empty)
        await room.bring(host, "available")
        await room.until_host(host, lambda found: found.spec.consumer_ref is None)
    assert await room.hosts_of(claim) == ["h2"]
    assert await room.copies() == []


async def test_a_claim_that_goes_lets_go_of_what_others_of_its_name_had(room: Room) -> None:
    policy = await room.policy()
    claim, host = await taken(room)
    await room.tear_away(claim)
    await room.client.delete(HOST_DEPLOY_POLICIES, policy)
    with suppress(Dead):
        async with room.operator(works=False, writes=1) as first:
            await room.claim("c1")
            await first.once(claim)
    await room.bring(host, "available")
    await room.rest(claim)
    assert (await room.get_host(host)).spec.consumer_ref is None
