"""A world for the laws of machines and claims: real actuators on the real embedded API, and a clock that can leap.

Each actuator is what an operator runs, with caches of its own behind a wire of its own (`claiming_wire`). They know nothing of
each other, and there is no Lease between them: two that both believe to lead are the worst case, and the case. Hosts live as
people and their controller have them live (`claiming_people`).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from pathlib import Path
from typing import Any, Final, cast

from claiming_laws import Chronicle
from claiming_wire import Fate, Letter, Wire, WiredClient

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NAMESPACES, SECRETS
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES
from ingot.api.meta import Key, Resource
from ingot.kube import Client, EventRecorder, Informer, Manager, config, metadata_of
from ingot.machines.running import MachineSettings, machines
from leaping_worlds import LeapingLoop

NEAR: Final = 5.0
"""Seconds within which something that is due by itself is not waited for: the clock leaps there."""
MOST_CALLS: Final = 1_000
"""Calls after which a world that does not come to rest is one that never will."""
LONGEST_QUARREL: Final = 60
"""Calls for which those that know different things are waited for."""
FOLLOWED: Final[tuple[Resource[Any], ...]] = (
    BARE_METAL_HOSTS,
    MACHINES,
    HOST_CLAIMS,
    HOST_DEPLOY_POLICIES,
    SECRETS,
)
_CONTROLLERS: Final = logging.getLogger("ingot.kube.controller")
_numbers = itertools.count(1)


class Complaints(logging.Handler):
    """Passes that ended by an error nobody foresaw. What the API refuses or the wire breaks is none, nor is a death."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if "Traceback" in said and "Killed" not in said:
            self.heard.append(said)


class Actuator:
    """One life of one operator."""

    def __init__(self, world: World) -> None:
        self.wire = Wire(world.client, world.post)
        self._client = WiredClient(world.access)
        self._client.wire = self.wire
        running = machines(self._client, world.recorder, MachineSettings(workers=4, machinesets="off"))
        self._informers, self._controllers = running.informers, running.controllers
        self._manager = Manager(running.informers, running.controllers, tasks=running.tasks)
        self._running = asyncio.create_task(self._manager.run())

    async def started(self) -> None:
        await self._manager.started()

    async def kill(self) -> None:
        """As with -9: nothing that it is about to do is done. What it sent is on its way."""
        self.wire.dead = True
        for controller in self._controllers:
            controller.give_no_grace()
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        await self._client.close()

    def is_idle(self) -> bool:
        """Whether all it could do is wait: for the post, for news, for the clock."""
        due = sum(len(controller._queue) for controller in self._controllers)
        active = sum(len(controller._queue.active) for controller in self._controllers)
        return not due and active <= self.wire.waiting and not self._client.under_way

    def next_due(self) -> float | None:
        times = [at for controller in self._controllers if (at := controller._queue.next_due()) is not None]
        return min(times, default=None)

    def has_heard(self, there: dict[str, dict[Key, str]]) -> bool:
        """Whether its caches are what the API has, but for what is held back."""
        for informer in self._informers:
            kind = informer._kind.kind
            if kind in there and kind not in self.wire.held and versions(informer.items()) != there[kind]:
                return False
        return True


def versions(items: Any) -> dict[Key, str]:
    return {item.key: item.metadata.resource_version for item in items}


class World:
    """Two namespaces, with hosts in one and a tenant in the other, and those who act on them."""

    def __init__(self, kubeconfig: Path, *, actuators: int) -> None:
        number = next(_numbers)
        self.racks, self.tenant = f"racks-{number}", f"tenant-{number}"
        self.access = config.load(kubeconfig)
        self._runner = asyncio.Runner(loop_factory=LeapingLoop)
        self._loop = cast("LeapingLoop", self._runner.get_loop())
        self.client = Client(self.access)
        self.recorder = EventRecorder(self.client)
        self.post: list[Letter] = []
        self.chronicle = Chronicle()
        self._witness = Informer(self.client, BARE_METAL_HOSTS, namespace=self.racks)
        self._witness.subscribe(self.chronicle.note)
        self.actuators: list[Actuator] = []
        self.complaints = Complaints()
        _CONTROLLERS.addHandler(self.complaints)
        self.run(self._open(actuators))

    def run(self, what: Any) -> Any:
        return self._runner.run(what)

    async def _open(self, actuators: int) -> None:
        for namespace in (self.racks, self.tenant):
            await self.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        self._witnessing = asyncio.create_task(self._witness.run())
        await self._witness.synced()
        self.actuators = [Actuator(self) for _ in range(actuators)]
        for actuator in self.actuators:
            await actuator.started()

    def close(self) -> None:
        _CONTROLLERS.removeHandler(self.complaints)
        self.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        for actuator in self.actuators:
            await actuator.kill()
        self._witnessing.cancel()
        await asyncio.gather(self._witnessing, return_exceptions=True)
        await self._wipe()
        await self.recorder.close()
        await self.client.close()
        await self._loop.until_connections_are_closed()

    async def _wipe(self) -> None:
        """A life that went wrong leaves nothing to the next one."""
        for kind in FOLLOWED:
            for item in (await self.client.list(metadata_of(kind))).items:
                if item.metadata.finalizers:
                    await self.client.patch(metadata_of(kind), item.key, {"metadata": {"finalizers": None}})
                if item.metadata.deletion_timestamp is None:
                    await self.client.delete(kind, item.key)

    # Actuators

    async def kill(self, number: int) -> None:
        """Another one takes its place."""
        await self.actuators[number].kill()
        self.actuators[number] = Actuator(self)
        await self.actuators[number].started()

    async def deliver(self, number: int, fate: Fate) -> None:
        if self.post:
            await self.post.pop(number % len(self.post)).meet(fate, self.client)

    @property
    def writes(self) -> list[str]:
        return [what for actuator in self.actuators for what in actuator.wire.writes]

    def forget_writes(self) -> None:
        for actuator in self.actuators:
            actuator.wire.writes.clear()

    # Coming to rest

    async def settle(self) -> None:
        """Until nobody can go on before time passes, news are let through or letters delivered.

        Two that know different things may write what they know in turn, for as long as they do: that is no rest, and no harm.
        """
        began, most = time.monotonic(), self._calls() + MOST_CALLS
        while not await self._is_at_rest():
            if self._calls() > most - MOST_CALLS + LONGEST_QUARREL and any(
                actuator.wire.held for actuator in self.actuators
            ):
                return
            for number, actuator in enumerate(self.actuators):
                if actuator.wire.dead:
                    await self.kill(number)
                    most = self._calls() + MOST_CALLS
            if self._calls() > most or time.monotonic() - began > 60:
                raise AssertionError(f"the world does not come to rest: {self.writes[-20:]}")
            await asyncio.sleep(0.002)

    def _calls(self) -> int:
        return sum(actuator.wire.calls for actuator in self.actuators)

    async def _is_at_rest(self) -> bool:
        seen = self._calls()
        for _ in range(3):
            if not self._is_idle():
                return False
            await asyncio.sleep(0.001)
        there = {kind.kind: versions((await self.client.list(metadata_of(kind))).items) for kind in FOLLOWED}
        if versions(self._witness.items()) != {
            key: version for key, version in there["BareMetalHost"].items() if key.namespace == self.racks
        }:
            return False
        if not all(actuator.has_heard(there) for actuator in self.actuators):
            return False
        if self._calls() != seen or not self._is_idle():
            return False
        return not self._leapt_to_what_is_near()

    def _is_idle(self) -> bool:
        return all(not actuator.wire.dead and actuator.is_idle() for actuator in self.actuators)

    def _leapt_to_what_is_near(self) -> bool:
        times = [due for actuator in self.actuators if (due := actuator.next_due()) is not None]
        ahead = min(times, default=float("inf")) - self._loop.time()
        if ahead > NEAR:
            return False
        self._loop.leapt += max(0.0, ahead)
        return True

    async def leap(self, seconds: float) -> None:
        """Let time pass. Nobody is in the middle of something then: a request would have taken too long."""
        await self.settle()
        self._loop.leapt += seconds
        # Whatever was due meanwhile is seen to be so when the loop comes round.
        await asyncio.sleep(0.005)
