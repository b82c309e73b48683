"""Adopting: take over a host that runs already, without touching it.

After Ironic's database is lost a provisioned host is registered anew and ends up `manageable`; Ironic is then told what is
installed and takes it as it is. No power action and no deployment comes of it. What is installed has to be told before,
because a later undeploy looks at it.

A deployment that was cut off at its very end was finished without Ironic (see `unfinished`): the host runs, and Ironic still
calls it a failed deployment. No verb of Ironic leads from there to `active` without a second deployment, so its record is
dropped and the host is registered and taken over like one that Ironic never knew.
"""

from __future__ import annotations

from datetime import datetime

from ingot.api.baremetalhost import Image
from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Retry
from ingot.provisioner.ironic.carrying_out import carry_out
from ingot.provisioner.ironic.decisions import (
    Decision,
    Done,
    Fail,
    Step,
    after_failed_cleaning,
    busy,
    hindrance,
)
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.instance import adoption_differences
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import clear_maintenance, drop_record, manage
from ingot.provisioner.ironic.unfinished import Left, left_to_do


def decide_adopt(node: FullNode, now: datetime, *, ours: bool, again: bool) -> Decision:
    """`ours`: what Ironic has on the node is this host's."""
    if node.provision_state == states.ACTIVE and node.fault == states.POWER_FAULT:
        # It is adopted; that its BMC is away right now is told by the vitals.
        return Done()
    if node.provision_state in states.IN_SERVICE:
        # Only a host that is managed so comes there, and what becomes of it is for `service` to tell.
        return Done()
    if answer := hindrance(node, now):
        return answer
    match node.provision_state:
        case states.ACTIVE:
            return Done()
        case states.MANAGEABLE:
            return Step.ADOPT
        case states.ADOPT_FAILED:
            return Step.ADOPT if again else Fail("Ironic cannot take over the running host")
        case states.INSPECT_FAILED:
            return Step.MANAGE
        case states.DEPLOY_FAILED if ours and left_to_do(node) is not Left.EVERYTHING:
            return Step.FORGET
        case states.CLEAN_FAILED:
            return after_failed_cleaning(node, again=again)
        case states.AVAILABLE if not again:
            return Fail(
                "Ironic has the host as available: somebody has removed what was deployed, past Ingot. Its disks may be empty",
                ask_why=False,
            )
        case states.AVAILABLE:
            return Step.MANAGE
    return Fail(f"the running host cannot be taken over while Ironic has it as {node.provision_state!r}")


async def adopt(
    nodes: Nodes, host: HostRef, installed: Image | None, *, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    def decide(node: FullNode, retry: Retry) -> Decision:
        ours = node.instance_uuid == host.uid
        return decide_adopt(node, nodes.now(), ours=ours, again=retry.allowed)

    async def forget(node: FullNode) -> NotRegistered:
        await drop_record(nodes, node, "The deployment is finished; Ingot registers the host anew.")
        nodes.look_again(host, 0)
        return NotRegistered(
            "Ironic was interrupted at the end of the deployment; the running host is registered anew"
        )

    async def take_over(node: FullNode) -> Busy:
        node = await nodes.patch(node, adoption_differences(node, host, installed))
        await nodes.ask_state(node, "adopt")
        return Busy(states.sentence(states.ADOPTING))

    outcome = await carry_out(
        nodes,
        host,
        decide,
        {
            Step.ADOPT: take_over,
            Step.FORGET: guarded(Act.FORGET, permit, forget),
            Step.MANAGE: manage(nodes),
            Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        },
        again=again,
        under_way=lambda node, now: None if node.provision_state in states.IN_SERVICE else busy(node, now),
    )
    return Ready(None) if isinstance(outcome, FullNode) else outcome
