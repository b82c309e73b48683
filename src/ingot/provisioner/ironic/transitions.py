"""The deeds that several verbs share: one request for a change of state each."""

from __future__ import annotations

from typing import Final

from ingot.provisioner import Busy
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.begun import struck_when_managed
from ingot.provisioner.ironic.carrying_out import Deed
from ingot.provisioner.ironic.model import FullNode, remove
from ingot.provisioner.ironic.nodes import Nodes


def clear_maintenance(nodes: Nodes) -> Deed:
    async def deed(node: FullNode) -> None:
        await nodes.client.clear_maintenance(node.uuid)
        nodes.cache.doubt(node.uuid)

    return deed


def manage(nodes: Nodes) -> Deed:
    """Back to `manageable`. From every state but `enroll` this is a change of the record only, and done at once."""

    async def deed(node: FullNode) -> None:
        await nodes.patch(node, struck_when_managed(node))
        await nodes.client.set_provision_state(node.uuid, "manage")
        nodes.cache.doubt(node.uuid)

    return deed


def provide(nodes: Nodes, *, automated_cleaning: bool | None = None) -> Deed:
    """To `available`, through cleaning unless that is off."""

    async def deed(node: FullNode) -> Busy:
        cleans = node.automated_clean is not False if automated_cleaning is None else automated_cleaning
        await nodes.ask_state(node, "provide")
        return Busy(
            f"{states.sentence(states.CLEANING)} before the host can be used"
            if cleans
            else "making the host available"
        )

    return deed


_DELETABLE: Final = (states.ENROLL, states.MANAGEABLE, states.AVAILABLE, states.ADOPT_FAILED)


async def drop_record(nodes: Nodes, node: FullNode, why: str) -> None:
    """Ironic's record goes, and the machine stays as it is: no call to its BMC comes of this.

    Ironic refuses to forget a node in most states unless it is in maintenance, which is what that is for here.
    """
    if node.provision_state in _DELETABLE and not node.maintenance:
        if node.instance_uuid:
            await nodes.patch(node, [remove("/instance_uuid")])
    elif not node.maintenance:
        await nodes.client.set_maintenance(node.uuid, why)
    await nodes.client.delete_node(node.uuid)
    nodes.cache.removed(node.uuid)
    nodes.attempts.forget(node.uuid)


def abort(nodes: Nodes, why: str) -> Deed:
    async def deed(node: FullNode) -> Busy:
        await nodes.client.set_provision_state(node.uuid, "abort")
        nodes.cache.doubt(node.uuid)
        return Busy(why)

    return deed
