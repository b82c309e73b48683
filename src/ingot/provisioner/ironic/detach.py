"""Detaching: make Ironic forget the host, and leave the machine as it is.

Like deleting, but of a host that goes on existing, in any state it may be in. What Ironic is doing is waited for, because a
machine that is cut off in the middle of it is not "as it is". Where that hangs at a ramdisk that does not come up, `force` gives
it up.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.client import ABORTS_DEPLOYMENTS
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.decisions import Decision, Step, progress
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import abort, drop_record

_GIVEN_UP: Final = frozenset(
    {
        states.INSPECT_WAIT,
        states.CLEAN_WAIT,
        states.CLEAN_HOLD,
        states.SERVICE_WAIT,
        states.SERVICE_HOLD,
    }
)
"""What the verb `abort` ends."""
_DEPLOYS: Final = frozenset({states.DEPLOY_WAIT, states.DEPLOY_HOLD})
_WAITS: Final = _GIVEN_UP | _DEPLOYS | {states.RESCUE_WAIT}


def decide_detach(node: Node, now: datetime, *, force: bool, aborts_deployments: bool) -> Decision:
    """`aborts_deployments`: this Ironic can end a deployment without cleaning up behind it."""
    state = node.provision_state
    if not states.is_busy(state) or overdue(node, now):
        return Step.DELETE
    if state not in _WAITS:
        return progress(node, "the host is detached as soon as that is over")
    if not force:
        return progress(
            node,
            "the host is detached as soon as that is over. If its ramdisk does not come up, the detached annotation "
            'with {"force": true} gives it up',
        )
    if state in _GIVEN_UP or (state in _DEPLOYS and aborts_deployments):
        return Step.ABORT
    # No verb ends this without stopping the machine or cleaning its disks. Nobody works on a node that waits, so its record
    # can go as it is.
    return Step.DELETE


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
