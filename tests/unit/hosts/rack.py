"""A rack: a namespace of the embedded API, the host controller, and a back end that follows a script.

Nobody sleeps here: `until` looks when the operator has heard of something, and `settle` returns when nothing is left to do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from scripted import ScriptedBackend

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost
from ingot.api.core import EVENTS, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA, HardwareData
from ingot.api.meta import Key, Object, Resource, now
from ingot.hosts import HostController, HostSettings
from ingot.kube import Change, Client, EventRecorder, Informer, Manager, NotFound

T = TypeVar("T", bound=Object)

IMAGE = {
    "url": "https://images.example/a.raw",
    "checksum": "0" * 64,
    "checksumType": "sha256",
    "format": "raw",
}

PATIENCE = 60.0
"""Seconds, on a machine that may be busy."""
NOW_AND_THEN = 0.05
SOON = 0.3
"""Seconds within which what falls due by itself is waited for."""
QUIET = 24
"""How often the loop comes round with nothing new before it is quiet: news is on its way for a few rounds."""


def is_idle(hosts: HostController) -> bool:
    """Whether nobody works, nothing is due, and nothing falls due soon."""
    for controller in hosts.controllers:
        queue = controller._queue
        due = queue.next_due()
        if len(queue) or queue.active or (due is not None and due - asyncio.get_running_loop().time() < SOON):
            return False
    return True


class Operator:
    """The host controller over an API and a back end. It can be ended in the middle of anything, and started anew."""

    def __init__(
        self,
        client: Client,
        backend: ScriptedBackend,
        recorder: EventRecorder,
        settings: HostSettings,
        *,
        namespace: str,
    ) -> None:
        self._start = lambda: HostController(
            client,
            backend,
            recorder,
            settings=settings,
            namespace=namespace,
            clock=lambda: now() + self.ahead,
        )
        self.ahead = timedelta(0)
        """How far its clock is ahead."""
        self._recorder = recorder
        self._backend = backend
        self._running: asyncio.Task[None] | None = None
        self._hosts: HostController | None = None
        self.heard = asyncio.Event()
        """Set whenever the operator has heard of a change."""
        self._changes = 0

    async def start(self) -> None:
        hosts = self._hosts = self._start()
        for informer in hosts.informers:
            informer.subscribe(self._changed)
        manager = Manager(hosts.informers, hosts.controllers, tasks=[hosts.follow_backend])
        self._running = asyncio.create_task(manager.run())
        await manager.started()

    async def end(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    def _changed(self, _: Change[Any]) -> None:
        self._changes += 1
        self.heard.set()

    def may_know(self, key: Key, condition: Callable[[BareMetalHost], bool]) -> bool:
        """Whether the host is as the condition says as far as it has heard; also when it knows nothing."""
        host = self._hosts.hosts.get(key) if self._hosts is not None else None
        return host is None or condition(host)

    @property
    def deeds(self) -> tuple[int, int]:
        """What it has heard and what it has asked for: two numbers that stay the same while it does nothing."""
        return self._changes, self._backend.asked.total()

    def is_idle(self) -> bool:
        """Whether it has nothing to do, nothing to say, and nothing that falls due soon."""
        if self._recorder._writers or not self._backend.is_heard_out:
            return False
        over = self._running is None or self._running.done()
        return over or self._hosts is None or is_idle(self._hosts)

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        assert self._running is not None
        self._running.cancel()

    async def restart(self) -> None:
        await self.end()
        await self.start()


class Rack:
    """What a test does with hosts."""

    def __init__(
        self, client: Client, backend: ScriptedBackend, operator: Operator | None = None, *, namespace: str
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.backend = backend
        self._operator = operator

    @property
    def operator(self) -> Operator:
        assert self._operator is not None, "this rack's operator is run by its test"
        return self._operator

    @property
    def bmc(self) -> Key:
        """The Secret of the host h1."""
        return Key(self.namespace, "h1-bmc")

    async def secret(self, name: str = "h1-bmc", **values: str) -> None:
        data = values or {"username": "admin", "password": "hunter2"}
        await self.client.create(
            SECRETS, {"metadata": {"name": name}, "stringData": data}, namespace=self.namespace
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
        await self.client.create(BARE_METAL_HOSTS, body, namespace=self.namespace)
        return Key(self.namespace, name)

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

        async def is_there() -> bool:
            nonlocal last
            last = await self.get(key)
            return condition(last)

        await self.until_true(
            is_there,
            lambda: f"{key} never came there; its status is {last and last.status}",
            worth_a_look=lambda: self._operator is None or self._operator.may_know(key, condition),
        )
        assert last is not None
        return last

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
        await self.until_missing(BARE_METAL_HOSTS, key)

    async def until_object(self, kind: Resource[T], key: Key, condition: Callable[[T], bool]) -> T:
        """Wait until the object is there and as the condition says."""
        last: T | None = None

        async def is_there() -> bool:
            nonlocal last
            last = await self.found(kind, key)
            return last is not None and condition(last)

        await self.until_true(is_there, lambda: f"{kind.kind} {key} never came there; it is {last}")
        assert last is not None
        return last

    async def until_missing(self, kind: Resource[Any], key: Key) -> None:
        """Wait until the object is gone; garbage is collected in the background."""

        async def is_missing() -> bool:
            return await self.found(kind, key) is None

        await self.until_true(is_missing, lambda: f"{kind.kind} {key} is still there")

    async def found(self, kind: Resource[T], key: Key) -> T | None:
        try:
            return await self.client.get(kind, key)
        except NotFound:
            return None

    async def until_true(
        self,
        condition: Callable[[], Awaitable[bool]],
        complaint: Callable[[], str],
        *,
        worth_a_look: Callable[[], bool] = lambda: True,
    ) -> None:
        """Look when the operator has heard of something that is worth it, and now and then: it does not hear of everything."""
        loop = asyncio.get_running_loop()
        heard = self._operator.heard if self._operator is not None else asyncio.Event()
        end = loop.time() + PATIENCE
        while True:
            heard.clear()
            if await condition():
                return
            assert loop.time() < end, complaint()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(NOW_AND_THEN):
                    await heard.wait()
                    while not worth_a_look():
                        heard.clear()
                        await heard.wait()

    async def settle(self, *others: HostController) -> None:
        """Until whatever was going to happen by itself has happened. `others`: controllers that the test runs itself."""
        quiet, deeds = 0, (0, 0)
        async with asyncio.timeout(PATIENCE):
            while quiet < QUIET:
                # The API writes to its disk in a thread, which needs a moment; all else happens as the loop comes round.
                await asyncio.sleep(0 if quiet % 8 else 0.005)
                idle = all(is_idle(hosts) for hosts in others)
                if self._operator is not None:
                    idle = idle and self._operator.is_idle() and self._operator.deeds == deeds
                    deeds = self._operator.deeds
                quiet = quiet + 1 if idle else 0

    @staticmethod
    def sentence(host: BareMetalHost) -> str:
        """Why the host is where it is, as its user reads it."""
        found = (found.message for found in host.status.conditions if found.type == "Progressing")
        return next(found, "")

    @contextlib.asynccontextmanager
    async def host_writes(self) -> AsyncIterator[list[str]]:
        """The versions that hosts come to meanwhile, one for each write."""
        versions: list[str] = []
        watch = Informer(self.client, BARE_METAL_HOSTS, namespace=self.namespace)
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
        return [event.reason for event in (await self.client.list(EVENTS, namespace=self.namespace)).items]
