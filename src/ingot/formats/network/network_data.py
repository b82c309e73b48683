"""OpenStack's network_data.json: links, the networks on them, and services.

Owns what it means as a configuration. A physical link is found by its MAC address, and its name or else its id is the name of its
connection; without a MAC address it is found by its name. A bond or VLAN is made under its name, else under its id where the
kernel takes that as a name, else under a name that is made of the id. A family without a network is disabled on its link. For
IPv6 that configures itself in any of its ways, routers say which one it is. Name servers count wherever they stand. Ids of
OpenStack's own objects (`vif_id`, `network_id`) ask for nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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
    interface_name,
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
_KINDS: Final = {"phy": Kind.ETHERNET, "bond": Kind.BOND, "vlan": Kind.VLAN}


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
    given = [_Link(fields) for fields in links]
    names = {link.id: link.name for link in given}
    if len(names) < len(given) or len(set(names.values())) < len(names):
        raise FormatError("links: two of them have the same id")
    reader = _Reader(names)
    interfaces = [_interface(link, reader) for link in given]
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


class _Link:
    """What all links have, and the name that is made of it."""

    def __init__(self, fields: Fields) -> None:
        kind = fields.choice("type", _LINKS)
        if kind is None:
            raise FormatError(f"{fields.at('type')}: is needed and not there")
        self.fields: Final = fields
        self.kind: Final = kind
        self.id: Final = fields.needed("id")
        self.mac: Final = _mac(fields, ("vlan_mac_address",) if kind == "vlan" else ())
        self.name: Final = self._name(fields.text("name"))

    def _name(self, given: str | None) -> str:
        """What the interface is called here; the name of its connection, where it is found by its MAC address."""
        key, name = ("name", given) if given else ("id", self.id)
        path = self.fields.at(key)
        if name == LOOPBACK.name:
            self.fields.refuse(key, "is the name of the loopback interface")
        if self.kind == "phy" and self.mac:
            return profile_name(name, path)
        if given:
            return interface_name(name, path)
        if self.kind == "phy":
            missing = self.fields.at("ethernet_mac_address")
            raise FormatError(f"{missing}: is needed, or else a name, to find the device")
        return name if is_interface_name(name) else self.kind + hashlib.sha256(name.encode()).hexdigest()[:8]


def _interface(link: _Link, reader: _Reader) -> Interface:
    fields, kind = link.fields, link.kind
    fields.passed_over("vif_id")
    made = Interface(
        path=fields.path,
        name=link.name,
        kind=_KINDS[kind],
        identifier=Identifier.MAC if kind == "phy" and link.mac else Identifier.NAME,
        mac=link.mac,
        # Zero stands for no MTU at all.
        mtu=fields.number("mtu", 0, LARGEST_MTU) or None,
    )
    if kind == "bond":
        own, ports = _bond(fields, reader)
        made = replace(made, own=own, ports=ports)
    if kind == "vlan":
        number = fields.number("vlan_id", 0, HIGHEST_VLAN)
        if number is None:
            raise FormatError(f"{fields.at('vlan_id')}: is needed and not there")
        parent = reader.link(fields.needed("vlan_link"), fields.at("vlan_link"))
        made = replace(made, own={"id": number, "flags": 1}, parent=parent)
    fields.done()
    return made


def _mac(fields: Fields, others: Sequence[str]) -> str | None:
    """The MAC address, which some links have under another name, or under both."""
    keys = (*others, "ethernet_mac_address")
    given = {mac_address(text, fields.at(key)): key for key in keys if (text := fields.text(key))}
    if len(given) > 1:
        raise FormatError(f"{fields.at(keys[-1])}: is another address than {keys[0]}")
    return next(iter(given), None)


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
