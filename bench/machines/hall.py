"""Claimants by the thousand: created through the API as a user would, and followed until each has its host."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from floor_of_hosts import inventory
from hosts import fleet
from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NAMESPACES
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import Key, Model, Object, ObjectReference, Resource
from ingot.kube import Change, Client, Informer

Kind = Literal["machines", "claims"]
HOSTS: Final = "fleet"
"""The namespace of the hosts, and of the Machines."""
TENANT: Final = "tenant"
"""The namespace of the claims."""
AT_ONCE: Final = 16
IMAGE: Final = {"url": "https://images.example/a.raw", "checksum": "https://images.example/a.raw.sha256"}
CLAIMED_IMAGE: Final = IMAGE | {"checksumType": "sha256", "format": "raw"}


def names(count: int) -> list[str]:
    return [f"claimant-{number:05}" for number in range(count)]


def machine(name: str) -> dict[str, Any]:
    value = {
        "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
        "kind": "BareMetalMachineProviderSpec",
        "image": IMAGE,
    }
    return {"metadata": {"name": name}, "spec": {"providerSpec": {"value": value}}}


def claim(name: str) -> dict[str, Any]:
    spec = {"poweredOn": True, "image": CLAIMED_IMAGE, "hostSelector": {"inNamespace": HOSTS}}
    return {"metadata": {"name": name}, "spec": spec}


async def open_to_tenants(client: Client) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": TENANT}})
    spec = {"hostClaimNamespaces": {"names": [TENANT]}}
    await client.create(HOST_DEPLOY_POLICIES, {"metadata": {"name": "all"}, "spec": spec}, namespace=HOSTS)


async def have_hosts(client: Client, count: int) -> None:
    """Hosts as they are when they have been inspected, and nobody looks after them any more."""
    await client.create(NAMESPACES, {"metadata": {"name": HOSTS}})
    left = iter(fleet.names(count))
    status = {
        "errorCount": 0,
        "errorMessage": "",
        "hardwareProfile": "unknown",
        "operationalStatus": "OK",
        "poweredOn": True,
        "provisioning": {"ID": "of-the-back-end", "state": "available", "image": {"url": ""}},
    }

    async def some() -> None:
        for name in left:
            hardware = inventory(name)
            await client.create(BARE_METAL_HOSTS, fleet.host(name), namespace=HOSTS)
            await client.patch(
                BARE_METAL_HOSTS,
                Key(HOSTS, name),
                {"status": status | {"hardware": hardware}},
                subresource="status",
            )
            beside = {"metadata": {"name": name}, "spec": {"hardware": hardware}}
            await client.create(HARDWARE_DATA, beside, namespace=HOSTS)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


async def create(client: Client, kind: Kind, count: int) -> float:
    """Create the claimants; the seconds that took."""
    begun, left = time.perf_counter(), iter(names(count))

    async def some() -> None:
        for name in left:
            if kind == "machines":
                await client.create(MACHINES, machine(name), namespace=HOSTS)
            else:
                await client.create(HOST_CLAIMS, claim(name), namespace=TENANT)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return time.perf_counter() - begun


class _Progress(Model):
    state: str = ""


class _Status(Model):
    provisioning: _Progress = msgspec.field(default_factory=_Progress)


class _Spec(Model):
    consumer_ref: ObjectReference | None = None


class Glimpsed(Object):
    """A host, as far as it takes to see whose it is: who watches thousands should not cost what is measured."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


GLIMPSES: Final = Resource(
    group=BARE_METAL_HOSTS.group,
    version=BARE_METAL_HOSTS.version,
    kind=BARE_METAL_HOSTS.kind,
    plural=BARE_METAL_HOSTS.plural,
    type=Glimpsed,
)


@dataclass
class Milestone:
    """When each of a number of objects was first seen there."""

    count: int
    begun: float
    at: dict[str, float] = field(default_factory=dict)
    all_there: asyncio.Event = field(default_factory=asyncio.Event)

    def reached(self, name: str) -> None:
        if name not in self.at:
            self.at[name] = time.perf_counter() - self.begun
            if len(self.at) == self.count:
                self.all_there.set()

    def percentile(self, share: float) -> float:
        ordered = sorted(self.at.values())
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    async def wait(self, what: str, patience: float) -> float:
        """When the last one was."""
        try:
            async with asyncio.timeout(patience):
                await self.all_there.wait()
        except TimeoutError:
            raise RuntimeError(
                f"only {len(self.at)} of {self.count} are {what} after {patience:g} s"
            ) from None
        return max(self.at.values())


@dataclass
class Followed:
    claimed: Milestone
    """Hosts that have a consumer."""
    linked: Milestone
    """Claimants that name their host as theirs."""
    provisioned: Milestone


@contextlib.asynccontextmanager
async def followed(client: Client, kind: Kind, count: int) -> AsyncIterator[Followed]:
    """Watch hosts and claimants from now on. The clock starts here."""
    begun = time.perf_counter()
    found = Followed(*(Milestone(count, begun) for _ in range(3)))
    hosts = Informer(client, GLIMPSES, namespace=HOSTS)

    def host_changed(change: Change[Glimpsed]) -> None:
        if (host := change.new) is not None and host.spec.consumer_ref is not None:
            found.claimed.reached(change.key.name)
            if host.status.provisioning.state == "provisioned":
                found.provisioned.reached(change.key.name)

    def claimant_changed(change: Change[Any]) -> None:
        if change.new is not None and _host_of(change.new):
            found.linked.reached(change.key.name)

    hosts.subscribe(host_changed)
    claimants: Informer[Any] = (
        Informer(client, MACHINES, namespace=HOSTS)
        if kind == "machines"
        else Informer(client, HOST_CLAIMS, namespace=TENANT)
    )
    claimants.subscribe(claimant_changed)
    watching = [asyncio.create_task(informer.run()) for informer in (hosts, claimants)]
    try:
        yield found
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


def _host_of(claimant: Machine | HostClaim) -> str:
    """The host that it says it has, and not only means to take; "" for none."""
    if isinstance(claimant, Machine):
        named = claimant.metadata.annotations.get(Annotation.HOST, "")
        return named if claimant.spec.provider_id else ""
    conditions = {found.type: found.status for found in claimant.status.conditions}
    place = claimant.status.bare_metal_host
    return f"{place.namespace}/{place.name}" if place and conditions.get("Associated") == "True" else ""


async def wrong(client: Client, kind: Kind, count: int) -> list[str]:
    """Where not every claimant has exactly one host, and every host one claimant; a line each."""
    hosts = (await client.list(GLIMPSES, namespace=HOSTS)).items
    claimants: list[Any] = list(
        (await client.list(MACHINES, namespace=HOSTS)).items
        if kind == "machines"
        else (await client.list(HOST_CLAIMS, namespace=TENANT)).items
    )
    consumers = {
        f"{HOSTS}/{host.metadata.name}": host.spec.consumer_ref.name if host.spec.consumer_ref else ""
        for host in hosts
    }
    found = [
        f"{name} has {held} hosts"
        for name, held in Counter(consumers.values()).items()
        if held != 1 or not name
    ]
    found += [
        f"{claimant.metadata.name} names {_host_of(claimant)!r}, which has {consumers.get(_host_of(claimant))!r}"
        for claimant in claimants
        if consumers.get(_host_of(claimant)) != claimant.metadata.name
    ]
    if not len(hosts) == len(claimants) == count:
        found.append(f"there are {len(hosts)} hosts and {len(claimants)} claimants")
    return found
