"""The controller of Machines: what wakes a Machine, and the pass that it gets.

A Machine is looked at when it changes, when its host does, when a Node comes that may be its own, when the default of what is
installed changes and it has no host yet, and when a host becomes vacant and it is next in the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.machine import MACHINES, Machine
from ingot.api.meta import Key, now
from ingot.api.wire import differing_fields
from ingot.kube import Change, Client, Controller, EventRecorder, Informer, follow
from ingot.machines.defaults import TargetDefaults
from ingot.machines.machine.actuator import Actuator
from ingot.machines.machine.lull import QUIET
from ingot.machines.machine.nodes import machines_of
from ingot.machines.machine.wanting import is_another_target
from ingot.machines.pool import Pool
from ingot.machines.waiting import WaitingList

WORKERS: Final = 32


def controller(
    client: Client,
    recorder: EventRecorder,
    pool: Pool,
    *,
    machines: Informer[Machine],
    hosts: Informer[BareMetalHost],
    nodes: Informer[Node],
    defaults: TargetDefaults,
    waiting: WaitingList,
    workers: int = WORKERS,
    clock: Callable[[], datetime] = now,
    quiet: float = QUIET,
) -> Controller:
    """`machines` and `nodes` with the indexes of `machine_informer` and `node_informer`, `hosts` with those of the pool.

    `quiet`: seconds without a claim after which a Machine tells how its host is getting on.
    """
    actuator = Actuator(
        client,
        recorder,
        pool,
        machines=machines,
        nodes=nodes,
        defaults=defaults,
        waiting=waiting,
        wake=lambda key: made.wake(key),
        clock=clock,
        quiet=quiet,
    )
    made = Controller("machines", actuator, workers=workers)

    def host_changed(change: Change[BareMetalHost]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and not _matters(old, new):
            return
        for key in dict.fromkeys(key for host in (old, new) if host is not None for key in _machine_of(host)):
            # After those who have no host yet.
            made.wake(key, low=True)

    def spec_changed(change: Change[Machine]) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and new.spec.provider_id and is_another_target(old, new):
            actuator.retargeted.add(change.key)

    def defaults_changed() -> None:
        for machine in machines.items():
            if not machine.spec.provider_id:
                made.wake(machine.key, low=True)

    follow(made, machines, when=lambda old, new: not actuator.records.is_ours(new))
    follow(made, nodes, lambda node: machines_of(node, machines), when=_is_another)
    hosts.subscribe(host_changed)
    machines.subscribe(spec_changed)
    defaults.when_changed(defaults_changed)
    return made


def _machine_of(host: BareMetalHost) -> Iterable[Key]:
    consumer = host.spec.consumer_ref
    if consumer is None or consumer.kind != MACHINES.kind:
        return []
    group = consumer.api_version.partition("/")[0]
    return [Key(consumer.namespace, consumer.name)] if group == MACHINES.group else []


def _matters(old: BareMetalHost, new: BareMetalHost) -> bool:
    """Whether a change of a host is one to its Machine."""
    return (
        old.spec != new.spec
        or old.status.provisioning.state != new.status.provisioning.state
        or old.status.powered_on != new.status.powered_on
        or old.metadata.uid != new.metadata.uid
        or "hardware" in differing_fields(old.status, new.status)
    )


def _is_another(old: Node, new: Node) -> bool:
    """Whether more than the signs of life of a Node changed."""
    before, after = old.metadata, new.metadata
    return (
        old.spec != new.spec
        or old.status.addresses != new.status.addresses
        or before.annotations != after.annotations
        or before.labels != after.labels
        or before.finalizers != after.finalizers
        or before.deletion_timestamp != after.deletion_timestamp
        or before.uid != after.uid
    )
