"""Rules for where Ironic is on the network, and how others reach it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ingot.api.admission.errors import FieldError, forbidden, invalid, required
from ingot.api.admission.urls import url
from ingot.api.inputs.urls import WEB_SCHEMES
from ingot.api.ironic import Ironic, Keepalived, Networking
from ingot.api.ironic.dhcp import read_address

# They are handed on in lists and in files of settings.
_INTERFACE: Final = re.compile(r"[^\s/,;\x00-\x1f\x7f-\uffff]+")
_MAC: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


def host_network(ironic: Ironic) -> Iterator[FieldError]:
    """In the network of the cluster there is no interface to choose and nothing to give out."""
    networking = ironic.spec.networking
    if not networking.disable_host_network:
        return
    given = {
        "bindInterface": networking.bind_interface,
        "dhcp": networking.dhcp is not None,
        "interface": bool(networking.interface),
        "ipAddress": bool(networking.ip_address),
        "macAddresses": bool(networking.mac_addresses),
        "keepalived": networking.keepalived is not None,
    }
    for field in (field for field, is_given in given.items() if is_given):
        yield forbidden(
            f"spec.networking.{field}",
            None,
            "with disableHostNetwork Ironic has no interface of its own on the provisioning network. Remove one of the two.",
        )


def addresses(ironic: Ironic) -> Iterator[FieldError]:
    networking = ironic.spec.networking
    yield from address("spec.networking.ipAddress", networking.ip_address)
    yield from address("spec.networking.externalIP", networking.external_ip)


def address(path: str, found: str) -> Iterator[FieldError]:
    if found and read_address(found) is None:
        yield invalid(path, found, "this is not an IP address.")


def interfaces(ironic: Ironic) -> Iterator[FieldError]:
    networking = ironic.spec.networking
    yield from _interface("spec.networking.interface", networking.interface)
    for index, mac in enumerate(networking.mac_addresses):
        if not _MAC.fullmatch(mac):
            yield invalid(
                f"spec.networking.macAddresses[{index}]",
                mac,
                "this is not a MAC address; write it like 52:54:00:12:34:56.",
            )


def _interface(path: str, found: str) -> Iterator[FieldError]:
    if found and not _INTERFACE.fullmatch(found):
        yield invalid(path, found, "no network interface can have this name.")


def external_addresses(ironic: Ironic) -> Iterator[FieldError]:
    networking = ironic.spec.networking
    urls = {
        "externalCallbackURL": networking.external_callback_url,
        "imageServerExternalURL": networking.image_server_external_url,
    }
    for field, found in urls.items():
        if found:
            yield from url(f"spec.networking.{field}", found, WEB_SCHEMES)
    if networking.external_ip:
        yield from _external_ip_alone(networking, urls)
    if (
        networking.ingress is None
        and len(missing := [field for field, found in urls.items() if not found]) == 1
    ):
        yield required(
            f"spec.networking.{missing[0]}",
            "externalCallbackURL and imageServerExternalURL go together: hosts have to reach the API and the images.",
        )


def _external_ip_alone(networking: Networking, urls: dict[str, str]) -> Iterator[FieldError]:
    others = [
        *(field for field, found in urls.items() if found),
        *(["ingress"] if networking.ingress else []),
    ]
    if others:
        yield forbidden(
            "spec.networking.externalIP",
            networking.external_ip,
            f"it says the same as {' and '.join(others)}. Remove one of the two.",
        )


def own_address(ironic: Ironic) -> Iterator[FieldError]:
    if ironic.spec.high_availability and ironic.spec.networking.ip_address:
        yield forbidden(
            "spec.networking.ipAddress",
            ironic.spec.networking.ip_address,
            "with highAvailability every replica has an address of its own. Name the interface instead.",
        )


def address_manager(ironic: Ironic) -> Iterator[FieldError]:
    if ironic.spec.networking.ip_address_manager:
        yield from _held_address(ironic, "spec.networking.ipAddressManager")


def keepalived(ironic: Ironic) -> Iterator[FieldError]:
    found = ironic.spec.networking.keepalived
    if found is None or not found.enabled:
        return
    path = "spec.networking.keepalived"
    if ironic.spec.networking.ip_address_manager:
        yield forbidden(
            path, None, "ipAddressManager is the older way to write this. Remove ipAddressManager."
        )
    else:
        yield from _held_address(ironic, path)
    yield from _virtual_addresses(path, found)


def _held_address(ironic: Ironic, path: str) -> Iterator[FieldError]:
    networking = ironic.spec.networking
    if ironic.spec.high_availability:
        yield forbidden(path, None, "with highAvailability no single address is held. Remove one of the two.")
        return
    for field, value in (("ipAddress", networking.ip_address), ("interface", networking.interface)):
        if not value:
            yield required(
                f"spec.networking.{field}", "keepalived puts ipAddress on interface: it needs both."
            )


def _virtual_addresses(path: str, found: Keepalived) -> Iterator[FieldError]:
    for index, virtual in enumerate(found.additional_vips):
        where = f"{path}.additionalVIPs[{index}]"
        if not virtual.ip_address:
            yield required(f"{where}.ipAddress", "say which address is to be held.")
        if not virtual.interface:
            yield required(f"{where}.interface", "say which interface gets the address.")
        yield from address(f"{where}.ipAddress", virtual.ip_address)
        yield from _interface(f"{where}.interface", virtual.interface)


def exporter(ironic: Ironic) -> Iterator[FieldError]:
    found = ironic.spec.prometheus_exporter
    if found is None:
        return
    path = "spec.prometheusExporter"
    if ironic.spec.high_availability and not found.disable_service_monitor:
        yield required(
            f"{path}.disableServiceMonitor",
            "with highAvailability a ServiceMonitor would read one replica only. Set this to true.",
        )
    bound = read_address(found.bind_address) if found.bind_address else None
    if found.bind_address and bound is None:
        yield from address(f"{path}.bindAddress", found.bind_address)
    if found.enabled and not found.disable_service_monitor and bound is not None and bound.is_loopback:
        yield invalid(
            f"{path}.bindAddress",
            found.bind_address,
            "Prometheus cannot reach metrics on a loopback address. Set disableServiceMonitor, or another address.",
        )


def insecure_rpc(ironic: Ironic) -> Iterator[FieldError]:
    if ironic.spec.tls.insecure_rpc is not None and not ironic.spec.high_availability:
        yield forbidden(
            "spec.tls.insecureRPC",
            ironic.spec.tls.insecure_rpc,
            "a single Ironic makes no remote calls. Remove this field.",
        )
