"""Several actuators, caches that know nothing of what happened since, and processes that are killed between any two writes.

Whatever happens: a Machine never has two hosts, a host never two Machines, and nothing is left behind that nobody looks after.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from machine_site import IMAGE, Room

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.machine import FINALIZER, MACHINES
from ingot.api.meta import Key
from ingot.kube import Again

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER_IMAGE = {"url": "https://images.example/b.qcow2", "checksum": "https://images.example/b.sha256"}
CLAIMING = 3
"""Writes after which a Machine has its host."""
LEAVING = 4
"""Writes after which it is gone: its status, the host emptied, the host released, the finalizer."""


async def the_only_host(room: Room, key: Key) -> BareMetalHost:
    """The one host of the Machine; everything about it is as it should be."""
    machine = await room.until_claimed(key)
    hosts = await room.hosts_of(key.name)
    assert len(hosts) == 1
    host = await room.get_host(room.key(hosts[0]))
    assert machine.spec.provider_id == f"baremetalhost:///{host.key}/{host.metadata.uid}"
    assert machine.metadata.annotations["metal3.io/BareMetalHost"] == str(host.key)
    assert host.spec.image is not None
    assert host.spec.image.url == IMAGE["url"]
    assert host.spec.online
    return host


async def untouched(room: Room, *names: str) -> None:
    for name in names:
        host = await room.get_host(room.key(name))
        assert (host.spec.consumer_ref, host.spec.image, host.spec.online) == (None, None, False)


# One Machine


async def test_a_stale_cache_makes_no_machine_take_two_hosts(room: Room) -> None:
    """The race that Metal3's actuator had: the cache still shows the Machine as it was before it got its host."""
    for number in range(6):
        await room.host(f"h{number}")
    key = await room.machine()
    async with room.operator(works=False) as late, room.operator(works=False) as early:
        await late.go_deaf()
        await early.once(key)
        taken = await the_only_host(room, key)
        await late.once(key)
        await late.once(key)
        assert (await the_only_host(room, key)).key == taken.key
        assert "BareMetalHost" not in late.pen.writes
    await untouched(room, *(name for name in (f"h{n}" for n in range(6)) if name != taken.key.name))


@pytest.mark.parametrize("write", range(1, CLAIMING + 1))
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_actuator_that_is_held_up_anywhere_does_no_harm_when_it_goes_on(
    room: Room, write: int, moment: str
) -> None:
    for number in range(4):
        await room.host(f"h{number}")
    key = await room.machine()
    stop: dict[str, Any] = {f"stop_{moment}": write}
    async with room.operator(works=False, **stop) as slow, room.operator(works=False) as quick:
        await slow.go_deaf()
        held = asyncio.create_task(slow.once(key))
        await slow.pen.stopped.wait()
        # The other one has heard what was written, or it has not.
        if write % 2:
            await quick.go_deaf()
        await quick.once(key)
        await the_only_host(room, key)
        slow.pen.go_on.set()
        await held
        await the_only_host(room, key)


@pytest.mark.parametrize("moment", [("after", 1), ("before", 2)])
async def test_a_machine_that_wants_another_host_by_now_takes_the_one_it_meant(
    room: Room, moment: tuple[str, int]
) -> None:
    """Somebody may be about to take that one for it."""
    await room.host("h1", labels={"size": "small"})
    await room.host("h2", labels={"size": "large"})
    small, large = [
        {"image": IMAGE, "hostSelector": {"matchLabels": {"size": size}}} for size in ("small", "large")
    ]
    key = await room.machine(value=small)
    stop: dict[str, Any] = {f"stop_{moment[0]}": moment[1]}
    async with room.operator(works=False, **stop) as slow:
        await slow.go_deaf()
        held = asyncio.create_task(slow.once(key))
        await slow.pen.stopped.wait()
        await room.client.patch(MACHINES, key, {"spec": {"providerSpec": {"value": large}}})
        async with room.operator():
            assert (await the_only_host(room, key)).key.name == "h1"
        slow.pen.go_on.set()
        await held
    assert (await the_only_host(room, key)).key.name == "h1"
    await untouched(room, "h2")


async def test_what_a_stale_cache_remembers_of_a_provider_spec_is_not_installed(room: Room) -> None:
    """The intention was written by somebody who is gone, and what the Machine wants was changed since."""
    host = await room.host()
    meant = {
        "metal3.io/BareMetalHost": str(host),
        "ingot.metal3.io/host-version": (await room.get_host(host)).metadata.resource_version,
        "ingot.metal3.io/image-source": "provider spec",
    }
    key = await room.machine(metadata={"finalizers": [FINALIZER], "annotations": meant})
    async with room.operator(works=False) as deaf:
        await deaf.go_deaf()
        await room.client.patch(MACHINES, key, {"spec": {"providerSpec": {"value": {"image": OTHER_IMAGE}}}})
        await deaf.once(key)
    found = await room.get_host(host)
    assert found.spec.image is not None
    assert found.spec.image.url == OTHER_IMAGE["url"]


@pytest.mark.parametrize("moment", [("before", 2), ("after", 2), ("before", 3)])
@pytest.mark.parametrize("killed", [True, False])
async def test_a_provider_spec_that_changes_while_the_host_is_taken_is_not_lost_in_silence(
    room: Room, moment: tuple[str, int], killed: bool
) -> None:
    await room.host()
    key = await room.machine()
    stop: dict[str, Any] = {f"stop_{moment[0]}": moment[1]}
    async with room.operator(works=False, **stop) as slow:
        held = asyncio.create_task(slow.once(key))
        await slow.pen.stopped.wait()
        await room.client.patch(MACHINES, key, {"spec": {"providerSpec": {"value": {"image": OTHER_IMAGE}}}})
        if not killed:
            slow.pen.go_on.set()
            await held
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)
    async with room.operator():
        await room.until(key, lambda machine: machine.status.phase == "Provisioning")
    (name,) = await room.hosts_of("m1")
    host = await room.get_host(room.key(name))
    assert host.spec.image is not None
    told = await room.events("TargetUnchanged")
    if host.spec.image.url == OTHER_IMAGE["url"]:
        assert told == []
    else:
        assert [("keeps what it has" in one) for one in told] == [True]
    assert await room.events("TargetReplaced") == []


async def test_a_machine_is_not_lost_because_a_cache_lags_behind(room: Room) -> None:
    await room.host()
    key = await room.machine()
    async with room.operator(works=False) as deaf:
        await deaf.go_deaf()
        async with room.operator():
            await room.until(key, lambda machine: machine.status.phase == "Provisioning")
        # It hears of Machines, and not of hosts.
        deaf.machines.observe(await room.get(key))
        await deaf.once(key)
        assert deaf.pen.writes == []


async def test_two_actuators_at_once_give_a_machine_one_host(room: Room) -> None:
    for number in range(8):
        await room.host(f"h{number}")
    async with room.operator() as one, room.operator() as two, room.operator() as three:
        keys = [await room.machine(f"m{number}") for number in range(8)]
        hosts = [(await the_only_host(room, key)).key for key in keys]
        assert len(set(hosts)) == 8
        assert {one.pen.asked, two.pen.asked, three.pen.asked} != {0}


# One host


async def test_two_machines_and_one_host(room: Room) -> None:
    await room.host()
    keys = [await room.machine("m1"), await room.machine("m2")]
    async with room.operator(works=False) as one, room.operator(works=False) as two:
        await one.go_deaf()
        await two.go_deaf()
        await asyncio.gather(one.once(keys[0]), two.once(keys[1]))
        has = [name for name in ("m1", "m2") if await room.hosts_of(name)]
        assert len(has) == 1
        loser = keys[0] if has == ["m2"] else keys[1]
    async with room.operator():
        machine = await room.until(
            loser, lambda machine: machine.status.error_reason == "InsufficientResources"
        )
        assert machine.spec.provider_id == ""
        await the_only_host(room, room.key(has[0]))


async def test_who_was_too_late_for_a_host_takes_another(room: Room) -> None:
    await room.host("h1")
    first, second = await room.machine("m1"), await room.machine("m2")
    async with room.operator(works=False) as quick, room.operator(works=False) as deaf:
        await deaf.go_deaf()
        await quick.once(first)
        await room.host("h2")
        # It knows of the one host that is taken by now.
        assert isinstance(await deaf.once(second), Again)
        assert deaf.pen.writes == ["Machine", "Machine/status"]
    async with room.operator():
        hosts = {(await the_only_host(room, key)).key.name for key in (first, second)}
    assert hosts == {"h1", "h2"}


async def test_a_machine_gives_up_a_host_that_somebody_else_took_and_counts_on_no_cache(room: Room) -> None:
    await room.host("h1")
    key = await room.machine()
    async with room.operator(works=False, stop_after=1) as slow:
        await slow.go_deaf()
        held = asyncio.create_task(slow.once(key))
        await slow.pen.stopped.wait()
        # A person takes the host for something else, and then there is another.
        await room.client.patch(
            BARE_METAL_HOSTS,
            room.key("h1"),
            {"spec": {"consumerRef": {"kind": "Thing", "apiVersion": "x/v1", "name": "it"}}},
        )
        await room.host("h2")
        async with room.operator():
            assert (await the_only_host(room, key)).key.name == "h2"
        # What was taken becomes vacant again: it looks as it did when it was chosen, and is not the same.
        await room.client.patch(BARE_METAL_HOSTS, room.key("h1"), {"spec": {"consumerRef": None}})
        slow.pen.go_on.set()
        await held
    assert (await the_only_host(room, key)).key.name == "h2"
    await untouched(room, "h1")


# Killed


@pytest.mark.parametrize("write", range(1, CLAIMING + 2))
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_at_any_write_of_a_claim_the_next_one_goes_on(
    room: Room, write: int, moment: str
) -> None:
    for number in range(3):
        await room.host(f"h{number}")
    stop: dict[str, Any] = {f"stop_{moment}": write}
    async with room.operator(**stop) as doomed:
        key = await room.machine()
        await doomed.pen.stopped.wait()
    async with room.operator() as heir:
        await room.until(key, lambda machine: machine.status.phase == "Provisioning")
        await the_only_host(room, key)
    assert len(doomed.pen.writes) + len(heir.pen.writes) == CLAIMING + 1


@pytest.mark.parametrize("write", range(1, LEAVING + 1))
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_killed_at_any_write_of_a_deletion_the_next_one_goes_on(
    room: Room, write: int, moment: str
) -> None:
    host = await room.host()
    key = await room.machine()
    async with room.operator():
        await room.until(key, lambda machine: machine.status.phase == "Provisioning")
    await room.client.delete(MACHINES, key)
    # The host is not provisioned yet, so there is nothing to wait for.
    stop: dict[str, Any] = {f"stop_{moment}": write}
    async with room.operator(**stop) as doomed:
        await doomed.pen.stopped.wait()
    async with room.operator() as heir:
        await room.until_gone(MACHINES, key)
    await untouched(room, host.name)
    assert len(doomed.pen.writes) + len(heir.pen.writes) == LEAVING


# Deleted meanwhile


@pytest.mark.parametrize("moment", [("before", 1), ("after", 1), ("before", 2), ("after", 2), ("before", 3)])
async def test_a_host_is_never_taken_for_a_machine_that_is_gone(room: Room, moment: tuple[str, int]) -> None:
    await room.host()
    key = await room.machine(metadata={"finalizers": [FINALIZER]})
    stop: dict[str, Any] = {f"stop_{moment[0]}": moment[1]}
    async with room.operator(works=False, **stop) as slow:
        await slow.go_deaf()
        held = asyncio.create_task(slow.once(key))
        await slow.pen.stopped.wait()
        await room.client.delete(MACHINES, key)
        async with room.operator():
            await room.until_gone(MACHINES, key)
        slow.pen.go_on.set()
        await held
    await untouched(room, "h1")


async def test_an_intention_that_a_stale_cache_remembers_is_not_carried_out(room: Room) -> None:
    """The Machine meant to take a host, and went; who has not heard of that sees an intention and a vacant host."""
    host = await room.host()
    written = {"metal3.io/BareMetalHost": str(host), "ingot.metal3.io/image-source": "provider spec"}
    key = await room.machine(metadata={"finalizers": [FINALIZER], "annotations": written})
    async with room.operator(works=False) as deaf:
        await deaf.go_deaf()
        await room.client.delete(MACHINES, key)
        async with room.operator():
            await room.until_gone(MACHINES, key)
        # It hears of hosts, and not of Machines.
        deaf.hosts.observe(await room.get_host(host))
        await deaf.once(key)
    await untouched(room, host.name)


async def test_a_new_machine_of_the_same_name_does_not_lose_its_host_for_the_old_one(room: Room) -> None:
    host = await room.host()
    key = await room.machine()
    async with room.operator():
        await room.until(key, lambda machine: machine.status.phase == "Provisioning")
        held = {"metadata": {"finalizers": [FINALIZER, "tests.example/hold"]}}
        await room.client.patch(MACHINES, key, held)
        await room.client.delete(MACHINES, key)
        await room.until(key, lambda machine: machine.metadata.finalizers == ["tests.example/hold"])
        await untouched(room, host.name)
        async with room.operator(works=False) as deaf:
            await deaf.go_deaf()
            await room.client.patch(MACHINES, key, {"metadata": {"finalizers": []}})
            await room.until_gone(MACHINES, key)
            await room.machine()
            found = await the_only_host(room, key)
            # It sees the old Machine, which is being deleted, and a host that has its name.
            deaf.hosts.observe(found)
            await deaf.once(key)
            assert deaf.pen.writes == []
    assert (await the_only_host(room, key)).key == host
