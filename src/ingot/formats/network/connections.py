"""A configuration to keyfiles: one for each interface, named as its connection.

Owns what goes into which section, the identity of a connection (a UUID made of kind and name, so the same configuration always
gives the same files), and the two ways in which a keyfile says where things belong: by name, or by UUID where the name of a
device is not known because it is found by its MAC or PCI address. Equal to what nmstate generates, to the byte, but for these,
on purpose:

- the settings of a bond's or bridge's port are written also where the port is found by its MAC address; nmstate loses them;
- a bridge's group address is written as an address; nmstate writes a list of numbers, which NetworkManager does not read;
- routes that differ in nothing but their metric are all kept; nmstate keeps one of them;
- rules keep their order; nmstate's order changes from run to run;
- values are escaped as key files need it; nmstate writes them as they are.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting, keyfile
from ingot.formats.network.model import FOREVER, Identifier, Interface, Ip, Kind, Method, State, Wanted
from ingot.formats.network.placing import Placed, place
from ingot.formats.network.telling import shown
from ingot.formats.network.values import file_name
from ingot.formats.network.wiring import Wired

_TYPES: Final = {Kind.ETHERNET: "802-3-ethernet", Kind.BRIDGE: "bridge"}
_MAY_FAIL: Final = {
    "any": (True, True),
    "ipv4": (False, True),
    "ipv6": (True, False),
    "ipv4+ipv6": (False, False),
}


def keyfiles(wanted: Wanted) -> dict[str, bytes]:
    """The files by their names."""
    files: dict[str, bytes] = {}
    for placed in place(wanted):
        interface = placed.wired.interface
        name = file_name(interface.id)
        if name in files:
            raise FormatError(f"{interface.path}: there are two connections named {shown(interface.id)}")
        files[name] = keyfile(_sections(placed))
    return dict(sorted(files.items()))


def _sections(placed: Placed) -> dict[str, Mapping[str, Setting]]:
    wired, interface = placed.wired, placed.wired.interface
    sections: dict[str, Mapping[str, Setting]] = {"connection": _connection(wired)}
    if interface.kind is Kind.BOND:
        sections["bond"] = interface.own
    if wired.controller and wired.controller.kind is Kind.BOND and wired.port:
        sections["bond-port"] = wired.port
    if interface.kind is Kind.BRIDGE:
        sections["bridge"] = interface.own
    if wired.controller and wired.controller.kind is Kind.BRIDGE and wired.port is not None:
        sections["bridge-port"] = wired.port
    if not wired.controller:
        sections["ipv4"] = _family(placed, 4)
        sections["ipv6"] = _family(placed, 6)
    if link := _link(wired):
        sections["ethernet"] = link
    if interface.kind is Kind.VLAN:
        sections["vlan"] = {**interface.own, "parent": _parent(wired)}
    if interface.description is not None:
        sections["user"] = {"nmstate.interface.description": interface.description}
    if interface.identifier is Identifier.PCI:
        sections["match"] = {"path": (f"pci-{interface.pci}",)}
    return sections


def _connection(wired: Wired) -> dict[str, Setting]:
    interface = wired.interface
    settings: dict[str, Setting] = {
        "id": interface.id,
        "uuid": _identity(interface),
        "type": _type(interface),
        "autoconnect": interface.state is State.UP,
        "autoconnect-slaves": 1 if interface.kind in (Kind.BOND, Kind.BRIDGE) else -1,
    }
    if interface.identifier is Identifier.NAME:
        settings["interface-name"] = interface.name
    if wired.controller:
        settings |= {"master": wired.controller.name, "slave-type": _type(wired.controller)}
    if interface.lldp is not None:
        settings["lldp"] = int(interface.lldp)
    return settings


def _type(interface: Interface) -> str:
    return _TYPES.get(interface.kind, interface.kind.value)


def _identity(interface: Interface) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{interface.kind}://{interface.name}"))


def _parent(wired: Wired) -> str:
    if not isinstance(wired.parent, Interface):
        return wired.parent or ""
    return wired.parent.name if wired.parent.identifier is Identifier.NAME else _identity(wired.parent)


def _link(wired: Wired) -> dict[str, Setting]:
    interface = wired.interface
    settings = dict(interface.link)
    if wired.mac:
        settings["mac-address" if interface.identifier is Identifier.MAC else "cloned-mac-address"] = (
            wired.mac
        )
    if interface.mtu is not None:
        settings["mtu"] = interface.mtu
    return settings


def _family(placed: Placed, version: int) -> dict[str, Setting]:
    interface = placed.wired.interface
    ip = interface.ip(version) or Ip(enabled=False, method=Method.DISABLED)
    settings: dict[str, Setting] = {"method": ip.method.value, "dhcp-timeout": FOREVER, **ip.settings}
    settings |= {f"address{number}": address for number, address in enumerate(ip.addresses)}
    settings |= placed.settings(version)
    if interface.wait_ip:
        settings["may-fail"] = _MAY_FAIL[interface.wait_ip][0 if version == 4 else 1]
    return settings
