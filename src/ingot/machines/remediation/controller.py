"""The controllers of remediation, ready to be run: one looks at Machines, one at hosts that are kept off for nobody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.machine import Annotation, Machine
from ingot.api.meta import Key, now
from ingot.kube import Change, Client, Controller, EventRecorder, Informer, follow
from ingot.machines.machine.linking import consumer_of
from ingot.machines.pool import Pool
from ingot.machines.remediation.reconciling import Remediator
from ingot.machines.remediation.steps import KEPT_OFF, is_concerned, is_machine


def controllers(
    client: Client,
    recorder: EventRecorder,
    pool: Pool,
    *,
    machines: Informer[Machine],
    nodes: Informer[Node],
    hosts: Informer[BareMetalHost],
    workers: int = 4,
    clock: Callable[[], datetime] = now,
) -> list[Controller]:
    work = Remediator(client, recorder, pool, machines=machines, nodes=nodes, clock=clock)
    mending = Controller("remediation", work.mend, workers=workers)
    letting_go = Controller("remediation-hosts", work.let_go, workers=workers)
    follow(mending, machines, _itself_if_concerned)
    follow(mending, hosts, lambda host: _patient_of(host, machines))
    follow(letting_go, hosts, lambda host: [host.key] if KEPT_OFF in host.metadata.annotations else [])
    machines.subscribe(lambda change: _wake_hosts(letting_go, pool, change))
    nodes.subscribe(lambda change: _wake_for_node(mending, machines, change))
    return [mending, letting_go]


def _itself_if_concerned(machine: Machine) -> list[Key]:
    return [machine.key] if is_concerned(machine) else []


def _patient_of(host: BareMetalHost, machines: Informer[Machine]) -> list[Key]:
    """The Machine that has the host, if it is to be mended."""
    consumer = host.spec.consumer_ref
    if consumer is None or not is_machine(consumer):
        return []
    machine = machines.get(Key(consumer.namespace, consumer.name))
    return _itself_if_concerned(machine) if machine is not None else []


def _wake_hosts(letting_go: Controller, pool: Pool, change: Change[Machine]) -> None:
    """A Machine that was to be mended is gone, going, or not to be mended any more."""
    if change.old is None or not is_concerned(change.old):
        return
    for host in pool.of(consumer_of(change.old)):
        letting_go.wake(host.key)


def _wake_for_node(mending: Controller, machines: Informer[Machine], change: Change[Node]) -> None:
    """A Node came or went. What was there at the start is looked at with its Machine."""
    if change.initial or (change.old is not None and change.new is not None):
        return
    for machine in machines.items():
        if is_concerned(machine) and _may_be_of(machine, change):
            mending.wake(machine.key)


def _may_be_of(machine: Machine, change: Change[Node]) -> bool:
    reference, node = machine.status.node_ref, change.new or change.old
    if node is None:
        return False
    if reference is not None and reference.name == change.key.name:
        return True
    names_host = bool(node.spec.provider_id) and node.spec.provider_id == machine.spec.provider_id
    return names_host or node.metadata.annotations.get(Annotation.MACHINE) == str(machine.key)
