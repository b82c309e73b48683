"""One route of a desired state.

A route that is absent or to be ignored asks for nothing where there is no machine yet, and is left out.
"""

from __future__ import annotations

from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import HIGHEST, MAIN_TABLE, Route
from ingot.formats.network.reading import Fields
from ingot.formats.network.values import address_of, ip_network, written

_STATES: Final = {"absent": "absent", "ignore": "ignore"}
_TYPES: Final = {word: word for word in ("blackhole", "unreachable", "prohibit")}
_LOOPBACK: Final = "lo"


def read_route(fields: Fields) -> Route | None:
    if fields.choice("state", _STATES):
        return None
    path = fields.at("destination")
    destination = ip_network(fields.needed("destination"), path)
    gateway = fields.text("next-hop-address")
    hop = address_of(destination.version, gateway, fields.at("next-hop-address")) if gateway else None
    kind = fields.choice("route-type", _TYPES)
    interface = fields.text("next-hop-interface")
    if kind and (hop or interface not in (None, _LOOPBACK)):
        raise FormatError(f"{fields.path}: a {kind} route leads nowhere, it cannot have a next hop")
    if not kind and not interface:
        raise FormatError(f"{fields.at('next-hop-interface')}: is needed and not there")
    unset = (
        destination.version == 4 and destination.prefixlen >= 8 and destination.network_address.packed[0] == 0
    )
    if unset and not kind:
        raise FormatError(f"{path}: no packet can go to 0.0.0.0/8; the default route is 0.0.0.0/0")
    route = Route(
        path=fields.path,
        destination=destination,
        interface=None if kind else interface,
        gateway=hop if hop and int(hop) else None,
        metric=_metric(fields),
        table=fields.number("table-id", 0, HIGHEST) or MAIN_TABLE,
        options=_options(fields, destination.version, kind),
    )
    fields.done()
    return route


def _metric(fields: Fields) -> int | None:
    """Minus one stands for the usual one."""
    metric = fields.number("metric", -1, HIGHEST)
    return None if metric == -1 else metric


def _options(fields: Fields, version: int, kind: str | None) -> dict[str, Setting]:
    """The attributes of the route, in the order in which nmstate writes them."""
    options: dict[str, Setting] = {}
    if (weight := fields.number("weight", 1, 256)) is not None:
        if version == 6:
            fields.refuse("weight", "is for IPv4 routes only")
        options["weight"] = weight
    if kind:
        options["type"] = kind
    if (cwnd := fields.number("cwnd", 1, HIGHEST)) is not None:
        options |= {"cwnd": cwnd, "lock-cwnd": True}
    if source := fields.text("source"):
        options["src"] = written(address_of(version, source, fields.at("source")))
    for name, low in (("initcwnd", 0), ("initrwnd", 0), ("mtu", 1)):
        if (number := fields.number(name, low, HIGHEST)) is not None:
            options[name] = number
    if (quickack := fields.flag("quickack")) is not None:
        options["quickack"] = quickack
    if (advmss := fields.number("advmss", 1, HIGHEST)) is not None:
        options["advmss"] = advmss
    return options
