"""OpenStack's network_data.json: links, the networks on them, and services.

Owns what it means as a configuration. A physical link is found by its MAC address, and its id is the name of its connection; a
bond or VLAN is made under its id where the kernel takes that as a name, else under a name that is made of the id. A family
without a network is disabled on its link. For IPv6 that configures itself in any of its ways, routers say which one it is.
Name servers count wherever they stand. Ids of OpenStack's own objects (`vif_id`, `network_id`) ask for nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.document import Value
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import (
    LOOPBACK,
    Identifier,
    Interface,
    Ip,
    Kind,
    Method,
    Port,
    Resolver,
    Route,
    Server,
    Wanted,
)
from ingot.formats.network.nmstate.addresses import automatic_settings
from ingot.formats.network.nmstate.bonds import MODES, read_options
from ingot.formats.network.nmstate.interfaces import LARGEST_MTU, check_interface
from ingot.formats.network.nmstate.resolver import read_server
from ingot.formats.network.nmstate.vlans import HIGHEST_VLAN
from ingot.formats.network.reading import Fields
from ingot.formats.network.telling import shown
from ingot.formats.network.values import (
    Address,
    Network,
    address_of,
    ip_network,
    is_interface_name,
    mac_address,
    profile_name,
    written,
)

_PHYSICAL: Final = (
    "phy", "physical", "ethernet", "vif", "ovs", "bridge", "tap", "vhostuser", "hw_veb", "hostdev_physical", "dvs", "hyperv",
    "cascading", "bgpovs",
)  # fmt: skip
"""What a link can be plugged into; inside the machine each is an Ethernet device."""
_LINKS: Final = dict.fromkeys(_PHYSICAL, "phy") | {"bond": "bond", "vlan": "vlan"}
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
class _Reader:
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
        link = self.link(fields.needed("link"), fields.at("link"))
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

    def link(self, link: str, path: str) -> str:
        if link not in self.names:
            raise FormatError(f"{path}: there is no link with the id {shown(link)}")
        return self.names[link]


def wanted_of_network_data(document: Value) -> Wanted:
    data = Fields(document, "")
    links = list(data.each("links"))
    given = [(fields, _kind(fields), fields.needed("id")) for fields in links]
    names = {identity: _name(fields, kind, identity) for fields, kind, identity in given}
    if len(names) < len(given) or len(set(names.values())) < len(names):
        raise FormatError("links: two of them have the same id")
    reader = _Reader(names)
    interfaces = [_interface(fields, kind, names[identity], reader) for fields, kind, identity in given]
    reader.services(data)
    for fields in data.each("networks"):
        reader.network(fields)
    data.done()
    _check_macs(interfaces)
    servers = list(reader.servers.values())
    return Wanted(
        interfaces=tuple(_with_addresses(each, reader.families) for each in interfaces),
        routes=tuple(reader.routes),
        resolver=Resolver(
            servers=tuple(
                sorted(servers, key=lambda each: each.address.version != servers[0].address.version)
            )
        ),
    )


def _kind(fields: Fields) -> str:
    kind = fields.choice("type", _LINKS)
    if kind is None:
        raise FormatError(f"{fields.at('type')}: is needed and not there")
    return kind


def _name(fields: Fields, kind: str, identity: str) -> str:
    if identity == LOOPBACK.name:
        fields.refuse("id", "is the name of the loopback interface")
    if kind == "phy":
        return profile_name(identity, fields.at("id"))
    if is_interface_name(identity):
        return identity
    return kind + hashlib.sha256(identity.encode()).hexdigest()[:8]


def _interface(fields: Fields, kind: str, name: str, reader: _Reader) -> Interface:
    fields.passed_over("vif_id")
    mtu = fields.number("mtu", 0, LARGEST_MTU)
    path = fields.path
    if kind == "phy":
        mac = mac_address(fields.needed("ethernet_mac_address"), fields.at("ethernet_mac_address"))
        fields.done()
        return Interface(
            path=path, name=name, kind=Kind.ETHERNET, identifier=Identifier.MAC, mac=mac, mtu=mtu
        )
    key = "ethernet_mac_address" if kind == "bond" else "vlan_mac_address"
    given = fields.text(key)
    mac_given = mac_address(given, fields.at(key)) if given else None
    if kind == "bond":
        own, ports = _bond(fields, reader)
        fields.done()
        return Interface(path=path, name=name, kind=Kind.BOND, mac=mac_given, mtu=mtu, own=own, ports=ports)
    number = fields.number("vlan_id", 0, HIGHEST_VLAN)
    if number is None:
        raise FormatError(f"{fields.at('vlan_id')}: is needed and not there")
    parent = reader.link(fields.needed("vlan_link"), fields.at("vlan_link"))
    fields.done()
    tagged: dict[str, Setting] = {"id": number, "flags": 1}
    return Interface(path=path, name=name, kind=Kind.VLAN, mac=mac_given, mtu=mtu, own=tagged, parent=parent)


def _bond(fields: Fields, reader: _Reader) -> tuple[dict[str, Setting], tuple[Port, ...]]:
    mode = fields.choice("bond_mode", MODES)
    if mode is None:
        raise FormatError(f"{fields.at('bond_mode')}: is needed and not there")
    ports = tuple(Port(reader.link(text, path)) for path, text in fields.texts("bond_links"))
    return {"mode": mode} | read_options(fields.under("bond_"), mode), ports


def _check_macs(interfaces: list[Interface]) -> None:
    """A device cannot have two connections at once."""
    seen: dict[str, str] = {}
    for each in interfaces:
        if each.identifier is Identifier.MAC and each.mac:
            if each.mac in seen:
                raise FormatError(
                    f"{each.path}.ethernet_mac_address: {each.mac} is that of {seen[each.mac]} too"
                )
            seen[each.mac] = each.name


def _with_addresses(interface: Interface, families: Mapping[tuple[str, int], _Family]) -> Interface:
    four, six = (families.get((interface.name, version)) for version in (4, 6))
    made = replace(interface, ipv4=four.ip(4) if four else None, ipv6=six.ip(6) if six else None)
    check_interface(made)
    return made


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
