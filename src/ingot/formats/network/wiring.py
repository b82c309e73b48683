"""How the interfaces of a configuration belong together.

Owns the references: which port has which controller, what a VLAN is on, whose MAC address is copied. A reference is the name of
an interface or else that of its connection. A port that nobody described is an Ethernet interface. What cannot be (two
controllers of one port, an interface that stands on itself, a port with addresses) is refused with the names involved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import Interface, Kind, State
from ingot.formats.network.telling import shown
from ingot.formats.network.values import interface_name


@dataclass(frozen=True, slots=True)
class Wired:
    """An interface in its place."""

    interface: Interface
    controller: Interface | None = None
    port: Mapping[str, Setting] | None = None
    """The settings of the port where its controller describes it."""
    parent: Interface | str | None = None
    """What a VLAN is on: an interface of the configuration, or one that is just there."""
    mac: str | None = None


Ports: TypeAlias = dict[str, tuple[Interface, Mapping[str, Setting] | None]]


class Names:
    """The interfaces of a configuration by the names that others call them."""

    def __init__(self, interfaces: Iterable[Interface]) -> None:
        self._names: dict[str, Interface] = {}
        self._profiles: dict[str, list[Interface]] = {}
        for interface in interfaces:
            if interface.name in self._names:
                raise FormatError(
                    f"{interface.path}.name: there are two interfaces named {shown(interface.name)}"
                )
            self.add(interface)

    def add(self, interface: Interface) -> None:
        if interface.name in self._names:
            return
        self._names[interface.name] = interface
        if interface.profile and interface.profile != interface.name:
            self._profiles.setdefault(interface.profile, []).append(interface)

    def __iter__(self) -> Iterator[Interface]:
        return iter(self._names.values())

    def find(self, name: str, path: str) -> Interface | None:
        """The interface that is meant by `name` in the field `path`."""
        if name in self._names:
            return self._names[name]
        found = self._profiles.get(name, [])
        if len(found) > 1:
            raise FormatError(
                f"{path}: {shown(name)} is the name of more than one connection; use the interface's name"
            )
        return found[0] if found else None


def wire(interfaces: Iterable[Interface]) -> tuple[list[Wired], Names]:
    """Each interface that gets a file, with what it belongs to; ports that are only named are among them."""
    names = Names(interfaces)
    ports = _attached(names)
    parents = {each.name: _parent(each, names) for each in names if each.parent and each.exists}
    wired: list[Wired] = []
    for each in names:
        if not each.exists:
            continue
        controller, settings = ports.get(each.name, (None, None))
        if controller:
            _check_port(each, controller)
        wired.append(Wired(each, controller, settings, parents.get(each.name), _mac(each, names)))
    _check_order(wired)
    return wired, names


def _attached(names: Names) -> Ports:
    """Controller of each port and its settings there, by the port's name."""
    ports: Ports = {}
    for controller in [each for each in names if each.exists and each.ports]:
        for port in controller.ports or ():
            interface = names.find(port.name, controller.path) or _unsaid(port.name, controller)
            names.add(interface)
            if interface.name in ports:
                both = f"{ports[interface.name][0].name} and {controller.name}"
                raise FormatError(f"{controller.path}: {shown(port.name)} cannot be a port twice, of {both}")
            ports[interface.name] = (controller, port.settings)
    for each in [each for each in names if each.exists and each.controller is not None]:
        if controller_named := _controller(each, names, ports):
            ports.setdefault(each.name, (controller_named, None))
    return ports


def _unsaid(name: str, controller: Interface) -> Interface:
    """A port that nobody described."""
    checked = interface_name(name, f"{controller.path}: port")
    return Interface(path=f"{controller.path}: port {checked}", name=checked, kind=Kind.ETHERNET)


def _controller(port: Interface, names: Names, ports: Ports) -> Interface | None:
    """The controller that a port names itself; it and the controllers' lists cannot say different things."""
    path, listed = f"{port.path}.controller", ports.get(port.name)
    if not port.controller:
        if listed:
            raise FormatError(f"{path}: is empty, but {listed[0].name} has {port.name} among its ports")
        return None
    found = names.find(port.controller, path)
    if found is None or not found.exists or found.kind not in (Kind.BOND, Kind.BRIDGE):
        raise FormatError(f"{path}: there is no bond and no linux-bridge named {shown(port.controller)}")
    if listed[0].name != found.name if listed else found.ports is not None:
        raise FormatError(f"{path}: {found.name} does not have {port.name} among its ports")
    return found


def _check_port(port: Interface, controller: Interface) -> None:
    for ip in (port.ipv4, port.ipv6):
        if ip and ip.enabled:
            raise FormatError(
                f"{port.path}: {port.name} is a port of {controller.name}, so it cannot have addresses"
            )
    if port.wait_ip:
        raise FormatError(
            f"{port.path}.wait-ip: {port.name} is a port of {controller.name}, it has no addresses"
        )


def _parent(vlan: Interface, names: Names) -> Interface | str:
    path = f"{vlan.path}.vlan.base-iface"
    wanted = vlan.parent or ""
    parent = names.find(wanted, path)
    if parent is None:
        return interface_name(wanted, path)
    if parent.state is State.ABSENT and parent.kind is not Kind.ETHERNET and vlan.state is State.UP:
        raise FormatError(f"{path}: {wanted} is absent, nothing can be on it")
    return parent


def _mac(interface: Interface, names: Names) -> str | None:
    if not interface.copy_mac_from:
        return interface.mac
    path = f"{interface.path}.copy-mac-from"
    source = names.find(interface.copy_mac_from, path)
    mac = source and (source.permanent_mac or source.mac)
    if not mac:
        raise FormatError(
            f"{path}: no interface named {shown(interface.copy_mac_from)} has a mac-address to copy"
        )
    return mac


def _check_order(wired: Iterable[Wired]) -> None:
    """A controller stands on its ports, a VLAN on its parent, and nothing on itself."""
    below = TopologicalSorter[str]()
    for each in wired:
        if each.controller:
            below.add(each.controller.name, each.interface.name)
        if each.parent:
            below.add(each.interface.name, each.parent if isinstance(each.parent, str) else each.parent.name)
    try:
        below.prepare()
    except CycleError as error:
        raise FormatError(
            f"interfaces: these stand on each other in a circle: {' on '.join(error.args[1])}"
        ) from None
