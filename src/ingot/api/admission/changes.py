"""Rules for what may be changed, and when."""

from __future__ import annotations

from collections.abc import Iterator

from ingot.api.admission.errors import FieldError, forbidden
from ingot.api.baremetalhost import BareMetalHost, OperationalStatus, State


def bmc_address(new: BareMetalHost, old: BareMetalHost) -> Iterator[FieldError]:
    """Another address is another machine, unless nothing is known of the first one yet or it was let go."""
    before, after = old.spec.bmc.address, new.spec.bmc.address
    if not before or before == after:
        return
    for host in (new, old):
        if host.status.operational_status == OperationalStatus.DETACHED:
            return
        if host.status.provisioning.state == State.REGISTERING:
            return
    yield forbidden(
        "spec.bmc.address",
        after,
        f"the address is {before!r} and can be changed only while the host is registering or detached. "
        "Detach the host first (annotation baremetalhost.metal3.io/detached).",
    )


def boot_mac(new: BareMetalHost, old: BareMetalHost) -> Iterator[FieldError]:
    before, after = old.spec.boot_mac_address, new.spec.boot_mac_address
    if before and before.lower() != after.lower():
        yield forbidden(
            "spec.bootMACAddress",
            after,
            f"the MAC address is {before} and cannot be changed once it is set. Delete the host and create it anew.",
        )


def externally_provisioned(new: BareMetalHost, old: BareMetalHost) -> Iterator[FieldError]:
    if old.spec.externally_provisioned or not new.spec.externally_provisioned:
        return
    states = {host.status.provisioning.state for host in (new, old)}
    if not states & {State.AVAILABLE, State.READY}:
        found = old.status.provisioning.state or "not known yet"
        yield forbidden(
            "spec.externallyProvisioned",
            True,
            f"this can be turned on when a host is created or while it is available; its state is {found!r}.",
        )
