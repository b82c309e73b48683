"""The top level of a desired state: interfaces, routes, rules, the resolver.

What `running` holds is what nmstate found on some machine, and asks for nothing; it is passed over. A host name is refused:
keyfiles have no room for one, and who wrote it should hear that it would not arrive.
"""

from __future__ import annotations

from ingot.formats.network.document import Value
from ingot.formats.network.model import Wanted
from ingot.formats.network.nmstate.interfaces import read_interface
from ingot.formats.network.nmstate.resolver import read_resolver
from ingot.formats.network.nmstate.routes import read_route
from ingot.formats.network.nmstate.rules import read_rules
from ingot.formats.network.reading import Fields


def wanted_of_nmstate(document: Value) -> Wanted:
    state = Fields(document, "")
    state.passed_over("description")
    interfaces = tuple(read_interface(fields) for fields in state.each("interfaces"))
    routes = state.fields("routes")
    rules = state.fields("route-rules")
    wanted = Wanted(
        interfaces=interfaces,
        routes=tuple(route for fields in routes.each("config") if (route := read_route(fields)))
        if routes
        else (),
        rules=read_rules(rules.each("config")) if rules else (),
        resolver=read_resolver(state.fields("dns-resolver")),
    )
    if routes:
        routes.passed_over("running")
        routes.done()
    if rules:
        rules.done()
    if hostname := state.fields("hostname"):
        hostname.passed_over("running")
        if "config" in hostname:
            hostname.refuse(
                "config", "a keyfile cannot carry a host name; give it to the machine another way"
            )
        hostname.done()
    state.done()
    return wanted
