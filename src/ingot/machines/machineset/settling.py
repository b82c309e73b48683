"""Bringing the machines of a set to what is wanted: joining, leaving, making, deleting.

Before any of it the set and its machines are read from the API: a cache that lags behind would make machines that are there
already, or delete those of a set that has just been made larger. That is one get and one list for each time that something is
to be done. What two processes do at the same time, or one after the other's death, is settled by the names of machines
(`naming`), by UIDs, and by the versions that patches carry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, Literal, TypeVar

from ingot.api.machine import MACHINE_SETS, MACHINES, Machine, MachineSet
from ingot.kube import REFUSALS, AlreadyExists, Client, Conflict, EventRecorder, NotFound
from ingot.machines.machineset.known import VOICE, Known
from ingot.machines.machineset.members import (
    Members,
    joining,
    leaving,
    new_machine,
    sorted_out,
    too_many,
)
from ingot.machines.machineset.naming import Numbers, noted, numbers_of, plan
from ingot.machines.machineset.selecting import members_of

TOGETHER: Final = 16
"""Machines that are made or deleted at the same time."""

T = TypeVar("T")


class Changed(Exception):
    """The set or its machines are not what they were when this was decided: look again, soon."""


class Settler:
    def __init__(self, client: Client, recorder: EventRecorder, known: Known) -> None:
        self._client = client
        self._recorder = recorder
        self._known = known

    async def settle(self, seen: MachineSet) -> tuple[MachineSet, str]:
        """Have as many machines as are wanted. The set as it is by now; and why there are none to be had as it is written."""
        machine_set, machines = await self._look_again(seen)
        members = sorted_out(machines, machine_set, members_of(machine_set))
        await self._have_join_and_leave(machine_set, members)
        missing = members.missing(machine_set.spec.replicas)
        if missing > 0:
            return await self._make(machine_set, {machine.metadata.name for machine in machines}, missing)
        if missing < 0:
            leaving_first = too_many(
                [*members.ours, *members.orphans],
                -missing,
                policy=machine_set.spec.delete_policy,
                is_well=self._known.is_well,
            )
            await self._in_batches(machine_set, leaving_first, self._delete)
        return await self._note(machine_set, numbers_of(machine_set).settled), ""

    async def _look_again(self, seen: MachineSet) -> tuple[MachineSet, Sequence[Machine]]:
        """The set and all machines of its namespace, as the API has them now."""
        try:
            machine_set = await self._client.get(MACHINE_SETS, seen.key)
        except NotFound:
            raise Changed("the set is gone") from None
        self._known.sets.observe(machine_set)
        if not _is_still(seen, machine_set):
            raise Changed("the set has been replaced, or is being deleted")
        machines = (await self._client.list(MACHINES, namespace=machine_set.metadata.namespace)).items
        for machine in machines:
            self._known.machines.observe(machine)
        return machine_set, machines

    async def _have_join_and_leave(self, machine_set: MachineSet, members: Members) -> None:
        """One patch each, of the version that was read: whoever else wants the machine wins, or waits."""
        for machine in members.orphans:
            await self._patch(machine, joining(machine, machine_set))
            self._tell(machine_set, "Adopted", f"Took in Machine {machine.metadata.name}")
        for machine in members.strays:
            await self._patch(machine, leaving(machine, machine_set))
            why = "its labels do not fit the selector any more"
            self._tell(machine_set, "Released", f"Let Machine {machine.metadata.name} go: {why}")

    async def _patch(self, machine: Machine, change: dict[str, Any]) -> None:
        try:
            written = await self._client.patch(
                MACHINES, machine.key, change, resource_version=machine.metadata.resource_version
            )
        except NotFound:
            raise Changed(f"Machine {machine.metadata.name} is gone") from None
        self._known.machines.observe(written)

    async def _make(
        self, machine_set: MachineSet, taken: Collection[str], count: int
    ) -> tuple[MachineSet, str]:
        """The set as it is afterwards, and why the API takes no such machine."""
        numbers, names = plan(machine_set, taken, count)
        machine_set = await self._note(machine_set, numbers)
        try:
            await self._in_batches(machine_set, names, self._create)
        except REFUSALS as error:
            self._tell(
                machine_set, "FailedCreate", f"No machine can be made: {error.message}", type="Warning"
            )
            return (
                machine_set,
                f"The API takes no Machine that is made from spec.template: {error.message}",
            )
        return await self._note(machine_set, numbers.settled), ""

    async def _note(self, machine_set: MachineSet, numbers: Numbers) -> MachineSet:
        if numbers == numbers_of(machine_set):
            return machine_set
        written = await self._client.patch(
            MACHINE_SETS,
            machine_set.key,
            noted(numbers),
            resource_version=machine_set.metadata.resource_version,
        )
        self._known.sets.observe(written)
        return written

    async def _create(self, machine_set: MachineSet, name: str) -> None:
        try:
            made = await self._client.create(MACHINES, new_machine(machine_set, name))
        except AlreadyExists:
            raise Changed(f"Machine {name} has been made already") from None
        self._known.machines.observe(made)
        self._tell(machine_set, "SuccessfulCreate", f"Made Machine {name}")

    async def _delete(self, machine_set: MachineSet, machine: Machine) -> None:
        try:
            await self._client.delete(MACHINES, machine.key, uid=machine.metadata.uid)
        except (NotFound, Conflict):
            return
        self._tell(machine_set, "SuccessfulDelete", f"Deleted Machine {machine.metadata.name}")

    async def _in_batches(
        self,
        machine_set: MachineSet,
        items: Sequence[T],
        act: Callable[[MachineSet, T], Awaitable[None]],
    ) -> None:
        """A few at a time, and only while the set is what was decided on. What fails does not cut off what is under way."""
        for start in range(0, len(items), TOGETHER):
            now = self._known.sets.get(machine_set.key)
            if now is None or not _is_still(machine_set, now, generation=True):
                raise Changed("the set has changed meanwhile")
            some = items[start : start + TOGETHER]
            results = await asyncio.gather(*(act(machine_set, item) for item in some), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result

    def _tell(
        self,
        machine_set: MachineSet,
        reason: str,
        message: str,
        *,
        type: Literal["Normal", "Warning"] = "Normal",
    ) -> None:
        self._recorder.record(machine_set, type=type, reason=reason, message=message, controller=VOICE)


def _is_still(before: MachineSet, after: MachineSet, *, generation: bool = False) -> bool:
    """Whether it is the same set and stays; with `generation`, whether it also wants the same."""
    one, other = before.metadata, after.metadata
    return (
        one.uid == other.uid
        and other.deletion_timestamp is None
        and not (generation and one.generation != other.generation)
    )
