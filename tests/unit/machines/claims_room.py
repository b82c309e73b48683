"""Hosts in one namespace of the embedded API, a tenant in another, and operators that can die between any two writes.

An `Operator` is one process: its own client, caches and controller. A deaf one knows what was there when it began, and what its
own writes were answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, NAMESPACES, SECRETS, SecretObject
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.meta import Condition, Key, Object, Resource
from ingot.embedded.server import Running
from ingot.kube import Again, Client, Done, EventRecorder, Informer, NotFound, metadata_of
from ingot.machines.claims import claim_informer, controller, secret_informer
from ingot.machines.claims.deserted import SETTLED
from ingot.machines.pool import Pool, host_informer
from ingot.machines.waiting import WaitingList

T = TypeVar("T", bound=Object)

PATIENCE = 60.0
IMAGE = {"url": "https://images.example/a.qcow2", "checksum": "a" * 64}
OTHER_IMAGE = {"url": "https://images.example/b.qcow2", "checksum": "b" * 64}
BMC = {"address": "redfish://10.9.8.7/redfish/v1/Systems/1", "credentialsName": "h-bmc-password"}
HARDWARE = {"hostname": "h-one", "cpu": {"arch": "x86_64", "count": 8}, "ramMebibytes": 4096}


class Dead(Exception):
    """The process does not exist any more."""


class Pen(Client):
    """A client that notes what it writes, and can die: before a write, or after one whose answer it does not hear."""

    def begin(self, *, writes: int | None, unheard: bool) -> None:
        self.written: list[str] = []
        self._left = writes
        self._unheard = unheard
        self._dead = False
        self.slow_at: int | None = None
        """The number of the write that is long on its way: until somebody sets `go_on`."""
        self.is_slow, self.go_on = asyncio.Event(), asyncio.Event()

    async def get(self, kind: Resource[T], key: Key) -> T:
        if self._dead:
            raise Dead
        return await super().get(kind, key)

    async def create(self, kind: Resource[T], body: T | Mapping[str, object], *, namespace: str = "") -> T:
        return await self._write(
            f"create {kind.kind}", lambda: super(Pen, self).create(kind, body, namespace=namespace)
        )

    async def patch(self, kind: Resource[T], key: Key, patch: Mapping[str, object], **how: Any) -> T:
        part = how.get("subresource", "")
        return await self._write(
            f"{kind.kind}{f'/{part}' if part else ''}",
            lambda: super(Pen, self).patch(kind, key, patch, **how),
        )

    async def delete(self, kind: Resource[T], key: Key, **how: Any) -> None:
        await self._write(f"delete {kind.kind}", lambda: super(Pen, self).delete(kind, key, **how))

    async def _write(self, what: str, write: Callable[[], Awaitable[Any]]) -> Any:
        if self._dead or self._left == 0:
            self._dead = True
            raise Dead
        if self.slow_at == len(self.written):
            self.is_slow.set()
            await self.go_on.wait()
        answer = await write()
        self.written.append(what)
        if self._left is not None:
            self._left -= 1
            self._dead = self._unheard and self._left == 0
        if self._dead:
            raise Dead
        return answer


class Operator:
    """One process that looks after claims."""

    def __init__(self, pen: Pen, recorder: EventRecorder, *, settled: float) -> None:
        self.pen = pen
        self.hosts = host_informer(pen)
        self.claims = claim_informer(pen)
        policies = Informer(pen, HOST_DEPLOY_POLICIES)
        namespaces = Informer(pen, NAMESPACES)
        self.secrets = secret_informer(pen)
        hardware = Informer(pen, metadata_of(HARDWARE_DATA))
        self._informers: list[Informer[Any]] = [
            self.hosts,
            self.claims,
            policies,
            namespaces,
            self.secrets,
            hardware,
        ]
        pool = Pool(pen, self.hosts)
        self.waiting = WaitingList(self.hosts, pool)
        self.controller = controller(
            pen,
            recorder,
            pool,
            hosts=self.hosts,
            waiting=self.waiting,
            claims=self.claims,
            policies=policies,
            namespaces=namespaces,
            secrets=self.secrets,
            hardware=hardware,
            settled=settled,
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

    async def kill(self) -> None:
        self.controller.give_no_grace()
        await _end([task for task in (self._working, *self._listening) if task is not None])
        self._working, self._listening = None, []


class Room:
    def __init__(self, client: Client, kubeconfig: Path) -> None:
        self.client = client
        self._kubeconfig = kubeconfig
        mark = uuid4().hex[:12]
        self.racks, self.tenant = f"racks-{mark}", f"tenant-{mark}"

    async def open(self) -> None:
        for name in (self.racks, self.tenant):
            await self.client.create(NAMESPACES, {"metadata": {"name": name}})

    async def close(self) -> None:
        """Nothing is left for the operators of others to look after."""
        for claim in (await self.client.list(HOST_CLAIMS, namespace=self.tenant)).items:
            await self.client.patch(HOST_CLAIMS, claim.key, {"metadata": {"finalizers": None}})
            with suppress(NotFound):
                await self.client.delete(HOST_CLAIMS, claim.key)

    @asynccontextmanager
    async def operator(
        self,
        *,
        works: bool = True,
        writes: int | None = None,
        unheard: bool = False,
        settled: float = SETTLED,
    ) -> AsyncIterator[Operator]:
        """One that works by itself, or pass by pass; one that dies after so many writes.

        `settled`: for how many seconds a claim has to be gone before its host is let go.
        """
        async with Pen.from_kubeconfig(self._kubeconfig) as pen, EventRecorder(self.client) as recorder:
            pen.begin(writes=writes, unheard=unheard)
            operator = Operator(pen, recorder, settled=settled)
            await operator.listen()
            if works:
                operator.work()
            try:
                yield operator
            finally:
                await operator.kill()

    async def rest(self, key: Key, *, most: int = 8, settled: float = SETTLED) -> None:
        """Another operator, which knows what is there when it begins, looks at the claim until it has nothing to write."""
        async with self.operator(works=False, settled=settled) as operator:
            for _ in range(most):
                before = len(operator.pen.written)
                await operator.once(key)
                if len(operator.pen.written) == before:
                    return
            raise AssertionError(f"there is no end to it: {operator.pen.written}")

    # Those who run the hosts

    async def policy(self, name: str = "tenants", *, namespace: str = "", **demands: Any) -> Key:
        wanted = demands or {"names": [self.tenant]}
        body = {"metadata": {"name": name}, "spec": {"hostClaimNamespaces": wanted}}
        made = await self.client.create(HOST_DEPLOY_POLICIES, body, namespace=namespace or self.racks)
        return made.key

    async def host(
        self,
        name: str = "h1",
        *,
        state: str = "available",
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
        **spec: Any,
    ) -> Key:
        key = Key(namespace or self.racks, name)
        await self.client.create(
            BARE_METAL_HOSTS,
            {
                "metadata": {"name": name, "labels": dict(labels or {})},
                "spec": {"online": False, "bmc": BMC, **spec},
            },
            namespace=key.namespace,
        )
        await self.bring(key, state)
        return key

    async def bring(self, key: Key, state: str, **status: Any) -> None:
        """What the host controller says. One that is provisioned has what its spec asks for."""
        provisioning: dict[str, Any] = {"state": state, "ID": "1"}
        if state == "provisioned":
            image = (await self.get_host(key)).spec.image
            provisioning["image"] = {"url": image.url} if image is not None else None
        body = {
            "operationalStatus": "OK",
            "errorMessage": "",
            "errorType": None,
            "errorCount": 0,
            "poweredOn": state == "provisioned",
            "hardware": HARDWARE,
            "provisioning": provisioning,
            **status,
        }
        await self.client.patch(BARE_METAL_HOSTS, key, {"status": body}, subresource="status")

    async def get_host(self, key: Key) -> BareMetalHost:
        return await self.client.get(BARE_METAL_HOSTS, key)

    async def until_host(self, key: Key, condition: Callable[[BareMetalHost], bool]) -> BareMetalHost:
        return await self.until_of(BARE_METAL_HOSTS, key, condition)

    async def hosts_of(self, claim: Key) -> list[str]:
        """The names of the hosts that say they are this claim's."""
        return [
            host.metadata.name
            for host in (await self.client.list(BARE_METAL_HOSTS)).items
            if host.spec.consumer_ref is not None
            and Key(host.spec.consumer_ref.namespace, host.spec.consumer_ref.name) == claim
        ]

    async def copies(self) -> list[SecretObject]:
        """The Secrets beside the hosts."""
        return (await self.client.list(SECRETS, namespace=self.racks)).items

    async def another_namespace(self) -> str:
        name = f"cellar-{self.racks}"
        await self.client.create(NAMESPACES, {"metadata": {"name": name}})
        return name

    # The tenant

    async def secret(self, name: str, *, type: str = "Opaque", namespace: str = "", **values: str) -> Key:
        key = Key(namespace or self.tenant, name)
        with suppress(NotFound):
            await self.client.patch(SECRETS, key, {"stringData": values})
            return key
        body = {"metadata": {"name": name}, "type": type, "stringData": values}
        await self.client.create(SECRETS, body, namespace=key.namespace)
        return key

    async def claim(
        self, name: str = "c1", *, annotations: Mapping[str, str] | None = None, **spec: Any
    ) -> Key:
        body = {
            "metadata": {"name": name, "annotations": dict(annotations or {})},
            "spec": {"poweredOn": True, "image": IMAGE, **spec},
        }
        await self.client.create(HOST_CLAIMS, body, namespace=self.tenant)
        return Key(self.tenant, name)

    async def edit(self, key: Key, **spec: Any) -> None:
        await self.client.patch(HOST_CLAIMS, key, {"spec": spec})

    async def annotate(self, key: Key, **annotations: str | None) -> None:
        await self.client.patch(HOST_CLAIMS, key, {"metadata": {"annotations": annotations}})

    async def tear_away(self, key: Key) -> None:
        """Delete the claim, and take its finalizer off so that it goes at once."""
        await self.client.patch(HOST_CLAIMS, key, {"metadata": {"finalizers": None}})
        await self.client.delete(HOST_CLAIMS, key)
        with suppress(NotFound):
            # Somebody held it a moment before it was deleted.
            await self.client.patch(HOST_CLAIMS, key, {"metadata": {"finalizers": None}})

    async def get(self, key: Key) -> HostClaim:
        return await self.client.get(HOST_CLAIMS, key)

    async def until(self, key: Key, condition: Callable[[HostClaim], bool]) -> HostClaim:
        return await self.until_of(HOST_CLAIMS, key, condition)

    async def until_told(self, key: Key, kind: str, status: str, words: str = "") -> Condition:
        """Until a condition of the claim says this, of the claim as it is."""

        def says(claim: HostClaim) -> bool:
            found = condition(claim, kind)
            return (
                found is not None
                and found.status == status
                and words in found.message
                and found.observed_generation == claim.metadata.generation
            )

        found = condition(await self.until(key, says), kind)
        assert found is not None
        return found

    async def until_gone(self, key: Key, kind: Resource[Any] = HOST_CLAIMS) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.get(kind, key)
                except NotFound:
                    return
                await asyncio.sleep(0.01)

    async def until_event(self, namespace: str, reason: str) -> str:
        async with asyncio.timeout(PATIENCE):
            while True:
                for event in (await self.client.list(EVENTS, namespace=namespace)).items:
                    if event.reason == reason:
                        return event.message
                await asyncio.sleep(0.01)

    async def everything_in(self, namespace: str) -> str:
        """All that somebody who may read everything in this namespace can read there, as one text."""
        found = []
        for kind in (HOST_CLAIMS, HARDWARE_DATA, SECRETS, EVENTS, BARE_METAL_HOSTS):
            listed = await self.client.list(kind, namespace=namespace)
            found += [msgspec.json.encode(item).decode() for item in listed.items]
        return "\n".join(found)

    async def until_of(self, kind: Resource[T], key: Key, condition: Callable[[T], bool]) -> T:
        found: T | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with suppress(NotFound):
                        found = await self.client.get(kind, key)
                        if condition(found):
                            return found
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{kind.kind} {key} never came there; it is {found}") from None


def condition(claim: HostClaim, kind: str) -> Condition | None:
    return next((found for found in claim.status.conditions if found.type == kind), None)


def consumer(room: Room, claim: str) -> dict[str, str]:
    """As somebody writes it on a host by hand."""
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "HostClaim",
        "name": claim,
        "namespace": room.tenant,
    }


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def opened(api: Running) -> AsyncIterator[Room]:
    async with Client.from_kubeconfig(api.kubeconfig) as client:
        room = Room(client, api.kubeconfig)
        await room.open()
        try:
            yield room
        finally:
            await room.close()
