"""A world for the laws of hosts: the real controller on the real embedded API, demo machines, and a clock that can leap.

The API lives in a thread of its own and serves many worlds, each in a namespace of its own. In a world the event loop's time can
be moved on: every back-off, deadline and slow machine sees the time pass, and nothing is woken that has no timer of its own.
The operator can die before any call that it makes, to the API or to the back end, and another one takes its place.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import NAMESPACES
from ingot.api.meta import Key, Object, Resource, now
from ingot.hosts import HostController, HostSettings
from ingot.kube import Client, EventRecorder, Informer, Manager, NotFound, metadata_of
from ingot.provisioner import Access, Failed, Provisioner
from ingot.provisioner.demo import DemoProvisioner, Script
from leaping_worlds import LeapingLoop

T = TypeVar("T", bound=Object)
R = TypeVar("R")

WRONG: Final = "wrong"
"""The password that no machine takes."""
NEAR: Final = 2.0
"""Seconds within which something that is due by itself is waited for."""
MOST_CALLS: Final = 2_000
"""Calls after which a world that does not come to rest is one that never will."""
_CONTROLLERS: Final = logging.getLogger("ingot.kube.controller")
_numbers = itertools.count(1)


# Dying


class Killed(Exception):
    """The operator is dead, and whatever it was about to do is not done."""


@dataclass
class Life:
    """One life of the operator: every call it makes is a moment at which it can end."""

    writes: list[str] = field(default_factory=list)
    calls: int = 0
    dies_at: int | None = None
    dies_after: str = ""
    """The back end's verb of whose answer it never hears."""
    dead: bool = False

    def call(self) -> None:
        self.calls += 1
        if self.dies_at is not None and self.calls >= self.dies_at:
            self.dead = True
        if self.dead:
            raise Killed


class OperatorClient(Client):
    """The operator's way to the API: what it writes is counted."""

    life: Life

    async def create(self, kind: Resource[T], body: T | Mapping[str, object], *, namespace: str = "") -> T:
        self._note(f"create {kind.kind}")
        return await super().create(kind, body, namespace=namespace)

    async def patch(
        self,
        kind: Resource[T],
        key: Key,
        patch: Mapping[str, object],
        *,
        subresource: str = "",
        resource_version: str = "",
    ) -> T:
        self._note(f"patch {kind.kind} {key.name} {subresource} {patch}")
        return await super().patch(
            kind, key, patch, subresource=subresource, resource_version=resource_version
        )

    async def delete(self, kind: Resource[T], key: Key, **how: Any) -> None:
        self._note(f"delete {kind.kind} {key.name}")
        await super().delete(kind, key, **how)

    def _note(self, what: str) -> None:
        self.life.call()
        self.life.writes.append(what)


class Between:
    """Stands between the operator and the back end: calls are counted, and wrong passwords are wrong."""

    SILENT: Final = frozenset(
        {"changes", "check", "follow", "notice", "ramdisk_formats", "boots_over_network", "cannot_deploy"}
    )

    def __init__(self, backend: DemoProvisioner) -> None:
        self._backend = backend
        self.life = Life()

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._backend, name)
        return verb if name in self.SILENT else partial(self._call, verb)

    async def _call(self, verb: Callable[..., Awaitable[R]], *told: Any, **how: Any) -> R | Failed:
        self.life.call()
        for order in told:
            credentials = order.credentials if isinstance(order, Access) else None
            if credentials is not None and credentials.password.reveal() == WRONG:
                return Failed("the BMC refused the password", refused_credentials=True)
        answer = await verb(*told, **how)
        if verb.__name__ == self.life.dies_after:
            self.life.dead = True
            raise Killed
        return answer


class Complaints(logging.Handler):
    """What controllers say of passes that ended by an error. What the API refuses is none, nor is the operator's own death."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if "Traceback" in said and "Killed" not in said:
            self.heard.append(said)


# The world


class World:
    """One namespace, its machines, and its operator."""

    def __init__(self, kubeconfig: Path, settings: HostSettings, script: Script) -> None:
        self.namespace = f"laws-{next(_numbers)}"
        self._runner = asyncio.Runner(loop_factory=LeapingLoop)
        self.client = Client.from_kubeconfig(kubeconfig)
        self._operator_client = OperatorClient.from_kubeconfig(kubeconfig)
        self._settings = settings
        loop = cast("LeapingLoop", self._runner.get_loop())
        self._loop = loop
        self.backend = DemoProvisioner(script=script, clock=loop.time)
        self._between = Between(self.backend)
        self._started, self._began = now(), loop.time()
        self._recorder = EventRecorder(self.client)
        self._hosts: HostController | None = None
        self._running: asyncio.Task[None] | None = None
        self.complaints = Complaints()
        _CONTROLLERS.addHandler(self.complaints)
        self.writes: list[str] = []
        """What operators have written, until somebody clears it."""
        self.life = Life(self.writes)
        self.run(self._open())

    def run(self, what: Any) -> Any:
        return self._runner.run(what)

    def now(self) -> datetime:
        return self._started + timedelta(seconds=self._loop.time() - self._began)

    async def _open(self) -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        await self.backend.__aenter__()
        await self.start()

    def close(self) -> None:
        _CONTROLLERS.removeHandler(self.complaints)
        self.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        await self.kill()
        await self._recorder.close()
        await self.backend.__aexit__(None, None, None)
        await self.client.close()
        await self._operator_client.close()
        await self._loop.until_connections_are_closed()

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    async def get(self, kind: Resource[T], name: str) -> T | None:
        try:
            return await self.client.get(kind, self.key(name))
        except NotFound:
            return None

    async def host(self, name: str) -> BareMetalHost | None:
        return await self.get(BARE_METAL_HOSTS, name)

    # The operator

    async def start(self) -> None:
        self.life = self._between.life = self._operator_client.life = Life(self.writes)
        self._hosts = HostController(
            self._operator_client,
            cast("Provisioner", self._between),
            self._recorder,
            settings=self._settings,
            namespace=self.namespace,
            workers=4,
            clock=self.now,
        )
        manager = Manager(self._hosts.informers, self._hosts.controllers, tasks=[self._hosts.follow_backend])
        self._running = asyncio.create_task(manager.run())
        await manager.started()

    async def kill(self) -> None:
        """As with -9: nothing that it is about to do is done."""
        self.life.dead = True
        if self._running is not None and self._hosts is not None:
            for controller in self._hosts.controllers:
                controller.give_no_grace()
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    def has_timer(self, name: str) -> bool:
        """Whether the operator is going to look at the host by itself."""
        assert self._hosts is not None
        return self.key(name) in self._hosts.controller._queue._timers

    def waits_for(self) -> list[str]:
        """Everything that the operator is going to look at by itself."""
        assert self._hosts is not None
        return [
            f"{controller.name} {key}"
            for controller in self._hosts.controllers
            for key in controller._queue._timers
        ]

    async def tell_everything(self) -> None:
        """As a back end does that may have missed something."""
        self.backend.come_back()

    # Coming to rest

    async def settle(self) -> None:
        """Until nobody has anything to do before time passes. An operator that died is replaced."""
        began, most = time.monotonic(), self.life.calls + MOST_CALLS
        while not await self._is_at_rest():
            if self.life.dead:
                await self.restart()
                most = self.life.calls + MOST_CALLS
            if self.life.calls > most or time.monotonic() - began > 120:
                raise AssertionError(f"the world does not come to rest: {self.life.writes[-20:]}")
            await asyncio.sleep(0.003)

    async def _is_at_rest(self) -> bool:
        seen = self.life.calls
        for _ in range(3):
            # Asking the API costs more than waiting a little for whoever is about to begin something.
            if self.life.dead or not self._is_idle():
                return False
            await asyncio.sleep(0.001)
        assert self._hosts is not None
        for informer in self._hosts.informers:
            if not await self._has_caught_up(informer):
                return False
        return not self.life.dead and self.life.calls == seen and self._is_idle()

    def _is_idle(self) -> bool:
        assert self._hosts is not None
        for controller in self._hosts.controllers:
            queue = controller._queue
            due = queue.next_due()
            if len(queue) or queue.active or (due is not None and due - self._loop.time() < NEAR):
                return False
        return True

    async def _has_caught_up(self, informer: Informer[Any]) -> bool:
        kind = metadata_of(informer._kind)
        found = await self.client.list(kind, namespace=self.namespace, fields=informer._fields)
        there = {item.key: item.metadata.resource_version for item in found.items}
        return there == {item.key: item.metadata.resource_version for item in informer.items()}

    async def leap(self, seconds: float) -> None:
        """Let time pass."""
        await self.settle()
        self._loop.leapt += seconds
        # Whatever was due meanwhile is seen to be so when the loop comes round.
        await asyncio.sleep(0.01)
