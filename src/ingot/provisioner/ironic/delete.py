"""Deleting: make Ironic forget the host.

The record goes, the machine stays as it is. Ironic refuses to forget a node in most states unless it is in maintenance,
which is what that is for here. An operation that waits for its ramdisk is ended first; one that cannot be interrupted is
waited for.
"""

from __future__ import annotations

from datetime import datetime

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.decisions import Decision, Step, Wait, progress
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.model import FullNode, Node, remove
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import abort
from ingot.provisioner.protocol import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready

_DELETABLE = (states.ENROLL, states.MANAGEABLE, states.AVAILABLE, states.ADOPT_FAILED)


def decide_delete(node: Node, now: datetime) -> Decision:
    match node.provision_state:
        case states.INSPECT_WAIT | states.CLEAN_WAIT | states.CLEAN_HOLD:
            return Step.ABORT
        case state if states.is_busy(state) and not overdue(node, now):
            return Wait(f"{progress(node)}; Ironic forgets the host as soon as that is over")
    return Step.DELETE


async def delete(nodes: Nodes, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
    async def forget(node: FullNode) -> None:
        if node.provision_state in _DELETABLE and not node.maintenance:
            if node.instance_uuid:
                await nodes.patch(node, [remove("/instance_uuid")])
        elif not node.maintenance:
            await nodes.client.set_maintenance(node.uuid, "The host is deleted; Ingot forgets it.")
        await nodes.client.delete_node(node.uuid)
        nodes.cache.removed(node.uuid)
        nodes.attempts.forget(node.uuid)

    deeds: dict[Step, Deed] = {
        Step.DELETE: guarded(Act.DELETE, permit, forget),
        Step.ABORT: guarded(Act.DELETE, permit, abort(nodes, "ending what Ironic is doing with the host")),
    }
    outcome = await carry_out(
        nodes,
        host,
        lambda node, _: decide_delete(node, nodes.now()),
        deeds,
        again=True,
        under_way=decide_delete,
    )
    if isinstance(outcome, NotRegistered | FullNode):
        return Ready(None)
    return outcome
