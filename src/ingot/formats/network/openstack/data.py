"""The top level of network_data.json."""

from __future__ import annotations

from ingot.formats.network.document import Value
from ingot.formats.network.model import Wanted
from ingot.formats.network.openstack.links import Link, interfaces_of
from ingot.formats.network.openstack.networks import Networks
from ingot.formats.network.reading import Fields


def wanted_of_network_data(document: Value) -> Wanted:
    data = Fields(document, "")
    interfaces, names = interfaces_of([Link(fields) for fields in data.each("links")])
    networks = Networks(names)
    networks.services(data)
    for fields in data.each("networks"):
        networks.network(fields)
    data.done()
    return Wanted(
        interfaces=tuple(networks.with_addresses(each) for each in interfaces),
        routes=tuple(networks.routes),
        resolver=networks.resolver(),
    )
