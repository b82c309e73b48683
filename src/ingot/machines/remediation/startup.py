"""How long a Node may take until it is back: what the MachineHealthCheck of its Machine says, else twenty minutes.

MachineHealthChecks are somebody else's; where the cluster has none, or we may not see them, there is nothing to ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import msgspec

from ingot.api.machine import LabelSelector, Machine
from ingot.api.meta import Model, Object, Resource
from ingot.kube import Client, Forbidden, NotFound
from ingot.machines.demands import UnusableSelector
from ingot.machines.machineset.selecting import is_empty, selection

TWENTY_MINUTES: Final = timedelta(minutes=20)
_UNITS: Final = {
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
    "µs": timedelta(microseconds=1),
    "ns": timedelta(microseconds=0.001),
}
_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s|us|µs|ns)")


class MachineHealthCheckSpec(Model):
    selector: LabelSelector = msgspec.field(default_factory=LabelSelector)
    node_startup_timeout: str = ""


class MachineHealthCheck(Object):
    """Decides which machines need remediation; of interest here is only how long it would wait for a node."""

    spec: MachineHealthCheckSpec = msgspec.field(default_factory=MachineHealthCheckSpec)


MACHINE_HEALTH_CHECKS: Final = Resource(
    group="machine.openshift.io",
    version="v1beta1",
    kind="MachineHealthCheck",
    plural="machinehealthchecks",
    type=MachineHealthCheck,
)


async def time_to_start(client: Client, machine: Machine) -> timedelta:
    try:
        checks = await client.list(MACHINE_HEALTH_CHECKS, namespace=machine.metadata.namespace)
    except (NotFound, Forbidden):
        return TWENTY_MINUTES
    return time_by(checks.items, machine)


def time_by(checks: Iterable[MachineHealthCheck], machine: Machine) -> timedelta:
    """What the first of them, by name, that means this machine says."""
    for check in sorted(checks, key=lambda check: check.metadata.name):
        if _means(check.spec.selector, machine):
            return duration(check.spec.node_startup_timeout) or TWENTY_MINUTES
    return TWENTY_MINUTES


def duration(text: str) -> timedelta | None:
    """A duration as Go writes it, `1h30m`; None for none at all, for nought, and for what is no duration."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum((_UNITS[unit] * float(number) for number, unit in parts), timedelta()) or None


def _means(selector: LabelSelector, machine: Machine) -> bool:
    if is_empty(selector):
        return True
    try:
        return selection(selector, path="spec.selector")(machine.metadata.labels)
    except UnusableSelector:
        return False
