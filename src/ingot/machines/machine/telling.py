"""What a Machine says of itself in its status: where it is on its way, how it is reached, what is wrong. Pure.

Phases, reasons and the beginnings of the messages are those that clients of the Machine API know. What others write there
(conditions, errors of other kinds) stays as it is.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from ingot.api.baremetalhost import BareMetalHost, HardwareDetails, State
from ingot.api.core import NODES, Node
from ingot.api.machine import ErrorReason, Machine, MachineStatus, NodeAddress
from ingot.api.meta import ObjectReference
from ingot.api.wire import changed_fields


class Phase(enum.StrEnum):
    """Where a Machine is; clients compare these words."""

    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    DELETING = "Deleting"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Found:
    """It has a host, and maybe a node."""

    host: BareMetalHost
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """There is no host for it."""

    why: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """It cannot be made as it is written."""

    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """It had a host, and that is not its host any more."""

    why: str


@dataclass(frozen=True, slots=True)
class Leaving:
    """It is being deleted."""


Outcome = Found | Waiting | Unusable | Lost | Leaving

NO_HOST: Final = "No available BareMetalHost found"
CANNOT_FIND: Final = "Can't find created instance"
_RUNS: Final = frozenset({State.PROVISIONED, State.EXTERNALLY_PROVISIONED})


def status_of(before: MachineStatus, outcome: Outcome) -> MachineStatus:
    """The status that tells the outcome, in place of the one before; when it was written is left to `status_patch`."""
    match outcome:
        case Found(host, node):
            known = _without_our_errors(before)
            return replace(
                known,
                addresses=addresses_of(host.hardware()) or before.addresses,
                node_ref=reference_to_node(node) if node is not None else None,
                phase=_phase(host, node),
            )
        case Waiting(why):
            return _wrong(before, Phase.PROVISIONING, ErrorReason.INSUFFICIENT_RESOURCES, f"{NO_HOST}: {why}")
        case Unusable(why):
            return _wrong(before, Phase.FAILED, ErrorReason.INVALID_CONFIGURATION, why)
        case Lost(why):
            return _wrong(replace(before, addresses=[]), Phase.FAILED, "", f"{CANNOT_FIND}: {why}")
        case Leaving():
            return replace(before, phase=str(Phase.DELETING))


def status_patch(before: MachineStatus, after: MachineStatus, *, at: datetime) -> dict[str, Any] | None:
    """The merge patch from one to the other; None where they are the same. What is empty now is taken out."""
    change = changed_fields(before, after)
    return {"status": {**change, "lastUpdated": at}} if change else None


def addresses_of(details: HardwareDetails | None) -> list[NodeAddress]:
    """How the host was reached when it was inspected. An interface without an address says nothing."""
    if details is None:
        return []
    found = [NodeAddress(type="InternalIP", address=nic.ip) for nic in details.nics if nic.ip]
    if details.hostname:
        found += [NodeAddress(type=kind, address=details.hostname) for kind in ("Hostname", "InternalDNS")]
    return list(dict.fromkeys(found))


def reference_to_node(node: Node) -> ObjectReference:
    return ObjectReference(
        api_version=NODES.api_version, kind=NODES.kind, name=node.metadata.name, uid=node.metadata.uid
    )


def runs_something(host: BareMetalHost) -> bool:
    """Whether what was installed can be expected to run. In a state that nobody knows, nothing can."""
    return host.status.provisioning.state in _RUNS


def is_waiting(machine: Machine) -> bool:
    """Whether it says that there is no host for it."""
    return machine.status.error_reason == ErrorReason.INSUFFICIENT_RESOURCES


def _phase(host: BareMetalHost, node: Node | None) -> str:
    if node is not None:
        return str(Phase.RUNNING)
    return str(Phase.PROVISIONED if runs_something(host) else Phase.PROVISIONING)


def _wrong(before: MachineStatus, phase: Phase, reason: str, message: str) -> MachineStatus:
    return replace(before, phase=str(phase), error_reason=str(reason), error_message=message)


def _without_our_errors(status: MachineStatus) -> MachineStatus:
    ours = {str(reason) for reason in ErrorReason}
    if status.error_reason in ours or status.error_message.startswith(CANNOT_FIND):
        return replace(status, error_reason="", error_message="")
    return status
