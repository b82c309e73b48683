"""Operators that die between any two writes, are deaf, or are two: a claim never has two hosts, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from claims_room import OTHER_IMAGE, Dead, Operator, Room, condition, opened

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.meta import Key
from ingot.embedded.server import Running
from ingot.kube import Conflict, NotFound

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def room(machine_api: Running) -> AsyncIterator[Room]:
    async with opened(machine_api) as room:
        yield room


async def wrong_with(room: Room, claim: Key) -> list[str]:
    """What is never so, whoever dies when: two hosts, a claimed host without its image, or one with an image and no claim."""
    found = []
    if len(await room.hosts_of(claim)) > 1:
        found.append("two hosts")
    for host in (await room.client.list(BARE_METAL_HOSTS, namespace=room.racks)).items:
        has_image, is_claimed = host.spec.image is not None, host.spec.consumer_ref is not None
        if has_image and not is_claimed:
            found.append(f"{host.metadata.name} has an image and no claim")
        if host.spec.user_data is not None:
            names = [one.metadata.name for one in await room.copies()]
            if host.spec.user_data.name not in names:
                found.append(f"{host.metadata.name} is told to read a Secret that is not there")
    return found


async def dies(room: Room, claim: Key, *, writes: int, unheard: bool) -> bool:
    """One operator looks at the claim and dies; false if it had less to write than that."""
    async with room.operator(works=False, writes=writes, unheard=unheard) as operator:
        with suppress(Dead):
            await operator.once(claim)
            return False
    return True


@pytest.mark.parametrize("unheard", [False, True])
async def test_an_operator_that_dies_while_it_takes_a_host_is_followed_by_one_that_takes_the_same(
    room: Room, unheard: bool
) -> None:
    await room.policy()
    await room.secret("words", userData="one")
    for number in range(20):
        await room.host(f"h{number}")
        claim = await room.claim(f"c{number}", userData={"name": "words"})
        died = await dies(room, claim, writes=number, unheard=unheard)
        assert await wrong_with(room, claim) == []
        await room.rest(claim)
        assert await wrong_with(room, claim) == []
        told = await room.get(claim)
        ready = condition(told, "Synchronized")
        assert ready is not None
        assert ready.status == "True"
        assert told.status.bare_metal_host is not None
        assert await room.hosts_of(claim) == [told.status.bare_metal_host.name]
        assert len(await room.copies()) == number + 1
        if not died:
            assert number > 5
            return
    raise AssertionError("it never comes to an end")


@pytest.mark.parametrize("unheard", [False, True])
async def test_an_operator_that_dies_while_a_claim_goes_is_followed_by_one_that_ends_it(
    room: Room, unheard: bool
) -> None:
    await room.policy()
    await room.secret("words", userData="one")
    for number in range(20):
        host = await room.host(f"h{number}")
        claim = await room.claim(f"c{number}", userData={"name": "words"})
        await room.rest(claim)
        await room.client.delete(HOST_CLAIMS, claim)
        died = await dies(room, claim, writes=number, unheard=unheard)
        assert await wrong_with(room, claim) == []
        await room.rest(claim)
        with pytest.raises(NotFound):
            await room.get(claim)
        freed = await room.get_host(host)
        assert freed.spec.consumer_ref is None
        assert freed.spec.image is None
        assert await room.copies() == []
        if not died:
            assert number > 3
            return
    raise AssertionError("it never comes to an end")


@pytest.mark.parametrize("unheard", [False, True])
async def test_an_operator_that_dies_while_it_hands_a_reboot_on_does_not_reboot_twice(
    room: Room, unheard: bool
) -> None:
    await room.policy()
    host, claim = await room.host(), await room.claim()
    await room.rest(claim)
    await room.bring(host, "provisioned")
    await room.rest(claim)
    for writes in range(5):
        await room.annotate(claim, **{"reboot.metal3.io": ""})
        reboots = 0
        died = await dies(room, claim, writes=writes, unheard=unheard)
        for _ in range(4):
            if "reboot.metal3.io" in (await room.get_host(host)).metadata.annotations:
                reboots += 1
                gone = {"metadata": {"annotations": {"reboot.metal3.io": None}}}
                await room.client.patch(BARE_METAL_HOSTS, host, gone)
            async with room.operator(works=False) as operator:
                await operator.once(claim)
        assert reboots == 1
        assert (await room.get(claim)).metadata.annotations == {}
        if not died:
            return
    raise AssertionError("it never comes to an end")


async def test_two_operators_at_once_take_one_host_for_each_claim(room: Room) -> None:
    await room.policy()
    for number in range(12):
        await room.host(f"h{number}")
    async with room.operator() as one, room.operator() as other:
        claims = [await room.claim(f"c{number}") for number in range(12)]
        for claim in claims:
            await room.until_told(claim, "Synchronized", "True")
        taken = [await room.hosts_of(claim) for claim in claims]
        assert sorted(name for names in taken for name in names) == sorted(f"h{n}" for n in range(12))
        for claim in claims[:6]:
            await room.client.delete(HOST_CLAIMS, claim)
        for claim in claims[:6]:
            await room.until_gone(claim)
    assert one.pen.written or other.pen.written
    assert [await room.hosts_of(claim) for claim in claims] == [*([[]] * 6), *taken[6:]]


async def deaf(room: Room, claim: Key, operator: Operator) -> None:
    """It knows the claim as it is now, and hears nothing after that."""
    await room.until_of(
        HOST_CLAIMS,
        claim,
        lambda found: (
            (known := operator.claims.get(claim)) is not None
            and known.metadata.resource_version == found.metadata.resource_version
        ),
    )
    await operator.go_deaf()


async def test_a_deaf_operator_does_not_take_a_second_host_for_a_claim_that_has_one(room: Room) -> None:
    await room.policy()
    await room.host("h1")
    await room.host("h2")
    async with room.operator(works=False) as old:
        claim = await room.claim()
        await deaf(room, claim, old)
        await room.rest(claim)
        had = await room.hosts_of(claim)
        await old.once(claim)
    assert await room.hosts_of(claim) == had


async def test_a_deaf_operator_does_not_have_an_image_installed_that_is_not_asked_for_any_more(
    room: Room,
) -> None:
    await room.policy()
    host, claim = await room.host(), await room.claim()
    await room.rest(claim)
    async with room.operator(works=False) as old:
        await deaf(room, claim, old)
        await room.edit(claim, image=OTHER_IMAGE)
        await room.rest(claim)
        # It hears of the host, and still not of the claim.
        old.hosts.observe(await room.get_host(host))
        await old.once(claim)
    found = await room.get_host(host)
    assert found.spec.image is not None
    assert found.spec.image.url == OTHER_IMAGE["url"]


async def test_a_deaf_operator_does_not_take_a_host_for_a_claim_that_is_gone(room: Room) -> None:
    await room.policy()
    host, claim = await room.host(), await room.claim()
    async with room.operator(works=False, writes=2) as first:
        with suppress(Dead):
            await first.once(claim)
    assert (await room.get(claim)).status.bare_metal_host is not None
    assert await room.hosts_of(claim) == []
    async with room.operator(works=False) as old:
        await deaf(room, claim, old)
        await room.client.delete(HOST_CLAIMS, claim)
        await room.rest(claim)
        await old.once(claim)
    assert (await room.get_host(host)).spec.consumer_ref is None


async def test_a_patch_that_is_long_on_its_way_does_not_take_a_host_for_a_claim_that_is_gone(
    room: Room,
) -> None:
    await room.policy()
    host, claim = await room.host(), await room.claim()
    async with room.operator(works=False) as slow:
        # The finalizer, the intention, and then the host.
        slow.pen.slow_at = 2
        taking = asyncio.create_task(slow.once(claim))
        await slow.pen.is_slow.wait()
        await room.client.delete(HOST_CLAIMS, claim)
        await room.rest(claim)
        with pytest.raises(NotFound):
            await room.get(claim)
        slow.pen.go_on.set()
        await taking
    assert (await room.get_host(host)).spec.consumer_ref is None


async def test_a_deaf_operator_does_not_empty_the_host_of_another_claim_of_the_same_name(room: Room) -> None:
    await room.policy()
    host, claim = await room.host(), await room.claim()
    await room.rest(claim)
    await room.bring(host, "provisioned")
    await room.client.delete(HOST_CLAIMS, claim)
    async with room.operator(works=False) as old:
        await deaf(room, claim, old)
        await room.rest(claim)
        await room.bring(host, "available")
        await room.rest(claim)
        await room.claim()
        await room.rest(claim)
        await room.bring(host, "provisioned")
        await room.rest(claim)
        before = await room.get_host(host)
        old.hosts.observe(before)
        await old.once(claim)
    assert before.spec.consumer_ref is not None
    assert await room.get_host(host) == before


async def test_what_a_claim_said_it_would_take_is_taken_although_it_asks_for_something_else_by_now(
    room: Room,
) -> None:
    await room.policy()
    await room.host("h1", labels={"size": "s"})
    claim = await room.claim(hostSelector={"matchLabels": {"size": "s"}})
    assert await dies(room, claim, writes=2, unheard=False)
    await room.host("h2", labels={"size": "l"})
    await room.edit(claim, hostSelector={"matchLabels": {"size": "l"}})
    await room.rest(claim)
    assert await room.hosts_of(claim) == ["h1"]


@pytest.mark.parametrize("gone", [False, True])
async def test_a_claim_whose_host_somebody_else_took_first_takes_another(room: Room, gone: bool) -> None:
    await room.policy()
    await room.host("h1")
    claim = await room.claim()
    assert await dies(room, claim, writes=2, unheard=False)
    if gone:
        await room.client.delete(BARE_METAL_HOSTS, Key(room.racks, "h1"))
    else:
        other = {"spec": {"consumerRef": {"kind": "Machine", "name": "m", "namespace": "x"}}}
        await room.client.patch(BARE_METAL_HOSTS, Key(room.racks, "h1"), other)
    await room.host("h2")
    await room.rest(claim)
    assert await room.hosts_of(claim) == ["h2"]


async def test_a_host_that_is_free_again_can_be_had_by_a_claim_that_had_turned_away_from_it(
    room: Room,
) -> None:
    await room.policy()
    host, claim = await room.host(), await room.claim()
    assert await dies(room, claim, writes=2, unheard=False)
    paused = "baremetalhost.metal3.io/paused"
    await room.client.patch(BARE_METAL_HOSTS, host, {"metadata": {"annotations": {paused: ""}}})
    await room.rest(claim)
    assert (await room.get(claim)).status.bare_metal_host is None
    await room.client.patch(BARE_METAL_HOSTS, host, {"metadata": {"annotations": {paused: None}}})
    await room.rest(claim)
    assert await room.hosts_of(claim) == ["h1"]


@pytest.mark.parametrize("write", [0, 1, 2, 3])
async def test_one_turns_away_from_a_host_while_another_finds_that_it_can_be_had_again(
    room: Room, write: int
) -> None:
    """Whichever write of the first is long on its way, and although the other one dies before it can tell."""
    await room.policy()
    host, claim = await room.host("h1"), await room.claim()
    assert await dies(room, claim, writes=2, unheard=False)
    await room.host("h2")
    paused = "baremetalhost.metal3.io/paused"
    await room.client.patch(BARE_METAL_HOSTS, host, {"metadata": {"annotations": {paused: ""}}})
    async with room.operator(works=False) as first:
        first.pen.slow_at = write
        turning = asyncio.create_task(first.once(claim))
        await first.pen.is_slow.wait()
        await room.client.patch(BARE_METAL_HOSTS, host, {"metadata": {"annotations": {paused: None}}})
        await dies(room, claim, writes=1, unheard=False)
        first.pen.go_on.set()
        await turning
    await room.rest(claim)
    assert len(await room.hosts_of(claim)) == 1


async def test_a_claim_that_did_not_take_its_host_before_the_policy_went_does_not_take_it(room: Room) -> None:
    policy = await room.policy()
    await room.host()
    claim = await room.claim()
    assert await dies(room, claim, writes=2, unheard=False)
    await room.client.delete(HOST_DEPLOY_POLICIES, policy)
    await room.rest(claim)
    assert await room.hosts_of(claim) == []
    found = condition(await room.get(claim), "Associated")
    assert found is not None
    assert "No HostDeployPolicy" in found.message
    await room.policy("another")
    await room.rest(claim)
    assert await room.hosts_of(claim) == ["h1"]


async def test_a_claim_that_may_not_have_the_host_it_meant_to_take_takes_one_that_it_may(room: Room) -> None:
    policy = await room.policy()
    await room.secret("words", userData="one")
    await room.host("h1")
    claim = await room.claim(userData={"name": "words"})
    assert await dies(room, claim, writes=3, unheard=False)
    cellar = await room.another_namespace()
    await room.policy(namespace=cellar)
    await room.host("h2", namespace=cellar)
    await room.client.delete(HOST_DEPLOY_POLICIES, policy)
    await room.rest(claim)
    assert await room.hosts_of(claim) == ["h2"]
    assert await room.copies() == []


async def test_a_late_patch_does_not_take_the_host_that_a_claim_may_not_have_any_more(room: Room) -> None:
    policy = await room.policy()
    await room.host("h1")
    claim = await room.claim()
    async with room.operator(works=False) as slow:
        slow.pen.slow_at = 2
        taking = asyncio.create_task(slow.once(claim))
        await slow.pen.is_slow.wait()
        cellar = await room.another_namespace()
        await room.policy(namespace=cellar)
        await room.host("h2", namespace=cellar)
        await room.client.delete(HOST_DEPLOY_POLICIES, policy)
        await room.rest(claim)
        slow.pen.go_on.set()
        await taking
    assert await room.hosts_of(claim) == ["h2"]


async def test_copies_beside_a_host_that_was_not_taken_are_removed(room: Room) -> None:
    await room.policy()
    await room.secret("words", userData="one")
    await room.host("h1")
    claim = await room.claim(userData={"name": "words"})
    assert await dies(room, claim, writes=3, unheard=False)
    assert len(await room.copies()) == 1
    await room.client.delete(BARE_METAL_HOSTS, Key(room.racks, "h1"))
    await room.rest(claim)
    assert await room.copies() == []


async def test_who_writes_a_claim_at_the_same_time_costs_nobody_anything(room: Room) -> None:
    await room.policy()
    await room.host()
    async with room.operator():
        claim = await room.claim()
        for number in range(20):
            with suppress(Conflict):
                await room.annotate(claim, note=str(number))
            await asyncio.sleep(0)
        await room.until_told(claim, "Synchronized", "True")
    assert await wrong_with(room, claim) == []
