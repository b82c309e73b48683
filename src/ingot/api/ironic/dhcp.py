"""The addresses that are given out on the provisioning network, derived from the network where they are not written."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from ingot.api.ironic.networking import DHCP

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The first ones are left for routers and services that people number by hand, the last ones likewise.
_FIRST: Final = 10
_KEPT_AT_THE_END: Final = 2
_CIDR: Final = re.compile(r"[^/]+/\d{1,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The addresses from `begin` to `end`, both included."""

    begin: Address
    end: Address

    def overlaps(self, other: Pool) -> bool:
        if self.begin.version != other.begin.version:
            return False
        return int(self.begin) <= int(other.end) and int(other.begin) <= int(self.end)


def read_address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def read_network(text: str) -> Network | None:
    """The network of a CIDR, which may name a host in it: 172.22.0.1/24."""
    if not _CIDR.fullmatch(text):
        return None
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def derived_pool(network: Network) -> Pool | None:
    """What is given out when only the network is known: 172.22.0.10 to 172.22.0.253. None if it is too small for that."""
    size = network.num_addresses
    if size <= _FIRST + _KEPT_AT_THE_END:
        return None
    return Pool(begin=network[_FIRST], end=network[size - 1 - _KEPT_AT_THE_END])


def main_pool(dhcp: DHCP) -> Pool | None:
    """The addresses of the main network; None where there is none, or where admission would have refused it."""
    network = read_network(dhcp.network_cidr)
    if network is None:
        return None
    derived = derived_pool(network)
    begin = read_address(dhcp.range_begin) if dhcp.range_begin else (derived.begin if derived else None)
    end = read_address(dhcp.range_end) if dhcp.range_end else (derived.end if derived else None)
    return Pool(begin=begin, end=end) if begin is not None and end is not None else None
