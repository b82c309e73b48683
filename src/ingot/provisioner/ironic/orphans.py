"""Nodes that no host owns: given to the host that has their machine now, or removed from Ironic.

Only nodes that Ingot made are concerned: they have a name of ours and, in `extra`, the UID of the host they were made for. All
others belong to somebody else. A node is given to a host that has none, by the MAC address or the BMC that both have; it is
renamed, and registering does the rest, with all its caution about machines in use. A node that holds an instance is kept: should
its host come back without its status, the node is all that tells that a system runs there. Nothing here asks a BMC for anything.

An Ironic that a second Ingot uses as well has nodes that look like that: IRONIC_SHARED says so, and then none is touched.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from ingot.api import bmc
from ingot.provisioner import Act, BackendError, Census, HostRef, KnownHost
from ingot.provisioner.census import ORPHANED_AFTER, Suspects
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
MOST_AT_ONCE: Final = 20
"""Nodes that are settled after one list. The others have their turn after the next ones."""

MOST_NAMED: Final = 5
REMOVE: Final = (
    "Where nobody needs one: `baremetal node maintenance set UUID`, then `baremetal node delete UUID`, which leaves the machine "
    "alone; to have it as a host again, create the host with spec.externallyProvisioned"
)
"""What a person does about a node that is kept."""

log = logging.getLogger(__name__)


def made_for(host: HostRef) -> dict[str, Json]:
    """What a new node says of its host."""
    return {MARK: host.uid}


def mark(node: FullNode, host: HostRef) -> list[PatchOperation]:
    """Says of a node that is there already whose it is."""
    return [] if node.extra.get(MARK) == host.uid else [add(f"/extra/{MARK}", host.uid)]


class Orphans:
    """Looks for them whenever all nodes were listed."""

    def __init__(self, nodes: Nodes, after: float = ORPHANED_AFTER) -> None:
        self._nodes = nodes
        self._suspects = Suspects(after)
        self._sweeps = 0
        self._settled: dict[str, int] = {}
        self._foreign: set[str] = set()
        """Without our mark, as was read once."""
        self._kept: set[str] = set()
        self.census: Census | None = None

    @property
    def notice(self) -> str:
        """What is kept and needs a person, as a sentence; "" while there is nothing."""
        # Whatever was removed meanwhile is not in the cache any more.
        kept = [node for uuid in sorted(self._kept) if (node := self._nodes.cache.get(uuid)) is not None]
        if not kept:
            return ""
        named = ", ".join(f"{node.name} ({node.uuid}, {node.provision_state})" for node in kept[:MOST_NAMED])
        more = f" and {len(kept) - MOST_NAMED} more" if len(kept) > MOST_NAMED else ""
        found = f"Ironic has nodes that no host owns, and a system may run on their machines: {named}{more}"
        return f"{found}. They are kept. {REMOVE}"

    async def sweep(self) -> None:
        """What cannot be done now is done after the next list."""
        hosts = self.census.hosts() if self.census is not None else None
        if self.census is None or not hosts:
            # An API without any host is one that was emptied or is being restored.
            return
        found = {node.uuid: node for node in _nobodys(self._nodes.cache, hosts, self.census)}
        self._forget_all_but(found)
        confirmed = self._suspects.confirmed(
            (uuid, node) for uuid, node in found.items() if uuid not in self._foreign
        )
        for node in self._whose_turn_it_is(confirmed):
            try:
                await self._settle(node.uuid, hosts, self.census)
            except Refused as error:
                log.info("the node %s, which no host owns, cannot be removed yet: %s", node.name, error)
            except BackendError as error:
                log.info("nodes that no host owns are looked for again later: %s", error)
                return

    async def _settle(self, uuid: str, hosts: Sequence[KnownHost], census: Census) -> None:
        node = await self._nodes.read(uuid, within=0)
        key = host_key(node.name) if node is not None else None
        if node is None or key is None:
            return
        if MARK not in node.extra:
            self._foreign.add(uuid)
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
        if node.provision_state in states.HOLDS_INSTANCE:
            self._keep(node)
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

    def _keep(self, node: FullNode) -> None:
        if node.uuid in self._kept:
            return
        self._kept.add(node.uuid)
        log.warning(
            "the node %s (%s), which no host owns, is kept: it is %s, and a system may run on its machine. %s",
            node.name,
            node.uuid,
            node.provision_state,
            REMOVE,
        )
        ORPHANS.labels("kept").inc()

    def _whose_turn_it_is(self, nodes: Iterable[Node]) -> list[Node]:
        """Those first that waited longest, so that what stays for good does not stand in the way of the rest."""
        self._sweeps += 1
        turn = sorted(nodes, key=lambda node: self._settled.get(node.uuid, 0))[:MOST_AT_ONCE]
        self._settled.update((node.uuid, self._sweeps) for node in turn)
        return turn

    def _forget_all_but(self, found: Collection[str]) -> None:
        """What has an owner meanwhile, or is gone, is looked at anew should it be found again."""
        self._foreign.intersection_update(found)
        self._kept.intersection_update(found)
        self._settled = {uuid: sweep for uuid, sweep in self._settled.items() if uuid in found}

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
