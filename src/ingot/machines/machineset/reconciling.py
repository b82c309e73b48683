"""A pass over one MachineSet: its number of replicas, its machines, and what its status says.

Most passes find in the caches that all is as it should be, and ask nothing. Where it is not, `settling` looks again, acts, and
what the status says is counted afterwards. Deleting a set is the garbage collector's business, as the owner references of its
machines say; a set that is being deleted takes nobody in and makes nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Final

from ingot.api.machine import MACHINE_SETS, Annotation, Machine, MachineSet, read_provider_spec
from ingot.api.meta import Key, Malformed, now
from ingot.kube import Again, Client, Done, EventRecorder
from ingot.machines.demands import UnusableSelector
from ingot.machines.machineset.autoscaling import Unclear, hosts_for, hosts_wanted
from ingot.machines.machineset.counting import counted, status_patch
from ingot.machines.machineset.known import VOICE, Known
from ingot.machines.machineset.members import sorted_out
from ingot.machines.machineset.naming import numbers_of
from ingot.machines.machineset.selecting import members_of, selection
from ingot.machines.machineset.settling import Changed, Settler
from ingot.machines.machineset.whose import Whose

PAUSE: Final = 0.2
"""Seconds between two passes over one set: a thousand machines that change together are counted a few times, not a thousand."""
SLOWLY: Final = 60.0
"""Seconds until something is looked at again that nobody will tell about."""


class MachineSetReconciler:
    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        known: Known,
        whose: Whose,
        *,
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._known = known
        self._whose = whose
        self._clock = clock
        self._settler = Settler(client, recorder, known)
        self._began: dict[Key, float] = {}
        """When the last pass over each set began."""

    async def __call__(self, key: Key) -> Done | Again:
        machine_set = self._known.sets.get(key)
        if machine_set is None or machine_set.metadata.deletion_timestamp is not None:
            self._began.pop(key, None)
            return Done()
        if (rest := self._rest(key)) > 0:
            return Again(rest, "the last pass has only just been")
        try:
            return await self._look(machine_set)
        except Exception:
            # To rest is no success: who comes back after a failure is to fail again, or the pauses between would not grow.
            self._began.pop(key, None)
            raise

    async def _look(self, machine_set: MachineSet) -> Done | Again:
        follows_hosts = Annotation.AUTOSCALE in machine_set.metadata.annotations
        if follows_hosts:
            machine_set = await self._scale_to_hosts(machine_set)
        if not await self._whose.ours():
            return Again(SLOWLY, "somebody else keeps MachineSets")
        try:
            result = await self._keep(machine_set)
        except Changed as why:
            return Again(PAUSE, str(why))
        if follows_hosts and isinstance(result, Done):
            return Again(SLOWLY, "hosts are counted again now and then")
        return result

    def _rest(self, key: Key) -> float:
        time = asyncio.get_running_loop().time()
        if (rest := self._began.get(key, time - PAUSE) + PAUSE - time) <= 0:
            self._began[key] = time
        return rest

    async def _scale_to_hosts(self, machine_set: MachineSet) -> MachineSet:
        """The set with as many replicas as there are hosts for it; where that cannot be told, as it was."""
        spec, namespace = machine_set.spec, machine_set.metadata.namespace
        try:
            count = hosts_for(
                (host for host in self._known.hosts.items() if host.metadata.namespace == namespace),
                will_do=hosts_wanted(read_provider_spec(spec.template.spec.provider_spec.value)),
                fits=selection(spec.selector, path="spec.selector"),
                machine_of=self._known.machines.get,
            )
        except (Unclear, Malformed, UnusableSelector) as why:
            self._recorder.record(
                machine_set,
                type="Warning",
                reason="NotScaledToHosts",
                message=f"The number of replicas stays {spec.replicas}: {why}",
                controller=VOICE,
            )
            return machine_set
        if count == spec.replicas:
            return machine_set
        scaled = await self._patch(machine_set, {"spec": {"replicas": count}})
        self._recorder.record(
            scaled,
            type="Normal",
            reason="ScaledToHosts",
            message=f"Hosts for this set: {count}. Replicas were {spec.replicas}",
            controller=VOICE,
        )
        return scaled

    async def _keep(self, machine_set: MachineSet) -> Done | Again:
        trouble = ""
        try:
            fits = members_of(machine_set)
            members = sorted_out(self._known.machines.items(), machine_set, fits)
            if not (members.is_settled(machine_set.spec.replicas) and numbers_of(machine_set).are_settled):
                machine_set, trouble = await self._settler.settle(machine_set)
                fits = members_of(machine_set)
        except UnusableSelector as error:
            # Which are meant cannot be told; those that have the set's name on them are there all the same.
            members = sorted_out(self._known.machines.items(), machine_set, lambda _: True)
            return await self._say(machine_set, members.ours, trouble=str(error))
        members = sorted_out(self._known.machines.items(), machine_set, fits)
        return await self._say(machine_set, members.ours, trouble=trouble)

    async def _say(
        self, machine_set: MachineSet, machines: Collection[Machine], *, trouble: str
    ) -> Done | Again:
        status, next_look = counted(
            machine_set, machines, self._known.node_of, at=self._clock(), trouble=trouble
        )
        if change := status_patch(machine_set.status, status):
            await self._patch(machine_set, change, subresource="status")
        if trouble:
            return Again(SLOWLY, trouble)
        return (
            Done()
            if next_look is None
            else Again(next_look, "a machine will have been ready for long enough")
        )

    async def _patch(
        self, machine_set: MachineSet, change: dict[str, Any], *, subresource: str = ""
    ) -> MachineSet:
        written = await self._client.patch(
            MACHINE_SETS,
            machine_set.key,
            change,
            subresource=subresource,
            resource_version=machine_set.metadata.resource_version,
        )
        self._known.sets.observe(written)
        return written
