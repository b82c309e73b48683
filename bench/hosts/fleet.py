"""A fleet of hosts: created through the API as a user would, and followed until all are where they should be."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import EVENTS, NAMESPACES, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.meta import Model, Object, Resource
from ingot.kube import AlreadyExists, Client, Informer, metadata_of

AT_ONCE = 16


def names(count: int) -> list[str]:
    return [f"host-{number:05}" for number in range(count)]


def secret(name: str) -> dict[str, Any]:
    return {"metadata": {"name": f"{name}-bmc"}, "stringData": {"username": "admin", "password": "s3cr3t"}}


def host(name: str) -> dict[str, Any]:
    number = int(name.rpartition("-")[2])
    mac = ":".join(
        f"{byte:02x}" for byte in (0x52, 0x54, 0, number >> 16 & 255, number >> 8 & 255, number & 255)
    )
    address = f"redfish-virtualmedia://10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}/redfish/v1/Systems/1"
    spec = {
        "online": True,
        "bootMACAddress": mac,
        "bmc": {"address": address, "credentialsName": f"{name}-bmc"},
    }
    return {"metadata": {"name": name}, "spec": spec}


async def create(client: Client, namespace: str, count: int) -> float:
    """Create Secrets and hosts; the seconds that took."""
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    begun, left = time.perf_counter(), iter(names(count))

    async def some() -> None:
        for name in left:
            await client.create(SECRETS, secret(name), namespace=namespace)
            await client.create(BARE_METAL_HOSTS, host(name), namespace=namespace)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return time.perf_counter() - begun


@dataclass
class Arrivals:
    """When each host was first seen where it should be, in seconds since the beginning."""

    at: dict[str, float] = field(default_factory=dict)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.at.values())
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class _Progress(Model):
    state: str = ""


class _Glance(Model):
    operational_status: str = ""
    provisioning: _Progress = msgspec.field(default_factory=_Progress)


class Glimpsed(Object):
    """A host, as far as it takes to see where it is: who watches thousands should not cost what is measured."""

    status: _Glance = msgspec.field(default_factory=_Glance)


GLIMPSES = Resource(
    group=BARE_METAL_HOSTS.group,
    version=BARE_METAL_HOSTS.version,
    kind=BARE_METAL_HOSTS.kind,
    plural=BARE_METAL_HOSTS.plural,
    type=Glimpsed,
)


async def until(
    client: Client,
    namespace: str,
    count: int,
    arrived: Callable[[Glimpsed], bool],
    begun: float,
    patience: float,
) -> Arrivals:
    """Watch until so many hosts have arrived."""
    found, all_there = Arrivals(), asyncio.Event()
    hosts = Informer(client, GLIMPSES, namespace=namespace)

    def changed(change: Any) -> None:
        if change.new is not None and change.key.name not in found.at and arrived(change.new):
            found.at[change.key.name] = time.perf_counter() - begun
            if len(found.at) == count:
                all_there.set()

    hosts.subscribe(changed)
    watching = asyncio.create_task(hosts.run())
    try:
        async with asyncio.timeout(patience):
            await all_there.wait()
    except TimeoutError:
        raise RuntimeError(f"only {len(found.at)} of {count} hosts arrived within {patience:g} s") from None
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return found


def available(host: Glimpsed) -> bool:
    return host.status.provisioning.state == "available" and host.status.operational_status == "OK"


EXPECTED_EVENTS = {"Registered", "BMCAccessValidated", "InspectionStarted", "InspectionComplete"}
CONDITIONS = {"Manageable", "AvailableForProvisioning", "Provisioned", "Ready", "Progressing", "Healthy"}


async def missing(client: Client, namespace: str, count: int) -> list[str]:
    """What a user of Metal3 would look for at an available host and not find, a line each; empty when all is there."""
    found: list[str] = []
    hosts = (await client.list(BARE_METAL_HOSTS, namespace=namespace)).items
    hardware = {
        item.metadata.name
        for item in (await client.list(metadata_of(HARDWARE_DATA), namespace=namespace)).items
    }
    firmware = (await client.list(HOST_FIRMWARE_SETTINGS, namespace=namespace)).items
    events: Counter[tuple[str, str]] = Counter()
    for event in (await client.list(EVENTS, namespace=namespace)).items:
        events[(event.involved_object.name, event.reason)] += 1
    for item in hosts:
        name, status = item.metadata.name, item.status
        wanted = {
            "finalizer": "baremetalhost.metal3.io" in item.metadata.finalizers,
            "conditions": {condition.type for condition in status.conditions} >= CONDITIONS,
            "history": bool(status.operation_history.register.end and status.operation_history.inspect.end),
            "credentials": status.good_credentials == status.tried_credentials,
            "architecture": bool(item.spec.architecture),
            "inventory": item.hardware() is not None,
            "HardwareData": name in hardware,
            "powered on": status.powered_on,
            **{reason: events[(name, reason)] == 1 for reason in EXPECTED_EVENTS},
        }
        found += [f"{name}: {what}" for what, there in wanted.items() if not there]
    settled = {item.metadata.name for item in firmware if item.status.conditions}
    found += [f"{name}: HostFirmwareSettings" for name in names(count) if name not in settled]
    return found
