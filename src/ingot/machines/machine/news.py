"""What happened to a Machine that is worth an Event, in plain words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ingot.api.machine import ErrorReason, MachineStatus
from ingot.machines.machine.telling import Found, Leaving, Lost, Outcome, Unusable, Waiting


@dataclass(frozen=True, slots=True)
class News:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def news_of(before: MachineStatus, outcome: Outcome, *, hooks: Sequence[str]) -> Iterator[News]:
    """What is new in an outcome after such a status; each is said once."""
    match outcome:
        case Found(host, node):
            if not before.phase or before.error_reason == ErrorReason.INSUFFICIENT_RESOURCES:
                yield News("Normal", "HostClaimed", f"BareMetalHost {host.key} is this Machine's now.")
            if node is not None and (before.node_ref is None or before.node_ref.name != node.metadata.name):
                yield News("Normal", "NodeLinked", f"The Machine is Node {node.metadata.name}.")
        case Waiting(why) if before.error_reason != ErrorReason.INSUFFICIENT_RESOURCES:
            yield News(
                "Warning",
                ErrorReason.INSUFFICIENT_RESOURCES,
                f"No BareMetalHost can be had: {why}. The Machine takes the next one that fits.",
            )
        case Unusable(why) if before.error_message != why:
            yield News("Warning", ErrorReason.INVALID_CONFIGURATION, why)
        case Lost(why) if why not in before.error_message:
            yield News("Warning", "HostLost", why)
        case Leaving() if hooks:
            yield News("Normal", "DeletionWaits", f"The host is kept until these agree: {', '.join(hooks)}.")
