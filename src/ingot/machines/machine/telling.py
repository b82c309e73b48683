"""What a Machine says of its host: addresses, the state of the host, and where the Machine is on its way. Pure."""

from __future__ import annotations

import enum
from typing import Final

from ingot.api.baremetalhost import BareMetalHost, HardwareDetails, State
from ingot.api.machine import ErrorReason, Machine, NodeAddress


class Phase(enum.StrEnum):
    """Where a Machine is; clients compare these words."""

    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    DELETING = "Deleting"
    FAILED = "Failed"


_RUNS: Final = frozenset({State.PROVISIONED, State.EXTERNALLY_PROVISIONED})


def phase_of(machine: Machine, host: BareMetalHost | None) -> Phase:
    """A Machine that cannot be made as it is written has failed; one that waits for a host has not."""
    if machine.metadata.deletion_timestamp is not None:
        return Phase.DELETING
    if machine.status.error_reason == ErrorReason.INVALID_CONFIGURATION:
        return Phase.FAILED
    if machine.status.node_ref is not None:
        return Phase.RUNNING
    return Phase.PROVISIONED if host is not None and host.state in _RUNS else Phase.PROVISIONING


def addresses_of(details: HardwareDetails | None) -> list[NodeAddress]:
    """How the host was reached when it was inspected. An interface without an address says nothing."""
    if details is None:
        return []
    found = [NodeAddress(type="InternalIP", address=nic.ip) for nic in details.nics if nic.ip]
    if details.hostname:
        found += [NodeAddress(type=kind, address=details.hostname) for kind in ("Hostname", "InternalDNS")]
    return list(dict.fromkeys(found))
