"""As many machines as there are hosts: what `metal3.io/autoscale-to-hosts` on a MachineSet asks for. Pure.

A host counts that is free and will do, whatever state it is in, and one that a machine of this set has. What the set's machines
are is told by their labels alone, so that the count is the same where somebody else keeps the set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.machine import MACHINES, BareMetalMachineProviderSpec, Machine
from ingot.api.meta import Key
from ingot.machines.demands import Demands, demands_of


class Unclear(Exception):
    """How many hosts there are for the set cannot be told now; the sentence says why."""


def hosts_wanted(spec: BareMetalMachineProviderSpec) -> Demands:
    """What the template asks of hosts; raises `UnusableSelector`."""
    return demands_of(spec.host_selector, path="spec.template.spec.providerSpec.value.hostSelector")


def hosts_for(
    hosts: Iterable[BareMetalHost],
    *,
    will_do: Demands,
    fits: Demands,
    machine_of: Callable[[Key], Machine | None],
) -> int:
    """How many machines the hosts of a namespace are enough for; raises `Unclear` if a host belongs to a machine nobody knows."""
    return sum(_counts(host, will_do, fits, machine_of) for host in hosts)


def _counts(
    host: BareMetalHost, will_do: Demands, fits: Demands, machine_of: Callable[[Key], Machine | None]
) -> bool:
    consumer = host.spec.consumer_ref
    if consumer is None:
        return will_do(host.metadata.labels)
    if (consumer.kind, consumer.api_version) != (MACHINES.kind, MACHINES.api_version):
        return False
    key = Key(consumer.namespace, consumer.name)
    machine = machine_of(key)
    if machine is None:
        raise Unclear(
            f"host {host.key} belongs to Machine {key}, which does not exist. Clear spec.consumerRef of the host if nobody "
            "uses it."
        )
    return fits(machine.metadata.labels)
