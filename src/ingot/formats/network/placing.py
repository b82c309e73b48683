"""Which interface keeps what: routes, rules and name servers have no file of their own.

Owns the choice, which is nmstate's: a route goes to the interface it leads out of; a rule to the interface it names, else to one
with a route in the table that it points to, else to the first one with addresses; name servers to the first interface that
has fixed addresses, else to the first with automatic ones; the domains to search in go with the first server. Where nmstate
picks among several that are as good by chance, the first by name is taken. Unlike nmstate, an interface whose address family
is disabled, or that is down, keeps nothing: there it would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import (
    LOOPBACK,
    Identifier,
    Resolver,
    Route,
    Rule,
    Server,
    State,
    Wanted,
)
from ingot.formats.network.routing import route_settings, rule_settings
from ingot.formats.network.telling import shown
from ingot.formats.network.values import written
from ingot.formats.network.wiring import Names, Wired, wire

_FIRST_SERVERS, _OTHER_SERVERS = 40, 50


@dataclass(slots=True)
class Placed:
    """An interface and what it keeps."""

    wired: Wired
    routes: list[Route] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    servers: dict[int, dict[str, Setting]] = field(default_factory=dict)

    def holds(self, version: int) -> bool:
        """Whether it is up and has this address family."""
        ip = self.wired.interface.ip(version)
        return bool(
            ip and ip.enabled and self.wired.interface.state is State.UP and not self.wired.controller
        )

    def settings(self, version: int) -> dict[str, Setting]:
        """What it keeps of this address family, as the section of the family in its keyfile has it."""
        routes = [route for route in self.routes if route.destination.version == version]
        rules = [rule for rule in self.rules if rule.version == version]
        return self.servers.get(version, {}) | route_settings(routes) | rule_settings(rules)

    def tables(self, version: int) -> set[int]:
        """The routing tables that it has routes in."""
        ip = self.wired.interface.ip(version)
        automatic = {ip.table} if ip else set[int]()
        return automatic | {route.table for route in self.routes if route.destination.version == version}


def place(wanted: Wanted) -> list[Placed]:
    wired, names = wire(wanted.interfaces)
    places = {each.interface.name: Placed(each) for each in wired}
    places[LOOPBACK.name] = Placed(Wired(LOOPBACK))
    for route in wanted.routes:
        _route_place(route, places, names).routes.append(route)
    choices = {version: _Choices(places, version) for version in (4, 6)}
    for rule in wanted.rules:
        _rule_place(rule, places, names, choices).rules.append(rule)
    _place_servers(wanted.resolver, places, names)
    loopback = places.pop(LOOPBACK.name)
    return [*places.values(), *([loopback] if loopback.routes or loopback.rules else [])]


def _route_place(route: Route, places: dict[str, Placed], names: Names) -> Placed:
    if route.interface is None or route.interface == LOOPBACK.name:
        return places[LOOPBACK.name]
    path, version = f"{route.path}.next-hop-interface", route.destination.version
    found = names.find(route.interface, path)
    if found is None or found.state is not State.UP:
        raise FormatError(f"{path}: there is no interface {shown(route.interface)} that is up")
    place = places[found.name]
    ip = found.ip(version)
    if not place.holds(version) or not ip:
        raise FormatError(f"{path}: IPv{version} is not enabled on {found.name}")
    if not ip.addressed:
        raise FormatError(f"{path}: {found.name} has no IPv{version} address that the route could start from")
    return place


def _rule_place(rule: Rule, places: dict[str, Placed], names: Names, choices: dict[int, _Choices]) -> Placed:
    if rule.interface is not None:
        path = f"{rule.path}.iif"
        found = LOOPBACK if rule.interface == LOOPBACK.name else names.find(rule.interface, path)
        if found is None or found.name not in places or not places[found.name].holds(rule.version):
            raise FormatError(f"{path}: there is no interface {shown(rule.interface)} with IPv{rule.version}")
        if found.identifier is not Identifier.NAME or found.name != rule.interface:
            raise UnsupportedFormat(
                f"{path}: {found.id} is not found by its name, so the rule cannot name it"
            )
        return places[found.name]
    return choices[rule.version].of(rule.table)


class _Choices:
    """Which interface keeps rules of one address family that name none, by the table that they point to."""

    def __init__(self, places: dict[str, Placed], version: int) -> None:
        able = [place for place in places.values() if place.holds(version)]
        self._usual: Final = able[0]
        self._by_table: Final = dict[int, Placed]()
        # The loopback interface is the last resort, unless it is used already.
        named = sorted(able, key=lambda place: place.wired.interface.name)
        used = [place for place in named if place.routes or place.wired.interface is not LOOPBACK]
        for place in sorted(used, key=lambda place: not place.routes):
            for table in place.tables(version):
                self._by_table.setdefault(table, place)

    def of(self, table: int) -> Placed:
        return self._by_table.get(table, self._usual)


def _place_servers(resolver: Resolver, places: dict[str, Placed], names: Names) -> None:
    candidates = [place for name, place in places.items() if name != LOOPBACK.name]
    if not resolver.servers:
        if resolver.search or resolver.options:
            place, version = _searching(candidates)
            place.servers[version] = _servers((), resolver, _FIRST_SERVERS)
        return
    first = resolver.servers[0].address.version
    order = [server.address.version for server in resolver.servers]
    if order != sorted(order, reverse=first == 6):
        raise UnsupportedFormat(
            "dns-resolver.config.server: IPv4 and IPv6 servers are kept apart, so all of one kind have to stand before the other"
        )
    for version in dict.fromkeys(order):
        servers = [server for server in resolver.servers if server.address.version == version]
        place = _server_place(servers, version, candidates, places, names)
        rest = resolver if version == first else Resolver()
        place.servers[version] = _servers(
            servers, rest, _FIRST_SERVERS if version == first else _OTHER_SERVERS
        )


def _servers(servers: Iterable[Server], resolver: Resolver, priority: int) -> dict[str, Setting]:
    return {
        "dns": tuple(written(server.address) for server in servers),
        "dns-search": resolver.search,
        "dns-options": resolver.options,
        "dns-priority": priority,
    }


def _server_place(
    servers: Sequence[Server],
    version: int,
    candidates: Sequence[Placed],
    places: dict[str, Placed],
    names: Names,
) -> Placed:
    zones = {server.interface: server.path for server in servers if server.interface}
    if len(zones) > 1:
        raise UnsupportedFormat(
            f"{servers[0].path}: link-local servers on more than one interface are not supported"
        )
    for zone, path in zones.items():
        found = names.find(zone, path)
        if found is None or found.name not in places or not _takes(places[found.name], version):
            raise FormatError(f"{path}: there is no interface {shown(zone)} with IPv6 addresses")
        return places[found.name]
    able = [place for place in candidates if _takes(place, version)]
    for place in able:
        ip = place.wired.interface.ip(version)
        if ip and ip.wants_servers:
            return place
    if not able:
        raise FormatError(
            f"{servers[0].path}: no interface has IPv{version} addresses, none can keep this name server"
        )
    return able[0]


def _takes(place: Placed, version: int) -> bool:
    ip = place.wired.interface.ip(version)
    return place.holds(version) and bool(ip and ip.addressed)


def _searching(candidates: Sequence[Placed]) -> tuple[Placed, int]:
    """Where domains go without a server: to the first automatic addresses, else to the first there are."""
    able = [(place, version) for place in candidates for version in (6, 4) if _takes(place, version)]
    for place, version in able:
        ip = place.wired.interface.ip(version)
        if ip and ip.automatic:
            return place, version
    if not able:
        raise FormatError("dns-resolver.config.search: no interface has addresses, none can keep it")
    return able[0]
