"""A rack: the embedded API, the host controller, and a back end that follows a script."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from scripted import ScriptedBackend

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost
from ingot.api.core import EVENTS, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA, HardwareData
from ingot.api.meta import Key
from ingot.hosts import HostController, HostSettings
from ingot.kube import Change, Client, EventRecorder, Informer, Manager, NotFound

NAMESPACE = "default"
IMAGE = {
    "url": "https://images.example/a.raw",
    "checksum": "0" * 64,
    "checksumType": "sha256",
    "format": "raw",
}


class Operator:
    """The host controller over an API and a back end. It can be ended in the middle of anything, and started anew."""

    def __init__(
        self, client: Client, backend: ScriptedBackend, recorder: EventRecorder, settings: HostSettings
    ) -> None:
        self._start = lambda: HostController(client, backend, recorder, settings=settings)
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        hosts = self._start()
        manager = Manager(hosts.informers, hosts.controllers, tasks=[hosts.follow_backend])
        self._running = asyncio.create_task(manager.run())
        await manager.started()

    async def end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        assert self._running is not None
        self._running.cancel()

    async def restart(self) -> None:
        await self.end()
        await self.start()


class Rack:
    """What a test does with hosts."""

    def __init__(self, client: Client, backend: ScriptedBackend, operator: Operator | None = None) -> None:
        self.client = client
        self.backend = backend
        self._operator = operator

    @property
    def operator(self) -> Operator:
        assert self._operator is not None, "this rack's operator is run by its test"
        return self._operator

    async def secret(self, name: str = "h1-bmc", **values: str) -> None:
        data = values or {"username": "admin", "password": "hunter2"}
        await self.client.create(
            SECRETS, {"metadata": {"name": name}, "stringData": data}, namespace=NAMESPACE
        )

    async def host(
        self,
        name: str = "h1",
        *,
        secret: bool = True,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Key:
        """A host with an address, and its Secret."""
        if secret:
            await self.secret(f"{name}-bmc")
        bmc = {
            "address": f"redfish-virtualmedia://127.0.0.1/redfish/v1/Systems/{name}",
            "credentialsName": f"{name}-bmc",
        }
        metadata = {"name": name, "annotations": dict(annotations or {})}
        body = {"metadata": metadata, "spec": {"online": True, "bmc": bmc} | spec}
        await self.client.create(BARE_METAL_HOSTS, body, namespace=NAMESPACE)
        return Key(NAMESPACE, name)

    async def get(self, key: Key) -> BareMetalHost:
        return await self.client.get(BARE_METAL_HOSTS, key)

    async def change(self, key: Key, spec: Mapping[str, Any]) -> None:
        await self.client.patch(BARE_METAL_HOSTS, key, {"spec": spec})

    async def annotate(self, key: Key, annotation: str, value: str | None = "") -> None:
        """Set an annotation; None removes it."""
        await self.client.patch(BARE_METAL_HOSTS, key, {"metadata": {"annotations": {annotation: value}}})

    async def delete(self, key: Key) -> None:
        await self.client.delete(BARE_METAL_HOSTS, key)

    async def hardware_data(self, key: Key) -> HardwareData:
        return await self.client.get(HARDWARE_DATA, key)

    async def until(self, key: Key, condition: Callable[[BareMetalHost], bool]) -> BareMetalHost:
        """Wait until the host is as the condition says."""
        last: BareMetalHost | None = None
        try:
            async with asyncio.timeout(30):
                while True:
                    last = await self.get(key)
                    if condition(last):
                        return last
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{key} never came there; its status is {last and last.status}") from None

    async def until_state(self, key: Key, state: str) -> BareMetalHost:
        return await self.until(key, lambda host: host.status.provisioning.state == state)

    async def until_error(self, key: Key, fragment: str) -> BareMetalHost:
        return await self.until(key, lambda host: fragment in host.status.error_message)

    async def until_well(self, key: Key, state: str) -> BareMetalHost:
        return await self.until(
            key, lambda host: host.status.provisioning.state == state and not host.status.error_type
        )

    async def until_rebooted(self, key: Key) -> BareMetalHost:
        """Wait until a reboot that was asked for is over: nobody asks any more, and the machine was started."""

        def over(host: BareMetalHost) -> bool:
            started = self.backend.machines[key].orders[-1:] in (["power on"], ["service"])
            asked = Annotation.REBOOT in host.metadata.annotations
            return started and not asked and host.status.powered_on

        return await self.until(key, over)

    async def until_gone(self, key: Key) -> None:
        async with asyncio.timeout(30):
            while True:
                try:
                    await self.get(key)
                except NotFound:
                    return
                await asyncio.sleep(0.02)

    async def settle(self) -> None:
        """Long enough for whatever was going to happen by itself to have happened."""
        await asyncio.sleep(0.3)

    @staticmethod
    def sentence(host: BareMetalHost) -> str:
        """Why the host is where it is, as its user reads it."""
        found = (found.message for found in host.status.conditions if found.type == "Progressing")
        return next(found, "")

    @contextlib.asynccontextmanager
    async def host_writes(self) -> AsyncIterator[list[str]]:
        """The versions that hosts come to meanwhile, one for each write."""
        versions: list[str] = []
        watch = Informer(self.client, BARE_METAL_HOSTS, namespace=NAMESPACE)
        following = asyncio.create_task(watch.run())
        await watch.synced()
        known = {host.metadata.resource_version for host in watch.items()}

        def changed(change: Change[BareMetalHost]) -> None:
            if change.new is not None and change.new.metadata.resource_version not in known:
                versions.append(change.new.metadata.resource_version)

        watch.subscribe(changed)
        try:
            yield versions
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def event_reasons(self) -> list[str]:
        return [event.reason for event in (await self.client.list(EVENTS, namespace=NAMESPACE)).items]
