"""Deleting: make Ironic forget the host.

The record goes, the machine stays as it is. An operation that waits for its ramdisk is ended first; one that cannot be
interrupted is waited for.
"""

from __future__ import annotations

from datetime import datetime

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.client import ABORTS_DEPLOYMENTS
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.decisions import Decision, Step, progress
from ingot.provisioner.ironic.giving_up import can_be_given_up, give_up
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import abort, drop_record


def decide_delete(node: Node, now: datetime, *, aborts_deployments: bool) -> Decision:
    if not states.is_busy(node.provision_state) or overdue(node, now):
        return Step.DELETE
    if can_be_given_up(node):
        return give_up(node, aborts_deployments=aborts_deployments)
    return progress(node, "Ironic forgets the host as soon as that is over")


async def delete(nodes: Nodes, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
    aborts_deployments = await nodes.client.version() >= ABORTS_DEPLOYMENTS

    def decide(node: Node, now: datetime) -> Decision:
        return decide_delete(node, now, aborts_deployments=aborts_deployments)

    async def forget(node: FullNode) -> None:
        await drop_record(nodes, node, "The host is deleted; Ingot forgets it.")
        nodes.interruptions.progressed(host.key)

    deeds: dict[Step, Deed] = {
        Step.DELETE: guarded(Act.DELETE, permit, forget),
        Step.ABORT: guarded(Act.DELETE, permit, abort(nodes, "ending what Ironic is doing with the host")),
    }
    outcome = await carry_out(
        nodes,
        host,
        lambda node, _: decide(node, nodes.now()),
        deeds,
        again=True,
        under_way=decide,
    )
    if isinstance(outcome, NotRegistered | FullNode):
        return Ready(None)
    return outcome
