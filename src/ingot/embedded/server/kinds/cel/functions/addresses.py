"""Addresses and networks: `ip("10.0.0.1")`, `cidr("10.0.0.0/8")`."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from cel_expr_python import cel

from ingot.embedded.server.kinds.cel.functions.declaring import BOOL, INT, RECORD, STRING, member, plain

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface

_IP: Final = "ip"
_CIDR: Final = "cidr"


def functions() -> list[cel.FunctionDecl]:
    return [
        plain("isIP", ([STRING], BOOL, lambda text: _address(text) is not None)),
        plain("ip", ([STRING], RECORD, _ip)),
        plain("ip.isCanonical", ([STRING], BOOL, lambda text: _ip(text)["value"] == text)),
        member("family", ([RECORD], INT, lambda found: _known(found).version)),
        member("isUnspecified", ([RECORD], BOOL, lambda found: _known(found).is_unspecified)),
        member("isLoopback", ([RECORD], BOOL, lambda found: _known(found).is_loopback)),
        member("isLinkLocalMulticast", ([RECORD], BOOL, _is_link_local_multicast)),
        member("isLinkLocalUnicast", ([RECORD], BOOL, lambda found: _known(found).is_link_local)),
        member("isGlobalUnicast", ([RECORD], BOOL, _is_global_unicast)),
        plain("isCIDR", ([STRING], BOOL, lambda text: _interface(text) is not None)),
        plain("cidr", ([STRING], RECORD, _cidr)),
        member("containsIP", ([RECORD, STRING], BOOL, _contains_text), ([RECORD, RECORD], BOOL, _contains)),
        member("containsCIDR", ([RECORD, STRING], BOOL, _covers_text), ([RECORD, RECORD], BOOL, _covers)),
        member("ip", ([RECORD], RECORD, lambda found: _ip_record(_network(found).ip))),
        member("masked", ([RECORD], RECORD, lambda found: _cidr(str(_network(found).network)))),
        member("prefixLength", ([RECORD], INT, lambda found: _network(found).network.prefixlen)),
    ]


def _address(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    # As in Kubernetes: no zones, and no IPv4 in the guise of IPv6.
    mapped = isinstance(found, ipaddress.IPv6Address) and (found.scope_id or found.ipv4_mapped)
    return None if mapped else found


def _ip(text: str) -> dict[str, Any]:
    found = _address(text)
    if found is None:
        raise ValueError(f"IP Address {text!r} parse error during conversion from string")
    return _ip_record(found)


def _ip_record(found: Address) -> dict[str, Any]:
    return {"type": _IP, "value": str(found)}


def _known(found: dict[str, Any]) -> Address:
    if found.get("type") != _IP:
        raise ValueError("no such overload: this is not an IP address")
    return ipaddress.ip_address(found["value"])


def _is_link_local_multicast(found: dict[str, Any]) -> bool:
    address = _known(found)
    local = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(local)


def _is_global_unicast(found: dict[str, Any]) -> bool:
    address = _known(found)
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == ipaddress.ip_address("255.255.255.255")
    )


def _interface(text: str) -> Interface | None:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal() or _address(address) is None:
        return None
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


def _cidr(text: str) -> dict[str, Any]:
    found = _interface(text)
    if found is None:
        raise ValueError(f"network address parse error during conversion from string: {text!r}")
    return {"type": _CIDR, "value": str(found)}


def _network(found: dict[str, Any]) -> Interface:
    if found.get("type") != _CIDR:
        raise ValueError("no such overload: this is not a CIDR")
    return ipaddress.ip_interface(found["value"])


def _contains(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    return _known(inner) in _network(outer).network


def _contains_text(outer: dict[str, Any], inner: str) -> bool:
    return _contains(outer, _ip(inner))


def _covers(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    one, other = _network(outer).network, _network(inner).network
    return one.version == other.version and one.prefixlen <= other.prefixlen and other.network_address in one


def _covers_text(outer: dict[str, Any], inner: str) -> bool:
    return _covers(outer, _cidr(inner))
