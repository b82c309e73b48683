"""What is wanted of a machine's network, in the words of nmstate; both languages that are read end here.

Values in it are checked, references between interfaces are not: `wiring` resolves them, `connections` writes the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ingot.formats.network.keyfile import Setting
from ingot.formats.network.values import Address, Network

MAIN_TABLE: Final = 254
HIGHEST: Final = 2**32 - 1
FOREVER: Final = 2**31 - 1
"""Seconds after which NetworkManager gives up waiting for an answer: never."""


class Kind(StrEnum):
    """The kinds of interfaces that are understood; the words go into the identity of a connection."""

    ETHERNET = "ethernet"
    BOND = "bond"
    VLAN = "vlan"
    BRIDGE = "linux-bridge"
    DUMMY = "dummy"
    LOOPBACK = "loopback"


class State(StrEnum):
    UP = "up"
    DOWN = "down"
    ABSENT = "absent"
    IGNORE = "ignore"


class Identifier(StrEnum):
    """How NetworkManager finds the device of an interface."""

    NAME = "name"
    MAC = "mac-address"
    PCI = "pci-address"


class Method(StrEnum):
    AUTO = "auto"
    DHCP = "dhcp"
    MANUAL = "manual"
    LINK_LOCAL = "link-local"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ip:
    """One of the two address families of an interface."""

    enabled: bool
    method: Method
    addresses: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def automatic(self) -> bool:
        return self.method in (Method.AUTO, Method.DHCP)

    @property
    def addressed(self) -> bool:
        """Whether it has addresses, fixed or automatic: routes and name servers need them."""
        return self.automatic or self.method is Method.MANUAL

    @property
    def wants_servers(self) -> bool:
        """Whether it has no name servers of its own."""
        return self.method is Method.MANUAL or (
            self.automatic and self.settings.get("ignore-auto-dns") is True
        )

    @property
    def table(self) -> int:
        """The routing table that its automatic routes go to."""
        table = self.settings.get("route-table") or MAIN_TABLE
        return int(table) if not isinstance(table, tuple) else MAIN_TABLE


@dataclass(frozen=True, slots=True)
class Port:
    """A port as its controller describes it."""

    name: str
    settings: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    path: str
    name: str
    kind: Kind
    state: State = State.UP
    identifier: Identifier = Identifier.NAME
    profile: str | None = None
    description: str | None = None
    mac: str | None = None
    permanent_mac: str | None = None
    copy_mac_from: str | None = None
    pci: str | None = None
    mtu: int | None = None
    lldp: bool | None = None
    wait_ip: str | None = None
    controller: str | None = None
    """The controller that the port itself names; empty: none."""
    ipv4: Ip | None = None
    ipv6: Ip | None = None
    link: Mapping[str, Setting] = field(default_factory=dict)
    """Settings of the Ethernet layer beside MAC address and MTU."""
    own: Mapping[str, Setting] = field(default_factory=dict)
    """Settings of this kind of interface."""
    ports: tuple[Port, ...] | None = None
    parent: str | None = None

    def ip(self, version: int) -> Ip | None:
        return self.ipv4 if version == 4 else self.ipv6

    @property
    def id(self) -> str:
        """The name of its connection."""
        return self.profile or self.name

    @property
    def exists(self) -> bool:
        return self.state in (State.UP, State.DOWN)


LOOPBACK: Final = Interface(
    path="lo",
    name="lo",
    kind=Kind.LOOPBACK,
    ipv4=Ip(enabled=True, method=Method.MANUAL, addresses=("127.0.0.1/8",)),
    ipv6=Ip(enabled=True, method=Method.MANUAL, addresses=("::1/128",), settings={"addr-gen-mode": 0}),
)
"""Where routes that lead nowhere are kept, and rules that no interface can hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    path: str
    destination: Network
    interface: str | None
    """None for a route that leads nowhere on purpose."""
    gateway: Address | None = None
    metric: int | None = None
    table: int = MAIN_TABLE
    options: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    path: str
    version: int
    priority: int
    source: Network | None = None
    target: Network | None = None
    table: int = MAIN_TABLE
    interface: str | None = None
    suppress: int | None = None
    action: str | None = None
    mark: int | None = None
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """A name server; one with a link-local address is reached through an interface."""

    address: Address
    interface: str | None
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    servers: tuple[Server, ...] = ()
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A whole network configuration."""

    interfaces: tuple[Interface, ...] = ()
    routes: tuple[Route, ...] = ()
    rules: tuple[Rule, ...] = ()
    resolver: Resolver = Resolver()
