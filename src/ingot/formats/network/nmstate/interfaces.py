"""One interface of a desired state.

Owns what all kinds have in common, and Ethernet; bonds, bridges and VLANs have modules of their own. An interface whose type
is not given is an Ethernet interface, as it is for nmstate when there is no machine to ask. An interface that is absent or to
be ignored is nothing but a name: no file is written for it, so its other fields are not looked at.
"""

from __future__ import annotations

from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import LOOPBACK, Identifier, Interface, Kind, Port, State
from ingot.formats.network.nmstate.addresses import read_ip
from ingot.formats.network.nmstate.bonds import read_bond
from ingot.formats.network.nmstate.bridges import read_bridge
from ingot.formats.network.nmstate.vlans import read_vlan
from ingot.formats.network.reading import Fields
from ingot.formats.network.values import interface_name, mac_address, pci_address, profile_name

LARGEST_MTU: Final = 65535
SMALLEST_IPV6_MTU: Final = 1280
_FOUND: Final = ("driver", "min-mtu", "max-mtu")
"""Fields that describe the device that nmstate found."""
_KINDS: Final = {kind.value: kind.value for kind in Kind if kind is not Kind.LOOPBACK}
_STATES: Final = {state.value: state.value for state in State}
_IDENTIFIERS: Final = {identifier.value: identifier.value for identifier in Identifier}
_WAITS: Final = {word: word for word in ("any", "ipv4", "ipv6", "ipv4+ipv6")}
_DUPLEX: Final = {"full": "full", "half": "half"}


def read_interface(fields: Fields) -> Interface:
    state = State(fields.choice("state", _STATES) or State.UP)
    if state in (State.ABSENT, State.IGNORE):
        return Interface(path=fields.path, name=fields.needed("name"), kind=_any_kind(fields), state=state)
    kind = Kind(fields.choice("type", _KINDS) or Kind.ETHERNET)
    fields.passed_over(*_FOUND)
    identifier = Identifier(fields.choice("identifier", _IDENTIFIERS) or Identifier.NAME)
    mac, pci = _mac(fields, "mac-address"), fields.text("pci-address")
    link: dict[str, Setting] = {}
    if (promiscuous := fields.flag("accept-all-mac-addresses")) is not None:
        link["accept-all-mac-addresses"] = int(promiscuous)
    own: dict[str, Setting] = {}
    ports: tuple[Port, ...] | None = None
    parent: str | None = None
    match kind:
        case Kind.BOND:
            own, ports = read_bond(fields)
        case Kind.BRIDGE:
            own, ports = read_bridge(fields)
        case Kind.VLAN:
            own, parent = read_vlan(fields)
        case Kind.ETHERNET:
            link |= _ethernet(fields)
    made = Interface(
        path=fields.path,
        name=_name(fields, identifier),
        kind=kind,
        state=state,
        identifier=identifier,
        profile=_profile(fields),
        description=fields.text("description"),
        mac=mac,
        permanent_mac=_mac(fields, "permanent-mac-address"),
        copy_mac_from=fields.text("copy-mac-from"),
        pci=pci_address(pci, fields.at("pci-address")) if pci else None,
        mtu=fields.number("mtu", 0, LARGEST_MTU),
        lldp=_lldp(fields),
        wait_ip=fields.choice("wait-ip", _WAITS),
        controller=fields.text("controller"),
        ipv4=read_ip(fields, 4),
        ipv6=read_ip(fields, 6),
        link=link,
        own=own,
        ports=ports,
        parent=parent,
    )
    fields.done()
    check_interface(made)
    return made


def _any_kind(fields: Fields) -> Kind:
    """Of an interface that is not made, only whether it is hardware matters."""
    kind = fields.text("type")
    return Kind.ETHERNET if kind in (None, Kind.ETHERNET) else Kind.DUMMY


def check_interface(interface: Interface) -> None:
    """What the fields of one interface have to do with each other."""
    path = interface.path
    if interface.identifier is Identifier.MAC and interface.mac is None:
        raise FormatError(f"{path}.mac-address: is needed to identify {interface.name} by it")
    if interface.identifier is Identifier.PCI and interface.pci is None:
        raise FormatError(f"{path}.pci-address: is needed to identify {interface.name} by it")
    if interface.identifier is not Identifier.NAME and interface.kind is not Kind.ETHERNET:
        raise FormatError(
            f"{path}.identifier: a {interface.kind} is made under its name, it cannot be found otherwise"
        )
    if interface.copy_mac_from and interface.kind not in (Kind.BOND, Kind.BRIDGE):
        raise FormatError(
            f"{path}.copy-mac-from: only a bond or a linux-bridge takes the address of another interface"
        )
    if interface.copy_mac_from and interface.mac:
        raise FormatError(f"{path}.copy-mac-from: the interface has a mac-address already")
    if (
        interface.ipv6
        and interface.ipv6.enabled
        and interface.mtu is not None
        and interface.mtu < SMALLEST_IPV6_MTU
    ):
        raise FormatError(f"{path}.mtu: IPv6 needs at least {SMALLEST_IPV6_MTU}, found {interface.mtu}")
    for version in (4, 6):
        ip = interface.ip(version)
        if f"ipv{version}" in (interface.wait_ip or "") and not (ip and ip.enabled):
            raise FormatError(f"{path}.wait-ip: there is no IPv{version} to wait for, it is not enabled")
    if (
        interface.mac
        and interface.kind is Kind.BOND
        and (interface.own.get("mode"), interface.own.get("fail_over_mac")) == ("active-backup", "active")
    ):
        raise FormatError(
            f"{path}.mac-address: with fail_over_mac active a bond has the address of its active port"
        )


def _name(fields: Fields, identifier: Identifier) -> str:
    """Found by its name, an interface has one that the kernel takes; else it is just the name of the connection."""
    name = fields.needed("name")
    if name == LOOPBACK.name:
        fields.refuse("name", "the loopback interface cannot be configured")
    check = interface_name if identifier is Identifier.NAME else profile_name
    return check(name, fields.at("name"))


def _profile(fields: Fields) -> str | None:
    profile = fields.text("profile-name")
    return profile_name(profile, fields.at("profile-name")) if profile else None


def _mac(fields: Fields, key: str) -> str | None:
    mac = fields.text(key)
    return mac_address(mac, fields.at(key)) if mac else None


def _lldp(fields: Fields) -> bool | None:
    lldp = fields.fields("lldp")
    if lldp is None:
        return None
    lldp.passed_over("neighbors")
    enabled = lldp.flag("enabled")
    if enabled is None:
        raise FormatError(f"{lldp.at('enabled')}: is needed and not there")
    lldp.done()
    return enabled


def _ethernet(fields: Fields) -> dict[str, Setting]:
    ethernet = fields.fields("ethernet")
    if ethernet is None:
        return {}
    negotiated = ethernet.flag("auto-negotiation")
    speed = ethernet.number("speed", 0, 2**32 - 1)
    duplex = ethernet.choice("duplex", _DUPLEX)
    ethernet.done()
    if negotiated is None:
        if speed is not None or duplex is not None:
            raise FormatError(
                f"{ethernet.at('auto-negotiation')}: has to be false for speed and duplex to be set"
            )
        return {}
    if negotiated:
        # Speed and duplex beside it tell what was negotiated.
        return {"auto-negotiate": True}
    fixed: dict[str, Setting] = {"auto-negotiate": False}
    if speed is not None:
        fixed["speed"] = speed
    if duplex is not None:
        fixed["duplex"] = duplex
    return fixed
