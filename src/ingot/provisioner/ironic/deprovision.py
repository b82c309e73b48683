"""Deprovisioning: stop what runs on the host and clean its disks, unless cleaning is off.

Ends in `available`, whatever way it goes. A node that holds no instance but was never cleaned is cleaned on the way.
"""

from __future__ import annotations

from datetime import datetime

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Retry
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.decisions import (
    Decision,
    Done,
    Fail,
    Step,
    after_failed_cleaning,
    hindrance,
    progress,
)
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.model import FullNode, Node, add
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import clear_maintenance, manage, provide


def decide_deprovision(node: Node, now: datetime, *, again: bool) -> Decision:
    state = node.provision_state
    if state in (states.DEPLOY_WAIT, states.RESCUE_WAIT, states.SERVICE_WAIT):
        # The ramdisk is running and Ironic listens: it can be ended here, and should be.
        return Step.UNDEPLOY
    if state == states.DEPLOYING and not overdue(node, now):
        return progress(node, "it is ended as soon as Ironic can be interrupted")
    if answer := hindrance(node, now):
        return answer
    match state:
        case states.AVAILABLE:
            return Done()
        case states.MANAGEABLE:
            return Step.PROVIDE
        case states.CLEAN_FAILED:
            return after_failed_cleaning(node, again=again)
        case states.INSPECT_FAILED | states.ADOPT_FAILED:
            return Step.MANAGE
        case states.ERROR if not again:
            return Fail("removing what was deployed failed")
    if state in states.UNDEPLOYABLE:
        return Step.UNDEPLOY
    return Fail(f"the host cannot be deprovisioned while Ironic has it as {state!r}")


async def deprovision(
    nodes: Nodes, host: HostRef, *, automated_cleaning: bool, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    def decide(node: FullNode, retry: Retry) -> Decision:
        return decide_deprovision(node, nodes.now(), again=retry.allowed)

    async def undeploy(node: FullNode) -> Busy:
        node = await _set_cleaning(nodes, node, automated_cleaning)
        await nodes.ask_state(node, "deleted")
        return Busy(states.sentence(states.DELETING))

    async def clean(node: FullNode) -> Busy | Failed | NotRegistered | None:
        node = await _set_cleaning(nodes, node, automated_cleaning)
        return await provide(nodes, automated_cleaning=automated_cleaning)(node)

    deeds: dict[Step, Deed] = {
        Step.UNDEPLOY: guarded(Act.UNDEPLOY, permit, undeploy),
        Step.PROVIDE: guarded(Act.CLEAN, permit, clean),
        Step.MANAGE: manage(nodes),
        Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
    }
    outcome = await carry_out(nodes, host, decide, deeds, again=again, under_way=_under_way)
    return Ready(None) if isinstance(outcome, FullNode) else outcome


def _under_way(node: Node, now: datetime) -> Decision:
    return decide_deprovision(node, now, again=False)


async def _set_cleaning(nodes: Nodes, node: FullNode, automated_cleaning: bool) -> FullNode:
    """The setting counts at the moment cleaning starts; a node that waits for its ramdisk cannot be changed and keeps its own."""
    if node.provision_state not in states.UPDATABLE or node.automated_clean == automated_cleaning:
        return node
    return await nodes.patch(node, [add("/automated_clean", automated_cleaning)])
