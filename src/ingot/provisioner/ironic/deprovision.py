"""Deprovisioning: stop what runs on the host and clean its disks, unless cleaning is off.

Ends in `available`, whatever way it goes. A node that holds no instance but was never cleaned is cleaned on the way.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Retry
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step
from ingot.provisioner.ironic.model import FullNode, Node, add
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.rules import (
    HINDRANCES,
    Fact,
    Going,
    Verb,
    after_failed_cleaning,
    facts_of,
    on,
)
from ingot.provisioner.ironic.transitions import clear_maintenance, manage, provide

DEPROVISION: Final = Verb(
    name="deprovision",
    acts={
        Step.UNDEPLOY: Act.UNDEPLOY,
        Step.PROVIDE: Act.CLEAN,
        # A running host that could not be adopted is cleaned after this, and nobody could tell any more what it was.
        Step.MANAGE: Act.UNDEPLOY,
    },
    rules=(
        # The ramdisk is running and Ironic listens: it can be ended here, and should be.
        on(states.DEPLOY_WAIT, states.RESCUE_WAIT, states.SERVICE_WAIT, then=Step.UNDEPLOY),
        on(
            states.DEPLOYING,
            unless=Fact.OVERDUE,
            then=Going("it is ended as soon as Ironic can be interrupted"),
        ),
        *HINDRANCES,
        on(states.AVAILABLE, then=Done()),
        on(states.MANAGEABLE, then=Step.PROVIDE),
        *after_failed_cleaning(),
        on(states.INSPECT_FAILED, states.ADOPT_FAILED, then=Step.MANAGE),
        on(states.ERROR, unless=Fact.TOLD, then=Fail("removing what was deployed failed")),
        on(states.UNDEPLOYABLE, then=Step.UNDEPLOY),
    ),
)


async def deprovision(
    nodes: Nodes, host: HostRef, *, automated_cleaning: bool, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    def decide(node: FullNode, retry: Retry) -> Decision:
        return _decide(node, nodes.now(), told=retry.allowed)

    async def undeploy(node: FullNode) -> Busy:
        node = await _set_cleaning(nodes, node, automated_cleaning)
        await nodes.ask_state(node, "deleted")
        return Busy(states.sentence(states.DELETING))

    async def clean(node: FullNode) -> Busy | Failed | NotRegistered | None:
        node = await _set_cleaning(nodes, node, automated_cleaning)
        return await provide(nodes, automated_cleaning=automated_cleaning)(node)

    deeds: dict[Step, Deed] = {
        Step.UNDEPLOY: undeploy,
        Step.PROVIDE: clean,
        Step.MANAGE: manage(nodes),
        Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
    }
    outcome = await carry_out(
        nodes, host, DEPROVISION, decide, deeds, again=again, permit=permit, under_way=_under_way
    )
    return Ready(None) if isinstance(outcome, FullNode) else outcome


def _decide(node: Node, now: datetime, *, told: bool) -> Decision:
    return DEPROVISION.decide(node, facts_of(node, now, {Fact.TOLD: told}))


def _under_way(node: Node, now: datetime) -> Decision:
    return _decide(node, now, told=False)


async def _set_cleaning(nodes: Nodes, node: FullNode, automated_cleaning: bool) -> FullNode:
    """The setting counts at the moment cleaning starts; a node that waits for its ramdisk cannot be changed and keeps its own."""
    if node.provision_state not in states.UPDATABLE or node.automated_clean == automated_cleaning:
        return node
    return await nodes.patch(node, [add("/automated_clean", automated_cleaning)])
