"""The networks of network_data.json: addresses, routes, and the services beside them.

A family without a network is disabled on its link. For IPv6 that configures itself in any of its ways, routers say which one it
is. Name servers count wherever they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import Interface, Ip, Method, Resolver, Route, Server
from ingot.formats.network.nmstate.addresses import automatic_settings
from ingot.formats.network.nmstate.interfaces import check_interface
from ingot.formats.network.nmstate.resolver import read_server
from ingot.formats.network.openstack.links import interface_of
from ingot.formats.network.reading import Fields
from ingot.formats.network.telling import shown
from ingot.formats.network.values import Address, Network, address_of, ip_network, written

_NETWORKS: Final = {
    "ipv4": "ipv4", "ipv4_dhcp": "ipv4_dhcp", "ipv6": "ipv6",
    "ipv6_dhcp": "ipv6_auto", "ipv6_slaac": "ipv6_auto", "ipv6_dhcpv6-stateful": "ipv6_auto",
    "ipv6_dhcpv6-stateless": "ipv6_auto",
}  # fmt: skip
_SERVICES: Final = {"dns": "dns"}


@dataclass(slots=True)
class _Family:
    """What the networks on a link ask for in one address family."""

    automatic: bool = False
    addresses: list[str] = field(default_factory=list)

    def ip(self, version: int) -> Ip:
        settings: dict[str, Setting] = {"addr-gen-mode": 0} if version == 6 else {}
        if self.automatic:
            settings |= automatic_settings(version)
        method = Method.AUTO if self.automatic else Method.MANUAL
        return Ip(
            enabled=True, method=method, addresses=tuple(dict.fromkeys(self.addresses)), settings=settings
        )


@dataclass(slots=True)
class Networks:
    """What was read of them so far."""

    names: Mapping[str, str]
    """The interface of each link's id."""
    families: dict[tuple[str, int], _Family] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
    servers: dict[Address, Server] = field(default_factory=dict)

    def network(self, fields: Fields) -> None:
        fields.passed_over("id", "network_id")
        kind = fields.choice("type", _NETWORKS)
        if kind is None:
            raise FormatError(f"{fields.at('type')}: is needed and not there")
        version = int(kind[3])
        link = interface_of(fields.needed("link"), self.names, fields.at("link"))
        family = self.families.setdefault((link, version), _Family())
        if kind.endswith(("_dhcp", "_auto")):
            family.automatic = True
        else:
            family.addresses.append(_static(fields, version))
        if gateway := fields.text("gateway"):
            hop = address_of(version, gateway, fields.at("gateway"))
            everywhere = ip_network("0.0.0.0/0" if version == 4 else "::/0", fields.path)
            self.routes.append(Route(path=fields.path, destination=everywhere, interface=link, gateway=hop))
        for route in fields.each("routes"):
            self.route(route, link, version)
        self.services(fields)
        fields.done()

    def route(self, fields: Fields, link: str, version: int) -> None:
        text, mask = fields.needed("network"), _text_or_number(fields, "netmask")
        destination = _network(version, text, mask, fields)
        gateway = fields.text("gateway")
        hop = address_of(version, gateway, fields.at("gateway")) if gateway else None
        self.routes.append(Route(path=fields.path, destination=destination, interface=link, gateway=hop))
        self.services(fields)
        fields.done()

    def services(self, fields: Fields) -> None:
        for service in fields.each("services"):
            if service.choice("type", _SERVICES) is None:
                raise FormatError(f"{service.at('type')}: is needed and not there")
            server = read_server(service.needed("address"), service.at("address"))
            service.done()
            self.servers.setdefault(server.address, server)

    def with_addresses(self, interface: Interface) -> Interface:
        four, six = (self.families.get((interface.name, version)) for version in (4, 6))
        made = replace(interface, ipv4=four.ip(4) if four else None, ipv6=six.ip(6) if six else None)
        check_interface(made)
        return made

    def resolver(self) -> Resolver:
        """The name servers, those of one family before those of the other."""
        servers = list(self.servers.values())
        return Resolver(
            servers=tuple(
                sorted(servers, key=lambda each: each.address.version != servers[0].address.version)
            )
        )


def _static(fields: Fields, version: int) -> str:
    """The address of a network, with its prefix length."""
    text, mask = fields.needed("ip_address"), _text_or_number(fields, "netmask")
    bare, slash, _ = text.partition("/")
    address = address_of(version, bare, fields.at("ip_address"))
    if not slash and mask is None:
        raise FormatError(f"{fields.at('netmask')}: is needed and not there")
    if isinstance(address, IPv6Address) and address.is_link_local:
        fields.refuse("ip_address", "a link-local address is made by the system itself, it cannot be given")
    return f"{written(address)}/{_network(version, text, mask, fields).prefixlen}"


def _network(version: int, text: str, mask: str | None, fields: Fields) -> Network:
    """A network as an address with a mask, or with a prefix length behind a slash."""
    if "/" in text and mask is not None:
        raise FormatError(f"{fields.at('netmask')}: there is a prefix length behind {shown(text)} already")
    if mask is not None and not mask.isdigit():
        bits = int(address_of(version, mask, fields.at("netmask")))
        width = 32 if version == 4 else 128
        length = bits.bit_count()
        if bits != ((1 << length) - 1) << (width - length):
            raise FormatError(f"{fields.at('netmask')}: {shown(mask)} is not a mask of ones before zeros")
        mask = str(length)
    path = fields.at("network") if "/" in text or mask is None else fields.at("netmask")
    found = ip_network(text if mask is None else f"{text}/{mask}", path)
    if found.version != version:
        raise FormatError(f"{fields.path}: {shown(text)} is not IPv{version}")
    return found


def _text_or_number(fields: Fields, key: str) -> str | None:
    _, value = fields.take(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value):
        raise FormatError(f"{fields.at(key)}: expected a mask or a prefix length, found {shown(value)}")
    return str(value)
