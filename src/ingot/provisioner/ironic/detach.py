"""Detaching: make Ironic forget the host, and leave the machine as it is.

Like deleting, but of a host that goes on existing, in any state it may be in. What Ironic is doing is waited for, because a
machine that is cut off in the middle of it is not "as it is". Where that hangs at a ramdisk that does not come up, `force` gives
it up.
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


def decide_detach(node: Node, now: datetime, *, force: bool, aborts_deployments: bool) -> Decision:
    if not states.is_busy(node.provision_state) or overdue(node, now):
        return Step.DELETE
    if not can_be_given_up(node):
        return progress(node, "the host is detached as soon as that is over")
    if not force:
        return progress(
            node,
            "the host is detached as soon as that is over. If its ramdisk does not come up, the detached annotation "
            'with {"force": true} gives it up',
        )
    return give_up(node, aborts_deployments=aborts_deployments)


async def detach(nodes: Nodes, host: HostRef, *, force: bool, permit: Permit) -> Ready[None] | Busy | Failed:
    aborts_deployments = await nodes.client.version() >= ABORTS_DEPLOYMENTS

    def decide(node: Node, now: datetime) -> Decision:
        return decide_detach(node, now, force=force, aborts_deployments=aborts_deployments)

    async def forget(node: FullNode) -> None:
        await drop_record(nodes, node, "The host is detached; Ingot leaves it alone.")
        nodes.interruptions.progressed(host.key)

    deeds: dict[Step, Deed] = {
        Step.DELETE: guarded(Act.DETACH, permit, forget),
        Step.ABORT: guarded(Act.DETACH, permit, abort(nodes, "giving up what waits for its ramdisk")),
    }
    outcome = await carry_out(
        nodes, host, lambda node, _: decide(node, nodes.now()), deeds, again=True, under_way=decide
    )
    return Ready(None) if isinstance(outcome, NotRegistered | FullNode) else outcome
