"""Two hundred claimants at once: each gets exactly one host, with one operator and with two that both believe to be the only one.

One operator is in nobody's way, its own claimants' least of all. Two, with no Lease between them, do everything twice and are in
each other's way all the time: that costs time, and no host.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NAMESPACES
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES
from ingot.api.meta import Key, Object, Resource
from ingot.embedded.server import serve
from ingot.kube import Client, Conflict, EventRecorder, Manager
from ingot.machines.running import MachineSettings, machines

T = TypeVar("T", bound=Object)

EACH: Final = 100
"""Machines, and as many claims."""
MOST_CONFLICTS: Final = 3
"""For a claimant, with the one operator that there should be."""
PATIENCE: Final = 120.0
IMAGE: Final = {"url": "https://images.example/a.qcow2", "checksum": "a" * 64}
PROVIDER: Final = {
    "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
    "kind": "BareMetalMachineProviderSpec",
    "image": {"url": "https://images.example/a.qcow2", "checksum": "https://images.example/a.sha256"},
}


class Counting(Client):
    """Notes for whom a patch came too late."""

    late: Counter[str]

    async def patch(self, kind: Resource[T], key: Key, patch: Mapping[str, object], **how: Any) -> T:
        try:
            return await super().patch(kind, key, patch, **how)
        except Conflict:
            self.late[_claimant(key, patch)] += 1
            raise


def _claimant(key: Key, patch: Mapping[str, Any]) -> str:
    consumer = patch.get("spec", {}).get("consumerRef") or {}
    return str(consumer.get("name", key.name))


@asynccontextmanager
async def an_operator(kubeconfig: Path, late: Counter[str]) -> AsyncIterator[None]:
    async with Counting.from_kubeconfig(kubeconfig) as client, EventRecorder(client) as recorder:
        client.late = late
        running = machines(client, recorder, MachineSettings(machinesets="off"))
        manager = Manager(running.informers, running.controllers, tasks=running.tasks)
        working = asyncio.create_task(manager.run())
        await manager.started()
        try:
            yield
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def hosts(client: Client, count: int) -> None:
    status = {
        "provisioning": {"state": "available", "ID": "1"},
        "operationalStatus": "OK",
        "errorMessage": "",
    }
    for number in range(count):
        made = await client.create(
            BARE_METAL_HOSTS,
            {"metadata": {"name": f"h{number}"}, "spec": {"online": False}},
            namespace="racks",
        )
        told = {**status, "poweredOn": False}
        await client.patch(BARE_METAL_HOSTS, made.key, {"status": told}, subresource="status")


async def claimants(client: Client) -> None:
    for number in range(EACH):
        machine = {"metadata": {"name": f"m{number}"}, "spec": {"providerSpec": {"value": PROVIDER}}}
        claim = {"metadata": {"name": f"c{number}"}, "spec": {"poweredOn": True, "image": IMAGE}}
        await client.create(MACHINES, machine, namespace="racks")
        await client.create(HOST_CLAIMS, claim, namespace="tenant")


async def owners(client: Client) -> list[str]:
    found = (await client.list(BARE_METAL_HOSTS, namespace="racks")).items
    return [host.spec.consumer_ref.name for host in found if host.spec.consumer_ref is not None]


async def all_say_so(client: Client) -> dict[str, str]:
    """For each claimant that says so, the name of its host."""
    machines_there = (await client.list(MACHINES, namespace="racks")).items
    claims = (await client.list(HOST_CLAIMS, namespace="tenant")).items
    told = {
        one.metadata.name: one.spec.provider_id.split("/")[-2]
        for one in machines_there
        if one.spec.provider_id
    }
    return told | {
        one.metadata.name: one.status.bare_metal_host.name
        for one in claims
        if one.status.bare_metal_host is not None
        and any(found.type == "Synchronized" and found.status == "True" for found in one.status.conditions)
    }


@pytest.mark.parametrize(("first", "operators"), [("hosts", 1), ("claimants", 1), ("hosts", 2)])
async def test_two_hundred_claimants_get_a_host_each(tmp_path: Path, first: str, operators: int) -> None:
    late: Counter[str] = Counter()
    async with (
        serve(tmp_path) as api,
        Client.from_kubeconfig(api.kubeconfig) as client,
        AsyncExitStack() as working,
    ):
        for name in ("racks", "tenant"):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        policy = {"metadata": {"name": "all"}, "spec": {"hostClaimNamespaces": {"names": ["tenant"]}}}
        await client.create(HOST_DEPLOY_POLICIES, policy, namespace="racks")
        await (hosts(client, 2 * EACH) if first == "hosts" else claimants(client))
        for _ in range(operators):
            await working.enter_async_context(an_operator(api.kubeconfig, late))
        await (claimants(client) if first == "hosts" else hosts(client, 2 * EACH))
        async with asyncio.timeout(PATIENCE):
            # Looked at from outside, as a user would.
            while len(told := await all_say_so(client)) < 2 * EACH:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        taken = await owners(client)
        there = {host.metadata.name: host for host in (await client.list(BARE_METAL_HOSTS)).items}
    assert sorted(taken) == sorted(told), "each has exactly one host"
    assert len(set(told.values())) == 2 * EACH
    for claimant, name in told.items():
        consumer = there[name].spec.consumer_ref
        assert consumer is not None
        assert consumer.name == claimant
    if operators == 1:
        worst = late.most_common(3)
        assert all(count <= MOST_CONFLICTS for _, count in worst), f"{sum(late.values())} in all: {worst}"
