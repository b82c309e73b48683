"""A namespace of a Kubernetes API with the controllers of MachineSets and of remediation, and people who make objects there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, NAMESPACES, NODES, Node
from ingot.api.machine import MACHINE_SETS, MACHINES, Machine, MachineSet
from ingot.api.meta import Key, Object, Resource, now
from ingot.embedded.server import serve
from ingot.kube import Client, Controller, EventRecorder, Informer, Manager, NotFound
from ingot.machines import machineset, remediation
from ingot.machines.machineset import WhoseSets
from ingot.machines.pool import Pool, host_informer

PATIENCE = 60.0
IMAGE = {"url": "https://images.example/os.qcow2", "checksum": "https://images.example/os.sha256"}
FINALIZER = "tests.example/held"

T = TypeVar("T", bound=Object)


class Clock:
    """The time as the controllers see it."""

    def __init__(self) -> None:
        self.ahead = now() - now()

    def __call__(self) -> datetime:
        return now() + self.ahead


class Room:
    def __init__(self, client: Client, namespace: str, *, whose: WhoseSets = "on") -> None:
        self.client = client
        self.namespace = namespace
        self.whose: WhoseSets = whose
        self.through = client
        """The client that the controllers use."""
        self.clock = Clock()
        self._working: list[Controller] = []
        self._running: asyncio.Task[None] | None = None
        self._recorder: EventRecorder | None = None

    # The controllers

    def controllers(
        self, client: Client, recorder: EventRecorder
    ) -> tuple[list[Informer[Any]], list[Controller]]:
        hosts = host_informer(client, namespace=self.namespace)
        machines = Informer(client, MACHINES, namespace=self.namespace)
        sets = Informer(client, MACHINE_SETS, namespace=self.namespace)
        nodes = Informer(client, NODES)
        pool = Pool(client, hosts)
        made = machineset.controller(
            client,
            recorder,
            sets=sets,
            machines=machines,
            nodes=nodes,
            hosts=hosts,
            whose=self.whose,
            clock=self.clock,
        )
        mending = remediation.controllers(
            client, recorder, pool, machines=machines, nodes=nodes, hosts=hosts, clock=self.clock
        )
        return [hosts, machines, sets, nodes], [made, *mending]

    async def start(self) -> None:
        self._recorder = EventRecorder(self.client)
        informers, self._working = self.controllers(self.through, self._recorder)
        manager = Manager(informers, self._working)
        self._running = asyncio.create_task(manager.run())
        await manager.started()

    async def stop(self) -> None:
        """End as a process does that is killed: what is under way is cut off."""
        for controller in self._working:
            controller.give_no_grace()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        if self._recorder is not None:
            await self._recorder.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    # Objects

    async def a_set(self, name: str = "workers", *, replicas: int = 1, **more: Any) -> Key:
        labels = more.pop("labels", {"set": name})
        await self.client.create(
            MACHINE_SETS,
            {
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "annotations": more.pop("annotations", {}),
                },
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"providerSpec": {"value": more.pop("provider", {"image": IMAGE})}},
                    },
                    **more,
                },
            },
        )
        return Key(self.namespace, name)

    async def a_machine(self, name: str, **metadata: Any) -> Machine:
        return await self.client.create(
            MACHINES,
            {
                "metadata": {"name": name, "namespace": self.namespace, **metadata},
                "spec": {"providerSpec": {"value": {"image": IMAGE}}},
            },
        )

    async def a_node(
        self, name: str, *, ready: bool = True, since: datetime | None = None, **metadata: Any
    ) -> Node:
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": (since or now()).isoformat(),
        }
        return await self.client.create(
            NODES, {"metadata": {"name": name, **metadata}, "status": {"conditions": [condition]}}
        )

    async def a_host(
        self,
        name: str,
        *,
        state: str = "available",
        on: bool = False,
        consumer: str = "",
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> BareMetalHost:
        if consumer:
            spec["consumerRef"] = {
                "apiVersion": MACHINES.api_version,
                "kind": MACHINES.kind,
                "name": consumer,
                "namespace": self.namespace,
            }
        made = await self.client.create(
            BARE_METAL_HOSTS,
            {
                "metadata": {"name": name, "namespace": self.namespace, "labels": labels or {}},
                "spec": {"online": bool(consumer), **spec},
            },
        )
        return await self.client.patch(
            BARE_METAL_HOSTS, made.key, {"status": host_status(state, on=on)}, subresource="status"
        )

    async def change(
        self, kind: Resource[T], name: str, patch: dict[str, Any], *, subresource: str = ""
    ) -> T:
        return await self.client.patch(kind, self.key(kind, name), patch, subresource=subresource)

    async def annotate(self, kind: Resource[Any], name: str, **annotations: str | None) -> None:
        await self.change(kind, name, {"metadata": {"annotations": annotations}})

    def key(self, kind: Resource[Any], name: str) -> Key:
        return Key(self.namespace if kind.namespaced else "", name)

    async def get(self, kind: Resource[T], name: str) -> T:
        return await self.client.get(kind, self.key(kind, name))

    async def find(self, kind: Resource[T], name: str) -> T | None:
        try:
            return await self.get(kind, name)
        except NotFound:
            return None

    async def machines(self) -> list[Machine]:
        """Those that are there to stay."""
        listed = await self.client.list(MACHINES, namespace=self.namespace)
        return [machine for machine in listed.items if machine.metadata.deletion_timestamp is None]

    # Waiting

    async def until(self, kind: Resource[T], name: str, fits: Callable[[T], bool]) -> T:
        found: T | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.find(kind, name)
                    if found is not None and fits(found):
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it stayed {found}") from None

    async def gone(self, kind: Resource[Any], name: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                if await self.find(kind, name) is None:
                    return
                await asyncio.sleep(0.02)

    async def until_machines(self, fits: Callable[[list[Machine]], bool]) -> list[Machine]:
        found: list[Machine] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.machines()
                    if fits(found):
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"there stayed {[machine.metadata.name for machine in found]}") from None

    async def settled(self, name: str = "workers", *, count: int) -> MachineSet:
        """The set once it says that it has so many machines, and has looked at what it is asked for now."""
        return await self.until(
            MACHINE_SETS,
            name,
            lambda found: (
                found.status.replicas == count
                and found.status.observed_generation == found.metadata.generation
            ),
        )

    async def events(self, reason: str) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = await self.client.list(EVENTS, namespace=self.namespace)
                if found := [event.message for event in listed.items if event.reason == reason]:
                    return found
                await asyncio.sleep(0.02)


def host_status(state: str, *, on: bool) -> dict[str, Any]:
    return {
        "operationalStatus": "OK",
        "errorMessage": "",
        "errorCount": 0,
        "provisioningFailCount": 0,
        "poweredOn": on,
        "provisioning": {"state": state, "ID": "", "image": {"url": ""}},
    }


def names(machines: Iterable[Machine]) -> set[str]:
    return {machine.metadata.name for machine in machines}


@asynccontextmanager
async def an_api(folder: Path) -> AsyncIterator[Path]:
    """The kubeconfig of the cluster that INGOT_TEST_KUBECONFIG names, which has our kinds; else of an embedded API."""
    if given := os.environ.get("INGOT_TEST_KUBECONFIG"):
        yield Path(given)
        return
    async with serve(folder) as running:
        yield running.kubeconfig


@asynccontextmanager
async def an_empty_room(client: Client, *, whose: WhoseSets = "on") -> AsyncIterator[Room]:
    """A namespace of its own, in which nobody works yet."""
    namespace = f"keeping-{uuid4()}"
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    room = Room(client, namespace, whose=whose)
    try:
        yield room
    finally:
        await room.stop()


@asynccontextmanager
async def a_room(client: Client, *, whose: WhoseSets = "on") -> AsyncIterator[Room]:
    async with an_empty_room(client, whose=whose) as room:
        await room.start()
        yield room
