"""The rules for an Ironic and its database: the table of all of them.

    databases      the database, the two spellings, versions, names of what is referred to
    networks       addresses, external URLs, keepalived, the exporter
    dhcp           the addresses that are given out
    overrides      ramdisks and options that a user brings along
    switching      the networks of the networking service

Where Ingot can do more than others, it refuses less: DHCP works with high availability, which needs no feature gate, and a range
follows from its network.
"""

from __future__ import annotations

from typing import Final

from ingot.api.admission.ironic import databases, dhcp, networks, overrides, switching
from ingot.api.admission.rules import Rules
from ingot.api.ironic import Ironic
from ingot.api.ironicdatabase import IronicDatabase

IRONIC: Final = Rules(
    Ironic,
    (
        databases.shared_database,
        databases.whole_database,
        databases.database_host,
        databases.spellings,
        databases.authorities,
        databases.referred_names,
        databases.version,
        networks.host_network,
        networks.addresses,
        networks.interfaces,
        networks.external_addresses,
        networks.own_address,
        networks.address_manager,
        networks.keepalived,
        networks.exporter,
        networks.insecure_rpc,
        dhcp.dhcp,
        dhcp.raw_lines,
        overrides.agent_images,
        overrides.extra_config,
        overrides.ramdisk,
        switching.provider_networks,
    ),
    (databases.same_database,),
)
IRONIC_DATABASE: Final = Rules(IronicDatabase, (databases.database_spellings, databases.database_names))
