"""Rules for the addresses that are given out to hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ingot.api.admission.errors import FieldError, forbidden, invalid, required
from ingot.api.admission.ironic.networks import address
from ingot.api.ironic import DHCP, DHCPRange, Ironic, Networking
from ingot.api.ironic.dhcp import Network, Pool, derived_pool, main_pool, read_address, read_network

_PATH: Final = "spec.networking.dhcp"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def dhcp(ironic: Ironic) -> Iterator[FieldError]:
    networking = ironic.spec.networking
    found = networking.dhcp
    if found is None:
        return
    if not (networking.ip_address or networking.interface or networking.mac_addresses):
        yield required(
            "spec.networking.interface",
            "addresses are given out on one network: say which, by interface, macAddresses or ipAddress.",
        )
    if found.serve_dns and found.dns_address:
        yield forbidden(
            f"{_PATH}.dnsAddress",
            found.dns_address,
            "serveDNS makes Ironic the DNS server. Remove one of the two.",
        )
    yield from address(f"{_PATH}.dnsAddress", found.dns_address)
    yield from address(f"{_PATH}.gatewayAddress", found.gateway_address)
    yield from _main_network(found, networking)
    for index, extra in enumerate(found.extra_ranges):
        yield from _extra_range(f"{_PATH}.extraRanges[{index}]", extra)
    yield from _overlaps(found)


def raw_lines(ironic: Ironic) -> Iterator[FieldError]:
    """They become lines of a file: one entry, one line."""
    found = ironic.spec.networking.dhcp
    for field, lines in (("hosts", found.hosts), ("ignore", found.ignore)) if found else ():
        for index, line in enumerate(lines):
            if _CONTROL.search(line) or not line.strip():
                yield invalid(
                    f"{_PATH}.{field}[{index}]",
                    line,
                    "this has to be one line in dnsmasq's words, and not empty.",
                )


def _main_network(found: DHCP, networking: Networking) -> Iterator[FieldError]:
    """The range follows from the network where it is not written, so the network is all that has to be."""
    if not found.network_cidr:
        if found.range_begin or found.range_end or not found.extra_ranges:
            yield required(
                f"{_PATH}.networkCIDR", "say on which network addresses are given out: 172.22.0.0/24."
            )
        return
    network = read_network(found.network_cidr)
    if network is None:
        yield invalid(
            f"{_PATH}.networkCIDR", found.network_cidr, "this is not a network; write it like 172.22.0.0/24."
        )
        return
    if derived_pool(network) is None and not (found.range_begin and found.range_end):
        yield required(
            f"{_PATH}.rangeEnd" if found.range_begin else f"{_PATH}.rangeBegin",
            f"{network} is too small for the usual range. Say which addresses are given out, with rangeBegin and rangeEnd.",
        )
        return
    yield from _bounds(_PATH, network, begin=found.range_begin, end=found.range_end, pool=main_pool(found))
    own = read_address(networking.ip_address) if networking.ip_address else None
    if own is not None and own not in network:
        yield invalid(
            "spec.networking.ipAddress",
            networking.ip_address,
            f"it is not in the provisioning network, {network}.",
        )


def _extra_range(path: str, extra: DHCPRange) -> Iterator[FieldError]:
    missing = [
        field
        for field, value in (
            ("networkCIDR", extra.network_cidr),
            ("rangeBegin", extra.range_begin),
            ("rangeEnd", extra.range_end),
        )
        if not value
    ]
    for field in missing:
        yield required(
            f"{path}.{field}", "a further range is told by its networkCIDR, rangeBegin and rangeEnd."
        )
    network = read_network(extra.network_cidr)
    if network is None:
        if extra.network_cidr:
            yield invalid(
                f"{path}.networkCIDR",
                extra.network_cidr,
                "this is not a network; write it like 172.22.0.0/24.",
            )
        return
    if network.prefixlen == 0:
        yield invalid(f"{path}.networkCIDR", extra.network_cidr, "a network of all addresses is none.")
    if not missing:
        yield from _bounds(
            path, network, begin=extra.range_begin, end=extra.range_end, pool=_extra_pool(extra)
        )
    yield from _extra_gateway(f"{path}.gatewayAddress", extra.gateway_address, network)


def _extra_gateway(path: str, found: str, network: Network) -> Iterator[FieldError]:
    if not found:
        return
    gateway = read_address(found)
    if gateway is None:
        yield from address(path, found)
    elif network.version == 6 or gateway.version == 6:
        yield forbidden(path, found, "IPv6 hosts learn their router from itself. Remove the gateway.")
    elif gateway not in network:
        yield invalid(path, found, f"it is not in its network, {network}.")


def _bounds(path: str, network: Network, *, begin: str, end: str, pool: Pool | None) -> Iterator[FieldError]:
    """What is written lies in its network, and in order."""
    outside = False
    for field, text in (("rangeBegin", begin), ("rangeEnd", end)):
        found = read_address(text) if text else None
        if text and found is None:
            yield from address(f"{path}.{field}", text)
        elif found is not None and found not in network:
            outside = True
            yield invalid(f"{path}.{field}", text, f"it is not in its network, {network}.")
    if pool is not None and not outside and int(pool.begin) > int(pool.end):
        field, text = ("rangeEnd", end) if end else ("rangeBegin", begin)
        yield invalid(f"{path}.{field}", text, f"the range would go from {pool.begin} down to {pool.end}.")


def _extra_pool(extra: DHCPRange) -> Pool | None:
    begin, end = read_address(extra.range_begin), read_address(extra.range_end)
    return Pool(begin=begin, end=end) if begin is not None and end is not None else None


def _overlaps(found: DHCP) -> Iterator[FieldError]:
    earlier: list[Pool] = []
    if (main := main_pool(found)) is not None:
        earlier.append(main)
    for index, extra in enumerate(found.extra_ranges):
        pool = _extra_pool(extra)
        if pool is None:
            continue
        for other in earlier:
            if pool.overlaps(other):
                yield invalid(
                    f"{_PATH}.extraRanges[{index}].rangeBegin",
                    extra.range_begin,
                    f"this range has addresses in common with the one from {other.begin} to {other.end}.",
                )
        earlier.append(pool)
