"""Rules for the networks that the networking service puts hosts on."""

from __future__ import annotations

from collections.abc import Iterator

from ingot.api.admission.errors import FieldError, duplicate, forbidden, required
from ingot.api.admission.switches import vlans
from ingot.api.ironic import Ironic


def provider_networks(ironic: Ironic) -> Iterator[FieldError]:
    service = ironic.spec.networking_service
    if service is None or not service.enabled:
        return
    seen: set[str] = set()
    for index, network in enumerate(service.provider_networks):
        path = f"spec.networkingService.providerNetworks[{index}]"
        if network.type in seen:
            yield duplicate(
                f"{path}.type",
                network.type,
                "a host is on one network at a time, and this type is listed already.",
            )
        seen.add(network.type)
        if network.mode == "access" and network.allowed_vlans:
            yield forbidden(
                f"{path}.allowedVLANs",
                network.allowed_vlans,
                "a port in access mode carries its native VLAN only. Remove the list, or make the mode trunk or hybrid.",
            )
        if network.mode != "access" and not network.allowed_vlans:
            yield required(
                f"{path}.allowedVLANs", f"a port in {network.mode} mode carries tagged VLANs: say which."
            )
        yield from vlans(f"{path}.allowedVLANs", network.allowed_vlans)
