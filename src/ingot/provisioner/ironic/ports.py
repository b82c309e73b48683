"""The MAC addresses of a node, which Ironic calls ports.

Ironic finds the host behind a booting ramdisk by them, and a host that boots over the network is served at those that are marked
for it. A port is only ever added; inspection adds the ones it finds itself, and takes the mark off those that the machine did not
boot from: off all, where it was the BMC that was asked. So the mark is set again on the one that the boot MAC address names; a
host that boots from virtual media does without. Ports that were found in order are not asked for again for a while: only an
inspection changes them, or somebody by hand. A MAC address that already belongs to another node is a mistake in somebody's
manifest and said so.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final, NamedTuple

from ingot.provisioner import Access
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.errors import Taken
from ingot.provisioner.ironic.firewall.names import is_ethernet
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.names import host_key
from ingot.provisioner.ironic.nodes import Nodes

IN_ORDER_FOR: Final = 600.0

# Ironic lets the mark be changed here, and answers 409 elsewhere.
_MARKABLE: Final = frozenset({states.ENROLL, states.MANAGEABLE})


async def owner_of(nodes: Nodes, mac: str) -> str:
    """The uuid of the node with this MAC address; "" if there is none."""
    found = await nodes.client.ports(address=mac.lower())
    return found[0].node_uuid if found else ""


def belongs_to_another(mac: str, other: Node) -> str:
    key = host_key(other.name)
    whose = f"the host {key}" if key is not None else other.name or "a node without a name"
    return (
        f"the MAC address {mac} already belongs to {whose} (Ironic node {other.uuid}). "
        "One of the two hosts has the wrong bootMACAddress"
    )


class _Wish(NamedTuple):
    """What decides how the ports of a node should be, and what may have changed them."""

    macs: tuple[tuple[str, bool], ...]
    inspected: datetime | None
    boot_interface: str | None


class InOrder:
    """Nodes whose ports were found, or made, as they should be."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[_Wish, float]] = {}

    def note(self, uuid: str, wish: _Wish) -> None:
        self._found[uuid] = wish, time.monotonic()

    def holds(self, uuid: str, wish: _Wish) -> bool:
        wished, at = self._found.get(uuid, (None, 0.0))
        return wished == wish and time.monotonic() - at < IN_ORDER_FOR

    def forget(self, uuid: str) -> None:
        self._found.pop(uuid, None)

    def forget_all(self) -> None:
        self._found.clear()


async def ensure_ports(nodes: Nodes, node: FullNode, access: Access, in_order: InOrder) -> str:
    """Adds what is missing. "" or the sentence that says why one cannot be added."""
    # What a machine reports of its interfaces can be anything: those of InfiniBand have longer addresses, some have none.
    wanted = {mac.lower(): False for mac in access.nic_macs if is_ethernet(mac)} | (
        {access.boot_mac.lower(): True} if access.boot_mac else {}
    )
    if not wanted:
        return ""
    wish = _Wish(tuple(wanted.items()), node.inspection_finished_at, node.boot_interface)
    if in_order.holds(node.uuid, wish):
        return ""
    found = [] if nodes.is_new(node) else await nodes.client.ports(node_uuid=node.uuid)
    present = {port.address.lower(): port for port in found}
    from_network = "virtual-media" not in (node.boot_interface or "")
    is_marked = True
    for mac, boots in wanted.items():
        if (port := present.get(mac)) is not None:
            if boots and from_network and not port.pxe_enabled:
                if node.provision_state in _MARKABLE:
                    await nodes.client.boot_from_port(port.uuid)
                else:
                    is_marked = False
            continue
        try:
            await nodes.client.create_port(node.uuid, mac, pxe_enabled=boots)
        except Taken:
            owner = await owner_of(nodes, mac)
            if owner and owner != node.uuid:
                return belongs_to_another(mac, await nodes.read(owner) or Node(uuid=owner))
    if is_marked:
        in_order.note(node.uuid, wish)
    return ""
