"""A namespace of the embedded API with hosts, Machines and Nodes, and actuators that can be stopped between any two writes.

An `Operator` is one process: its own client, caches and controller. A deaf one knows what was there when it began, and what its
own writes were answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, NODES, Node
from ingot.api.machine import MACHINES, Machine
from ingot.api.machine.provider import API_VERSION, KIND
from ingot.api.meta import Key, Object, Resource
from ingot.kube import Again, Client, Done, EventRecorder, Informer, NotFound
from ingot.machines.defaults import TargetDefaults, defaults_informer
from ingot.machines.machine import controller, machine_informer, node_informer
from ingot.machines.pool import Pool, host_informer
from ingot.machines.waiting import WaitingList

T = TypeVar("T", bound=Object)

PATIENCE = 60.0
IMAGE = {"url": "https://images.example/a.qcow2", "checksum": "https://images.example/a.sha256"}
HARDWARE = {"hostname": "h-one", "nics": [{"ip": "192.0.2.7", "name": "eth0"}, {"ip": "", "name": "eth1"}]}


class Pen(Client):
    """A client that notes what it writes, and can be held up before or after any write, as a process that is stopped is."""

    def begin(self) -> None:
        self.writes: list[str] = []
        self.asked = 0
        self.stop_before: int | None = None
        self.stop_after: int | None = None
        self.stopped = asyncio.Event()
        self.go_on = asyncio.Event()

    async def patch(
        self,
        kind: Resource[T],
        key: Key,
        patch: Mapping[str, object],
        *,
        subresource: str = "",
        resource_version: str = "",
    ) -> T:
        self.asked += 1
        mine = self.asked
        await self._held(mine == self.stop_before)
        written = await super().patch(
            kind, key, patch, subresource=subresource, resource_version=resource_version
        )
        self.writes.append(f"{kind.kind}{f'/{subresource}' if subresource else ''}")
        await self._held(mine == self.stop_after)
        return written

    async def delete(self, kind: Resource[T], key: Key, **options: Any) -> None:
        self.asked += 1
        mine = self.asked
        await self._held(mine == self.stop_before)
        await super().delete(kind, key, **options)
        self.writes.append(f"delete {kind.kind}")
        await self._held(mine == self.stop_after)

    async def _held(self, here: bool) -> None:
        if here:
            self.stopped.set()
            await self.go_on.wait()


class Operator:
    """One process with a Machine actuator."""

    def __init__(
        self, pen: Pen, recorder: EventRecorder, room: Room, *, quiet: float, everywhere: bool
    ) -> None:
        self.pen = pen
        self.hosts = host_informer(pen, namespace="" if everywhere else room.namespace)
        self.machines = machine_informer(pen, namespace=room.namespace)
        self.nodes = node_informer(pen)
        defaults = defaults_informer(pen, room.namespace)
        self._informers: list[Informer[Any]] = [self.hosts, self.machines, self.nodes, defaults]
        pool = Pool(pen, self.hosts)
        self.waiting = WaitingList(self.hosts, pool)
        self.controller = controller(
            pen,
            recorder,
            pool,
            machines=self.machines,
            hosts=self.hosts,
            nodes=self.nodes,
            defaults=TargetDefaults(defaults),
            waiting=self.waiting,
            quiet=quiet,
        )
        self._listening: list[asyncio.Task[None]] = []
        self._working: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        self._listening = [asyncio.create_task(informer.run()) for informer in self._informers]
        for informer in self._informers:
            await informer.synced()

    async def go_deaf(self) -> None:
        await _end(self._listening)
        self._listening = []

    def work(self) -> None:
        self._working = asyncio.create_task(self.controller.run())

    async def once(self, key: Key) -> Done | Again:
        """One pass, by hand."""
        return await self.controller._reconcile(key)

    async def heard_of(self, node: Key) -> None:
        await _eventually(lambda: self.nodes.get(node) is not None)

    async def heard_of_host(self, key: Key, state: str) -> None:
        def heard() -> bool:
            host = self.hosts.get(key)
            return host is not None and host.status.provisioning.state == state

        await _eventually(heard)

    async def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.controller.give_no_grace()
        await _end([task for task in (self._working, *self._listening) if task is not None])
        self._working, self._listening = None, []


class Room:
    def __init__(self, client: Client, kubeconfig: Path, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self._kubeconfig = kubeconfig

    @asynccontextmanager
    async def operator(
        self,
        *,
        works: bool = True,
        quiet: float = 0.0,
        stop_before: int | None = None,
        stop_after: int | None = None,
        everywhere: bool = False,
    ) -> AsyncIterator[Operator]:
        """`everywhere`: one that sees the hosts of all namespaces."""
        async with Pen.from_kubeconfig(self._kubeconfig) as pen, EventRecorder(self.client) as recorder:
            pen.begin()
            pen.stop_before, pen.stop_after = stop_before, stop_after
            operator = Operator(pen, recorder, self, quiet=quiet, everywhere=everywhere)
            await operator.listen()
            if works:
                operator.work()
            try:
                yield operator
            finally:
                await operator.kill()

    # Objects

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    async def host(
        self,
        name: str = "h1",
        *,
        state: str = "available",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Key:
        await self.client.create(
            BARE_METAL_HOSTS,
            {
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "labels": dict(labels or {}),
                    "annotations": dict(annotations or {}),
                },
                "spec": {"online": False, **spec},
            },
        )
        await self.bring(self.key(name), state, hardware=HARDWARE)
        return self.key(name)

    async def bring(self, key: Key, state: str, **status: Any) -> None:
        """What the host controller would say."""
        body = {
            "operationalStatus": "OK",
            "errorMessage": "",
            "errorCount": 0,
            "poweredOn": False,
            "provisioning": {"state": state, "ID": ""},
            **status,
        }
        await self.client.patch(BARE_METAL_HOSTS, key, {"status": body}, subresource="status")

    async def machine(
        self,
        name: str = "m1",
        *,
        value: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Key:
        provider = {"apiVersion": API_VERSION, "kind": KIND, "image": IMAGE}
        await self.client.create(
            MACHINES,
            {
                "metadata": {"name": name, "namespace": self.namespace, **(metadata or {})},
                "spec": {"providerSpec": {"value": dict(provider if value is None else value)}, **spec},
            },
        )
        return self.key(name)

    async def node(self, name: str, *, address: str = "", provider_id: str = "", **metadata: Any) -> Key:
        await self.client.create(
            NODES,
            {
                "metadata": {"name": name, **metadata},
                "spec": {"providerID": provider_id} if provider_id else {},
            },
        )
        if address:
            status = {"addresses": [{"type": "InternalIP", "address": address}]}
            await self.client.patch(NODES, Key("", name), {"status": status}, subresource="status")
        return Key("", name)

    async def get(self, key: Key) -> Machine:
        return await self.client.get(MACHINES, key)

    async def get_host(self, key: Key) -> BareMetalHost:
        return await self.client.get(BARE_METAL_HOSTS, key)

    async def get_node(self, key: Key) -> Node:
        return await self.client.get(NODES, key)

    async def hosts_of(self, machine: str) -> list[str]:
        """The names of the hosts that say they are this Machine's."""
        hosts = (await self.client.list(BARE_METAL_HOSTS, namespace=self.namespace)).items
        return [
            host.metadata.name
            for host in hosts
            if host.spec.consumer_ref and host.spec.consumer_ref.name == machine
        ]

    async def events(self, reason: str) -> list[str]:
        found = (await self.client.list(EVENTS, namespace=self.namespace)).items
        return [event.message for event in found if event.reason == reason]

    # Waiting

    async def until(self, key: Key, condition: Callable[[Machine], bool]) -> Machine:
        return await self._until(MACHINES, key, condition)

    async def until_host(self, key: Key, condition: Callable[[BareMetalHost], bool]) -> BareMetalHost:
        return await self._until(BARE_METAL_HOSTS, key, condition)

    async def until_node(self, key: Key, condition: Callable[[Node], bool]) -> Node:
        return await self._until(NODES, key, condition)

    async def until_claimed(self, key: Key) -> Machine:
        return await self.until(key, lambda machine: bool(machine.spec.provider_id))

    async def until_gone(self, kind: Resource[Any], key: Key) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.get(kind, key)
                except NotFound:
                    return
                await asyncio.sleep(0.02)

    async def until_event(self, reason: str) -> str:
        async with asyncio.timeout(PATIENCE):
            while True:
                if found := await self.events(reason):
                    return found[0]
                await asyncio.sleep(0.02)

    async def _until(self, kind: Resource[T], key: Key, condition: Callable[[T], bool]) -> T:
        found: T | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.client.get(kind, key)
                    if condition(found):
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{kind.kind} {key} never came there; it is {found}") from None


async def _eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        # What is waited for happens in a watch, and has no event of its own.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
