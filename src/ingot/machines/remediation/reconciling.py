"""A pass over one Machine that is to be mended: the steps are decided in `steps`, and carried out here, one write each.

Each write is guarded by the version that was decided on, and its answer is the newest that is known: a pass goes on until there
is something to wait for. Before the host is switched off the Machine is read from the API once more, and before the Node is
deleted the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import NODES, Node
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import Key, now
from ingot.kube import REFUSALS, Again, Client, Done, EventRecorder, Informer, NotFound
from ingot.machines.machine.linking import consumer_of, link_of
from ingot.machines.pool import Pool
from ingot.machines.remediation.startup import time_to_start
from ingot.machines.remediation.steps import (
    AT_ONCE,
    GIVEN_UP,
    KEPT_OFF,
    BackUp,
    DeleteMachine,
    DeleteNode,
    Finish,
    GiveUp,
    Rest,
    Restore,
    SetDeadline,
    Sight,
    Step,
    Stuck,
    SwitchOff,
    SwitchOn,
    TakeBack,
    Wait,
    backed_up,
    finished,
    given_up_for,
    is_kept_off_for_nobody,
    is_machine,
    marked_off,
    next_step,
)
from ingot.machines.vacancies import belongs_to

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at something that is waited for; mostly the news of it comes first."""
SWITCHED_OFF_WITHIN: Final = timedelta(minutes=5)
"""The time after which somebody should know that the host is still not off."""
_MOST_STEPS: Final = 10
_VOICE: Final = "remediation"


class Remediator:
    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        pool: Pool,
        *,
        machines: Informer[Machine],
        nodes: Informer[Node],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._pool = pool
        self._machines = machines
        self._nodes = nodes
        self._clock = clock
        self._waiting: dict[Key, tuple[str, datetime]] = {}
        """What each Machine waits for, and since when; of what is told once, the sentence."""

    async def mend(self, key: Key) -> Done | Again:
        """Take the steps that can be taken now for the Machine of this key."""
        for _ in range(_MOST_STEPS):
            machine = self._machines.get(key)
            if machine is None:
                break
            sight = Sight(machine, self._host_of(machine), self._node_of(machine), self._clock())
            step = next_step(sight)
            if isinstance(step, Rest):
                break
            try:
                result = await self._take(step, sight)
            except NotFound as error:
                result = Again(1.0, str(error))
            except REFUSALS as error:
                result = self._stuck(machine, f"The API refuses it: {error.message}")
            if result is not None:
                return result
        else:
            return Again(LOOK_EVERY, "one step after the other, and others wait")
        self._waiting.pop(key, None)
        return Done()

    async def let_go(self, key: Key) -> Done:
        """Have the host of this key switched on again if it is kept off for nobody."""
        host = self._pool.get(key)
        if host is None:
            return Done()
        consumer = host.spec.consumer_ref
        machine = None
        if consumer is not None and is_machine(consumer):
            machine = self._machines.get(Key(consumer.namespace, consumer.name))
        if is_kept_off_for_nobody(host, machine):
            with contextlib.suppress(NotFound):
                await self._pool.patch(host, _annotated(KEPT_OFF, None))
        return Done()

    # What is known

    def _host_of(self, machine: Machine) -> BareMetalHost | None:
        """The host that the Machine names, if that host says the same."""
        link = link_of(machine)
        host = self._pool.get(link.key) if link is not None else None
        if link is None or host is None or not link.means(host) or not belongs_to(host, consumer_of(machine)):
            return None
        return host

    def _node_of(self, machine: Machine) -> Node | None:
        """The Node under the name that the Machine has written down, else one that names the Machine or its host."""
        reference = machine.status.node_ref
        if reference is not None and (known := self._nodes.get(Key("", reference.name))) is not None:
            return known
        for node in self._nodes.items():
            if node.metadata.annotations.get(Annotation.MACHINE) == str(machine.key):
                return node
            if machine.spec.provider_id and node.spec.provider_id == machine.spec.provider_id:
                return node
        return None

    # What is done

    async def _take(self, step: Step, sight: Sight) -> Done | Again | None:
        """Take a step; None if another one can follow at once."""
        machine, host, node = sight.machine, sight.host, sight.node
        match step:
            case Wait(why):
                return self._wait(machine, host, why)
            case Stuck(why):
                return self._stuck(machine, why)
            case SwitchOff() if host is not None:
                return await self._switch_off(machine, host)
            case BackUp():
                await self._patch(machine, backed_up(step))
            case DeleteNode() if host is not None and node is not None:
                return await self._delete_node(machine, host, node)
            case SetDeadline():
                await self._patch(machine, marked_off(sight.at + await time_to_start(self._client, machine)))
            case SwitchOn() if host is not None:
                await self._pool.patch(host, _annotated(KEPT_OFF, None))
                self._tell(machine, "RemediationPowerOn", f"Switching BareMetalHost {host.key} on again")
            case Restore() if node is not None:
                await self._restore(node, step)
            case Finish():
                await self._patch(machine, finished())
                if node is not None:
                    self._tell(machine, "Remediated", f"Node {node.metadata.name} is back")
            case GiveUp() if host is not None:
                return await self._if_unchanged(
                    machine, lambda: self._pool.patch(host, _annotated(GIVEN_UP, given_up_for(machine)))
                )
            case TakeBack() if host is not None:
                await self._pool.patch(host, _annotated(GIVEN_UP, None))
            case DeleteMachine(why):
                return await self._delete_machine(machine, why)
        return None

    async def _switch_off(self, machine: Machine, host: BareMetalHost) -> Again | None:
        again = await self._if_unchanged(
            machine, lambda: self._pool.patch(host, _annotated(KEPT_OFF, AT_ONCE))
        )
        if again is None:
            self._tell(machine, "RemediationStarted", f"Switching BareMetalHost {host.key} off")
        return again

    async def _if_unchanged(self, seen: Machine, act: Callable[[], Awaitable[object]]) -> Again | None:
        """Of a Machine that is well again, and of which only the cache has not heard yet, the host must not be touched."""
        machine = await self._client.get(MACHINES, seen.key)
        self._machines.observe(machine)
        if machine.metadata.resource_version != seen.metadata.resource_version:
            return Again(0.0, "the Machine is not what it was")
        await act()
        return None

    def _wait(self, machine: Machine, host: BareMetalHost | None, why: str) -> Again:
        is_late = self._clock() - self._waits_since(machine.key, why) > SWITCHED_OFF_WITHIN
        if is_late and host is not None and host.status.powered_on and KEPT_OFF in host.metadata.annotations:
            minutes = SWITCHED_OFF_WITHIN // timedelta(minutes=1)
            self._tell(
                machine,
                "RemediationSlow",
                f"BareMetalHost {host.key} is still on, {minutes} minutes after it was to be switched off. Its Node stays: "
                "what runs there may still run. Look at what the host says, or switch it off by hand.",
                type="Warning",
            )
            # And again after as long, if it is still on then.
            self._waiting.pop(machine.key, None)
        return Again(LOOK_EVERY, why)

    def _stuck(self, machine: Machine, why: str) -> Again:
        """Say it once, and go on looking: somebody may do something about it, or the Node may come back after all."""
        known = self._waiting.get(machine.key)
        if known is None or known[0] != why:
            self._waits_since(machine.key, why)
            self._tell(machine, "RemediationStuck", why, type="Warning")
        return Again(LOOK_EVERY, why)

    def _waits_since(self, key: Key, why: str) -> datetime:
        known = self._waiting.get(key)
        if known is None or known[0] != why:
            self._waiting[key] = known = (why, self._clock())
        return known[1]

    async def _delete_node(self, machine: Machine, host: BareMetalHost, node: Node) -> Again:
        seen = await self._pool.look_again(host.key)
        if seen is None or seen.status.powered_on or KEPT_OFF not in seen.metadata.annotations:
            return Again(0.0, "the host is not what it was")
        try:
            # Of the version that was backed up: what it was told since would be lost.
            await self._client.delete(
                NODES, node.key, uid=node.metadata.uid, resource_version=node.metadata.resource_version
            )
        except NotFound:
            pass
        else:
            self._tell(
                machine,
                "RemediationNodeDeleted",
                f"BareMetalHost {host.key} is off: deleted Node {node.metadata.name}",
            )
        return Again(LOOK_EVERY, "the Node is being deleted")

    async def _restore(self, node: Node, step: Restore) -> None:
        change: dict[str, Any] = {"labels": step.labels, "annotations": step.annotations}
        written = await self._client.patch(
            NODES, node.key, {"metadata": change}, resource_version=node.metadata.resource_version
        )
        self._nodes.observe(written)

    async def _delete_machine(self, machine: Machine, why: str) -> Done:
        metadata = machine.metadata
        await self._client.delete(
            MACHINES, machine.key, uid=metadata.uid, resource_version=metadata.resource_version
        )
        self._tell(machine, "RemediationTimedOut", why, type="Warning")
        return Done()

    async def _patch(self, machine: Machine, change: dict[str, Any]) -> None:
        written = await self._client.patch(
            MACHINES, machine.key, change, resource_version=machine.metadata.resource_version
        )
        self._machines.observe(written)

    def _tell(
        self, machine: Machine, reason: str, message: str, *, type: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        self._recorder.record(machine, type=type, reason=reason, message=message, controller=_VOICE)


def _annotated(name: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {name: value}}}
