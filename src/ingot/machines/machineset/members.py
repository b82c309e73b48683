"""Who belongs to a MachineSet, who is to join it and who to leave, who goes first, and what new ones look like. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from ingot.api.machine import MACHINE_SETS, Machine, MachineSet
from ingot.api.meta import OwnerReference
from ingot.api.wire import wire
from ingot.machines.demands import Demands

DELETE_FIRST: Final = ("machine.openshift.io/delete-machine", "cluster.x-k8s.io/delete-machine")
"""Annotations on a Machine that is to go when the set gets smaller; any value."""
_LONG_AGO: Final = datetime.fromtimestamp(0, UTC)

IsWell = Callable[[Machine], bool]


@dataclass(slots=True)
class Members:
    """The machines that concern a set. Those that are being deleted are not: they are as good as gone."""

    ours: list[Machine] = field(default_factory=list)
    orphans: list[Machine] = field(default_factory=list)
    """Machines that fit and nobody looks after: they join."""
    strays: list[Machine] = field(default_factory=list)
    """Machines that are ours and do not fit any more: they leave, and stay as they are."""

    def missing(self, replicas: int) -> int:
        """How many are to be made; below nought, how many are too many. Orphans join first."""
        return replicas - len(self.ours) - len(self.orphans)

    def is_settled(self, replicas: int) -> bool:
        return not self.orphans and not self.strays and self.missing(replicas) == 0


def sorted_out(machines: Iterable[Machine], machine_set: MachineSet, fits: Demands) -> Members:
    found = Members()
    for machine in machines:
        metadata = machine.metadata
        if metadata.namespace != machine_set.metadata.namespace or metadata.deletion_timestamp is not None:
            continue
        owner = controller_of(machine)
        if owner is None:
            if fits(metadata.labels):
                found.orphans.append(machine)
        elif owner.uid == machine_set.metadata.uid:
            (found.ours if fits(metadata.labels) else found.strays).append(machine)
    return found


def controller_of(machine: Machine) -> OwnerReference | None:
    """Who looks after the machine; at most one does."""
    return next((owner for owner in machine.metadata.owner_references if owner.controller), None)


# Joining and leaving: the list of owners is replaced as a whole, so these patches carry the version that they were made for.


def joining(machine: Machine, machine_set: MachineSet) -> dict[str, Any]:
    others = [owner for owner in machine.metadata.owner_references if owner.uid != machine_set.metadata.uid]
    return {"metadata": {"ownerReferences": wire([*others, ownership(machine_set)])}}


def leaving(machine: Machine, machine_set: MachineSet) -> dict[str, Any]:
    others = [owner for owner in machine.metadata.owner_references if owner.uid != machine_set.metadata.uid]
    return {"metadata": {"ownerReferences": wire(others)}}


def ownership(machine_set: MachineSet) -> OwnerReference:
    return OwnerReference(
        api_version=MACHINE_SETS.api_version,
        kind=MACHINE_SETS.kind,
        name=machine_set.metadata.name,
        uid=machine_set.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


# Who goes first


def too_many(
    machines: Collection[Machine], count: int, *, policy: str | None, is_well: IsWell
) -> list[Machine]:
    """Those that go when there are so many too many: who is marked first, then who is not well, then as the policy says.

    The order depends on nothing but the machines, also for Random: whoever decides a second time decides the same.
    """

    def order(machine: Machine) -> tuple[bool, bool, float, bytes, str]:
        metadata = machine.metadata
        is_marked = any(name in metadata.annotations for name in DELETE_FIRST)
        age = (metadata.creation_timestamp or _LONG_AGO).timestamp()
        turn = {"Random": 0.0, "Oldest": age}.get(policy or "", -age)
        lot = hashlib.blake2b(metadata.uid.encode(), digest_size=8).digest()
        return not is_marked, is_well(machine), turn, lot, metadata.name

    return sorted(machines, key=order)[:count]


def new_machine(machine_set: MachineSet, name: str) -> dict[str, Any]:
    """The machine of that name, as the template has it."""
    template = machine_set.spec.template
    return {
        "metadata": {
            "name": name,
            "namespace": machine_set.metadata.namespace,
            "labels": dict(template.metadata.labels),
            "annotations": dict(template.metadata.annotations),
            "ownerReferences": [wire(ownership(machine_set))],
        },
        "spec": wire(template.spec),
    }
