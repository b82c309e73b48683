"""The MachineSet controller, ready to be run, and what wakes a set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.machine import MACHINE_SETS, Annotation, Machine, MachineSet
from ingot.api.meta import Key, now
from ingot.kube import Change, Client, Controller, EventRecorder, Informer, follow, owned_by
from ingot.machines.machineset.known import Known
from ingot.machines.machineset.members import DELETE_FIRST, controller_of
from ingot.machines.machineset.naming import NUMBERS
from ingot.machines.machineset.reconciling import MachineSetReconciler
from ingot.machines.machineset.whose import Whose, WhoseSets


def controller(
    client: Client,
    recorder: EventRecorder,
    *,
    sets: Informer[MachineSet],
    machines: Informer[Machine],
    nodes: Informer[Node],
    hosts: Informer[BareMetalHost],
    whose: WhoseSets = "auto",
    workers: int = 4,
    clock: Callable[[], datetime] = now,
) -> Controller:
    """`whose`: whether MachineSets are ours to keep; in any case they follow the number of hosts where that is asked for."""
    known = Known(sets=sets, machines=machines, nodes=nodes, hosts=hosts)
    reconcile = MachineSetReconciler(client, recorder, known, Whose(client, whose), clock=clock)
    made = Controller("machinesets", reconcile, workers=workers)
    follow(made, sets, when=_wants_other)
    follow(made, machines, lambda machine: _concerned(machine, sets), when=_counts_otherwise)
    follow(made, hosts, lambda host: _following(host, sets), when=_is_other_host)
    nodes.subscribe(lambda change: _wake_for_node(made, machines, change))
    return made


_owner = owned_by(MACHINE_SETS)


def _concerned(machine: Machine, sets: Informer[MachineSet]) -> Iterable[Key]:
    """The set that has it; if nobody has, any set of its namespace might want it."""
    if controller_of(machine) is not None:
        return _owner(machine)
    namespace = machine.metadata.namespace
    return [found.key for found in sets.items() if found.metadata.namespace == namespace]


def _following(host: BareMetalHost, sets: Informer[MachineSet]) -> Iterable[Key]:
    namespace = host.metadata.namespace
    return [
        found.key
        for found in sets.items()
        if found.metadata.namespace == namespace and Annotation.AUTOSCALE in found.metadata.annotations
    ]


def _wake_for_node(controller: Controller, machines: Informer[Machine], change: Change[Node]) -> None:
    """A node was lost, found, or is ready by now or not any more. What is there at the start is counted with its set."""
    old, new = change.old, change.new
    if change.initial or (old is not None and new is not None and old.ready == new.ready):
        return
    for machine in machines.items():
        if (reference := machine.status.node_ref) is not None and reference.name == change.key.name:
            for key in _owner(machine):
                controller.wake(key)


def _wants_other(old: MachineSet, new: MachineSet) -> bool:
    """Whether a change is more than what we count ourselves."""
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.generation != after.generation
        or _given(before.annotations) != _given(after.annotations)
        or before.deletion_timestamp != after.deletion_timestamp
    )


def _given(annotations: Mapping[str, str]) -> dict[str, str]:
    """Without what we write ourselves."""
    return {name: value for name, value in annotations.items() if name != NUMBERS}


def _counts_otherwise(old: Machine, new: Machine) -> bool:
    """Whether a change of a machine matters to its set; where its host is on its way does not."""
    return _what_counts(old) != _what_counts(new)


def _what_counts(machine: Machine) -> tuple[object, ...]:
    metadata, status = machine.metadata, machine.status
    return (
        metadata.uid,
        metadata.labels,
        metadata.owner_references,
        metadata.deletion_timestamp,
        [name in metadata.annotations for name in DELETE_FIRST],
        status.node_ref.name if status.node_ref is not None else None,
    )


def _is_other_host(old: BareMetalHost, new: BareMetalHost) -> bool:
    return (old.metadata.labels, old.spec.consumer_ref) != (new.metadata.labels, new.spec.consumer_ref)
