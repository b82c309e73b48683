"""Nodes that no host owns: given to the host that has their machine now, or removed from Ironic.

Only nodes that Ingot made are concerned: they have a name of ours and, in `extra`, the UID of the host they were made for. All
others belong to somebody else. A node is given to a host that has none, by the MAC address or the BMC that both have; it is
renamed, and registering does the rest, with all its caution about machines in use. Nothing here asks a BMC for anything.

An Ironic that a second Ingot uses as well has nodes that look like that: IRONIC_SHARED says so, and then none is touched.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from ingot.api import bmc
from ingot.provisioner import Act, BackendError, Census, HostRef, KnownHost
from ingot.provisioner.census import Suspects
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.errors import Refused
from ingot.provisioner.ironic.metrics import ORPHANS
from ingot.provisioner.ironic.model import FullNode, Json, Node, PatchOperation, add
from ingot.provisioner.ironic.names import host_key, node_name
from ingot.provisioner.ironic.nodes import Nodes, sight
from ingot.provisioner.ironic.transitions import drop_record

MARK: Final = "ingot_host"
"""In the node's `extra`: the UID of the host that it was made for."""

log = logging.getLogger(__name__)


def made_for(host: HostRef) -> dict[str, Json]:
    """What a new node says of its host."""
    return {MARK: host.uid}


def mark(node: FullNode, host: HostRef) -> list[PatchOperation]:
    """Says of a node that is there already whose it is."""
    return [] if node.extra.get(MARK) == host.uid else [add(f"/extra/{MARK}", host.uid)]


class Orphans:
    """Looks for them whenever all nodes were listed."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._suspects = Suspects()
        self.census: Census | None = None

    async def sweep(self) -> None:
        """What cannot be done now is done after the next list."""
        hosts = self.census.hosts() if self.census is not None else None
        if self.census is None or hosts is None:
            return
        found = _nobodys(self._nodes.cache, hosts, self.census)
        for node in self._suspects.confirmed((node.uuid, node) for node in found):
            try:
                await self._settle(node.uuid, hosts, self.census)
            except Refused as error:
                log.info("the node %s, which no host owns, cannot be removed yet: %s", node.name, error)
            except BackendError as error:
                log.info("nodes that no host owns are looked for again later: %s", error)
                return

    async def _settle(self, uuid: str, hosts: Sequence[KnownHost], census: Census) -> None:
        node = await self._nodes.read(uuid)
        key = host_key(node.name) if node is not None else None
        if node is None or key is None or MARK not in node.extra:
            return
        if states.is_busy(node.provision_state) and not overdue(node, self._nodes.now()):
            # It comes to an end by itself; to be cut off in the middle is not to be left alone.
            return
        if (heir := await self._heir(node, hosts)) is not None:
            log.info("the node %s, which no host owns, is given to %s", node.name, heir.key)
            await self._nodes.patch(node, [add("/name", node_name(heir.key))])
            self._nodes.changes.announce(heir.key)
            ORPHANS.labels("given").inc()
            return
        if (refusal := await census.permit(key)(Act.DELETE, sight(node))) is not None:
            log.info("the node %s is kept: %s", node.name, refusal.why)
            return
        await drop_record(self._nodes, node, "No host owns it; Ingot forgets it.")
        log.info("the node %s (%s) was removed from Ironic: no host owns it", node.name, node.uuid)
        ORPHANS.labels("removed").inc()
        # Whoever has its MAC address or its name now need not wait any longer.
        for host in hosts:
            if not self._has_node(host):
                self._nodes.changes.announce(host.key)

    async def _heir(self, node: FullNode, hosts: Sequence[KnownHost]) -> KnownHost | None:
        without = [host for host in hosts if not self._has_node(host)]
        if not without or node.provision_state not in states.UPDATABLE:
            return None
        macs = {port.address.lower() for port in await self._nodes.client.ports(node_uuid=node.uuid)}
        for host in without:
            if (host.boot_mac and host.boot_mac.lower() in macs) or _has_bmc(host, node):
                return host
        return None

    def _has_node(self, host: KnownHost) -> bool:
        cache = self._nodes.cache
        known = cache.get(host.backend_id) if host.backend_id else None
        return known is not None or cache.by_name(node_name(host.key)) is not None


def _nobodys(nodes: Iterable[Node], hosts: Sequence[KnownHost], census: Census) -> list[Node]:
    """Nodes with a name of ours that no host has, neither by its name nor by what it is registered as."""
    names = {node_name(host.key) for host in hosts}
    ids = {host.backend_id for host in hosts}
    strangers = [node for node in nodes if node.uuid not in ids and node.name not in names]
    return [node for node in strangers if (key := host_key(node.name)) and census.covers(key.namespace)]


def _has_bmc(host: KnownHost, node: FullNode) -> bool:
    """The same controller, and the same machine behind it."""
    try:
        address = bmc.parse(host.address)
    except bmc.InvalidAddress:
        return False
    system = node.driver_info.get("redfish_system_id")
    same = node.bmc_address == address.root
    return same and (system is None or system == address.path)
