"""The links of network_data.json.

A physical link is found by its MAC address, and its name or else its id is the name of its connection; without a MAC address it
is found by its name. A bond or VLAN is made under its name, else under its id where the kernel takes that as a name, else under
a name that is made of the id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import LOOPBACK, Identifier, Interface, Kind, Port
from ingot.formats.network.nmstate.bonds import MODES, read_options
from ingot.formats.network.nmstate.interfaces import LARGEST_MTU
from ingot.formats.network.nmstate.vlans import HIGHEST_VLAN
from ingot.formats.network.reading import Fields
from ingot.formats.network.telling import shown
from ingot.formats.network.values import interface_name, is_interface_name, mac_address, profile_name

_PHYSICAL: Final = (
    "phy", "physical", "ethernet", "vif", "ovs", "bridge", "tap", "vhostuser", "hw_veb", "hostdev_physical", "dvs", "hyperv",
    "cascading", "bgpovs",
)  # fmt: skip
"""What a link can be plugged into; inside the machine each is an Ethernet device."""
_LINKS: Final = dict.fromkeys(_PHYSICAL, "phy") | {"bond": "bond", "vlan": "vlan"}
_KINDS: Final = {"phy": Kind.ETHERNET, "bond": Kind.BOND, "vlan": Kind.VLAN}


class Link:
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


def interfaces_of(links: Sequence[Link]) -> tuple[list[Interface], dict[str, str]]:
    """The interfaces of links, and the name of each by the link's id."""
    names = {link.id: link.name for link in links}
    if len(names) < len(links) or len(set(names.values())) < len(names):
        raise FormatError("links: two of them have the same id")
    interfaces = [_interface(link, names) for link in links]
    _check_macs(interfaces)
    return interfaces, names


def interface_of(link: str, names: Mapping[str, str], path: str) -> str:
    """The interface of the link that is meant in the field `path`."""
    if link not in names:
        raise FormatError(f"{path}: there is no link with the id {shown(link)}")
    return names[link]


def _interface(link: Link, names: Mapping[str, str]) -> Interface:
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
        own, ports = _bond(fields, names)
        made = replace(made, own=own, ports=ports)
    if kind == "vlan":
        number = fields.number("vlan_id", 0, HIGHEST_VLAN)
        if number is None:
            raise FormatError(f"{fields.at('vlan_id')}: is needed and not there")
        parent = interface_of(fields.needed("vlan_link"), names, fields.at("vlan_link"))
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


def _bond(fields: Fields, names: Mapping[str, str]) -> tuple[dict[str, Setting], tuple[Port, ...]]:
    mode = fields.choice("bond_mode", MODES)
    if mode is None:
        raise FormatError(f"{fields.at('bond_mode')}: is needed and not there")
    ports = tuple(Port(interface_of(text, names, path)) for path, text in fields.texts("bond_links"))
    return {"mode": mode} | read_options(fields.under("bond_"), mode), ports


def _check_macs(interfaces: Iterable[Interface]) -> None:
    """A device cannot have two connections at once."""
    seen: dict[str, str] = {}
    for each in interfaces:
        if each.identifier is Identifier.MAC and each.mac:
            if each.mac in seen:
                raise FormatError(
                    f"{each.path}.ethernet_mac_address: {each.mac} is that of {seen[each.mac]} too"
                )
            seen[each.mac] = each.name
