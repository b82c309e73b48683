"""The deeds that several verbs share: one request for a change of state each."""

from __future__ import annotations

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.carrying_out import Deed
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.protocol import Busy


def clear_maintenance(nodes: Nodes) -> Deed:
    async def deed(node: FullNode) -> None:
        await nodes.client.clear_maintenance(node.uuid)
        nodes.cache.doubt(node.uuid)

    return deed


def manage(nodes: Nodes) -> Deed:
    """Back to `manageable`. From every state but `enroll` this is a change of the record only, and done at once."""

    async def deed(node: FullNode) -> None:
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


def abort(nodes: Nodes, why: str) -> Deed:
    async def deed(node: FullNode) -> Busy:
        await nodes.client.set_provision_state(node.uuid, "abort")
        nodes.cache.doubt(node.uuid)
        return Busy(why)

    return deed
