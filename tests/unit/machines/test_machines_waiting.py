"""Who is woken when a host becomes vacant, and who is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from machine_site import Room

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.meta import Key
from ingot.kube import Client
from ingot.machines.pool import Pool, host_informer
from ingot.machines.waiting import LOOK_AGAIN, WAITING, WaitingList

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Hall:
    """A waiting list over a cache that is told by the test what there is."""

    def __init__(self, client: Client) -> None:
        self._hosts = hosts = host_informer(client, namespace="m")
        self._versions = count(1)
        self.pool = Pool(client, hosts)
        self.line = WaitingList(hosts, self.pool)
        self.woken: list[str] = []

    def host(self, name: str = "h1", state: str = "available", **spec: Any) -> None:
        labels = spec.pop("labels", {})
        metadata = {
            "name": name,
            "namespace": "m",
            "uid": name,
            "labels": labels,
            "resourceVersion": str(next(self._versions)),
            **spec.pop("metadata", {}),
        }
        body = {"metadata": metadata, "spec": {"online": True, **spec}}
        body["status"] = {"provisioning": {"state": state}}
        self._hosts.observe(msgspec.json.decode(msgspec.json.encode(body), type=BareMetalHost))

    def taken(self, name: str = "h1") -> None:
        self.host(name, consumerRef={"kind": "Thing", "name": "x"})

    def gone(self, name: str = "h1") -> None:
        self.host(name, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    def enter(self, *names: str, label: str = "") -> None:
        for name in names:
            self.line.enter(
                name,
                fits=lambda host: not label or label in host.metadata.labels,
                wake=partial(self.woken.append, name),
            )


@pytest_asyncio.fixture(loop_scope="module")
async def hall(room: Room) -> AsyncIterator[Hall]:
    yield Hall(room.client)


async def test_a_host_that_becomes_vacant_wakes_one_who_has_waited_longest(hall: Hall) -> None:
    hall.enter("a", "b", "c")
    hall.host(state="inspecting")
    assert hall.woken == []
    hall.host()
    assert hall.woken == ["a"]
    hall.host()
    assert hall.woken == ["a"]
    hall.host("h2")
    assert hall.woken == ["a", "b"]


async def test_a_thousand_are_not_woken_for_one_host(hall: Hall) -> None:
    hall.enter(*(f"m{number}" for number in range(1000)))
    hall.host()
    assert hall.woken == ["m0"]
    assert len(hall.line) == 1000
    assert WAITING._value.get() == 1000


async def test_only_who_can_use_it_is_woken(hall: Hall) -> None:
    hall.enter("a", label="large")
    hall.enter("b", label="small")
    hall.host(labels={"small": ""})
    assert hall.woken == ["b"]
    # The same host becomes another one to those who wait when it gets other labels.
    hall.host(labels={"large": ""})
    assert hall.woken == ["b", "a"]


async def test_who_was_woken_and_left_out_keeps_its_place(hall: Hall) -> None:
    hall.enter("a", "b")
    hall.host()
    hall.taken()
    hall.enter("a")
    hall.host()
    assert hall.woken == ["a", "a"]


async def test_who_took_another_host_hands_its_chance_on(hall: Hall) -> None:
    hall.enter("a", "b")
    hall.host("h1")
    assert hall.woken == ["a"]
    hall.line.leave("a")
    assert hall.woken == ["a", "b"]


async def test_who_took_it_leaves_nothing_to_hand_on(hall: Hall) -> None:
    hall.enter("a", "b")
    hall.host("h1")
    hall.taken("h1")
    hall.line.leave("a")
    assert hall.woken == ["a"]
    assert "a" not in hall.line


async def test_nobody_is_woken_twice_for_one_vacancy(hall: Hall) -> None:
    hall.enter("a", "b")
    hall.host("h1")
    hall.enter("a")
    hall.enter("b")
    hall.enter("a")
    assert hall.woken == ["a", "b"]
    hall.taken("h1")
    hall.host("h1")
    assert hall.woken == ["a", "b", "a"]


async def test_a_host_that_is_gone_is_offered_to_nobody(hall: Hall) -> None:
    hall.enter("a", "b")
    hall.host("h1")
    hall.gone("h1")
    hall.enter("a")
    assert hall.woken == ["a"]


async def test_a_host_that_somebody_asked_for_and_did_not_take_is_offered_to_who_waits(hall: Hall) -> None:
    hall.host("h1")
    with hall.pool.reserved(Key("m", "h1")):
        # Both look while it is not to be had.
        hall.enter("a", "b")
    assert hall.woken == ["a"]
    hall.enter("a")
    assert hall.woken == ["a", "b"]


async def test_who_was_woken_for_a_host_that_somebody_else_was_asking_for_has_not_had_its_chance(
    hall: Hall,
) -> None:
    hall.enter("a")
    hall.host("h1")
    assert hall.woken == ["a"]
    with hall.pool.reserved(Key("m", "h1")):
        hall.enter("a")
    assert hall.woken == ["a", "a"]


async def test_a_host_that_was_taken_is_offered_to_nobody(hall: Hall) -> None:
    hall.host("h1")
    with hall.pool.reserved(Key("m", "h1")):
        hall.enter("a")
        hall.taken("h1")
    with hall.pool.reserved(Key("m", "h2")):
        hall.enter("a")
    assert hall.woken == []


async def test_who_is_not_woken_looks_again_all_the_same(hall: Hall) -> None:
    again = hall.line.enter("a", fits=lambda host: True, wake=lambda: None)
    assert again.after == LOOK_AGAIN
    hall.line.leave("a")
    hall.line.leave("a")
    assert len(hall.line) == 0
    assert WAITING._value.get() == 0
