"""What the status of a MachineSet says: how many machines there are, and how many of them are of use. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from ingot.api.core import Node
from ingot.api.machine import ErrorReason, Machine, MachineSet, MachineSetStatus
from ingot.machines.machineset.selecting import text_of

NodeOf = Callable[[Machine], Node | None]

_TOLD: Final = {
    "replicas": "replicas",
    "fully_labeled_replicas": "fullyLabeledReplicas",
    "ready_replicas": "readyReplicas",
    "available_replicas": "availableReplicas",
    "observed_generation": "observedGeneration",
    "label_selector": "labelSelector",
    "error_reason": "errorReason",
    "error_message": "errorMessage",
}
_MOST_OF_A_SELECTOR: Final = 4096


def counted(
    machine_set: MachineSet,
    machines: Collection[Machine],
    node_of: NodeOf,
    *,
    at: datetime,
    trouble: str = "",
) -> tuple[MachineSetStatus, float | None]:
    """The status, and in how many seconds it will be another one with nothing happening; None for never.

    `trouble`: why the set cannot be kept as it is written.
    """
    wanted = machine_set.spec.template.metadata.labels
    labelled = sum(wanted.items() <= machine.metadata.labels.items() for machine in machines)
    ready = [node for machine in machines if (node := node_of(machine)) is not None and is_ready(node)]
    waits = [_until_available(node, machine_set.spec.min_ready_seconds, at) for node in ready]
    text = text_of(machine_set.spec.selector)
    status = replace(
        machine_set.status,
        replicas=len(machines),
        fully_labeled_replicas=labelled,
        ready_replicas=len(ready),
        available_replicas=sum(wait <= 0 for wait in waits),
        observed_generation=machine_set.metadata.generation,
        label_selector=text if len(text) <= _MOST_OF_A_SELECTOR else "",
        error_reason=ErrorReason.INVALID_CONFIGURATION.value if trouble else "",
        error_message=trouble,
    )
    return status, min((wait for wait in waits if wait > 0), default=None)


def status_patch(before: MachineSetStatus, after: MachineSetStatus) -> dict[str, Any]:
    """The merge patch from one to the other; empty where they are the same.

    The first one says all counts, also those that are nought: who reads them should not have to know what their absence means.
    """
    is_first = not before.observed_generation
    change = {
        name: getattr(after, field) if getattr(after, field) != "" else None
        for field, name in _TOLD.items()
        if getattr(before, field) != getattr(after, field)
        or (is_first and isinstance(getattr(after, field), int))
    }
    return {"status": change} if change else {}


def is_ready(node: Node) -> bool:
    return node.ready is not None and node.ready.status == "True"


def is_well(machine: Machine, node: Node | None) -> bool:
    """Whether a machine does what it is there for: its node is ready, and nothing is wrong with it."""
    status = machine.status
    return not status.error_reason and not status.error_message and node is not None and is_ready(node)


def _until_available(node: Node, least: int, at: datetime) -> float:
    """Seconds until the node has been ready for so long; nought or less if it has been."""
    if not least:
        return 0.0
    since = node.ready.last_transition_time if node.ready is not None else None
    return ((since or at) + timedelta(seconds=least) - at).total_seconds()
