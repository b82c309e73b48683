"""Adopting: take over a host that runs already, without touching it.

After Ironic's database is lost a provisioned host is registered anew and ends up `manageable`; Ironic is then told what is
installed and takes it as it is. No power action and no deployment comes of it. What is installed has to be told before,
because a later undeploy looks at it.
"""

from __future__ import annotations

from datetime import datetime

from ingot.api.baremetalhost import Image
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.carrying_out import carry_out
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, after_failed_cleaning, hindrance
from ingot.provisioner.ironic.instance import image_info
from ingot.provisioner.ironic.model import FullNode, Node, add
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import clear_maintenance, manage
from ingot.provisioner.protocol import Busy, Failed, HostRef, NotRegistered, Ready


def decide_adopt(node: Node, now: datetime, *, again: bool) -> Decision:
    if node.provision_state == states.ACTIVE and node.fault == states.POWER_FAULT:
        # It is adopted; that its BMC is away right now is told by the vitals.
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
    nodes: Nodes, host: HostRef, installed: Image | None, *, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    def decide(node: FullNode, may_retry: bool) -> Decision:
        return decide_adopt(node, nodes.now(), again=may_retry)

    async def take_over(node: FullNode) -> Busy:
        told = image_info(installed) if installed is not None and installed.url else {}
        patch = [
            add(f"/instance_info/{key}", value)
            for key, value in told.items()
            if node.instance_info.get(key) != value
        ]
        if node.instance_uuid != host.uid:
            patch.append(add("/instance_uuid", host.uid))
        node = await nodes.patch(node, patch)
        await nodes.ask_state(node, "adopt")
        return Busy(states.sentence(states.ADOPTING))

    outcome = await carry_out(
        nodes,
        host,
        decide,
        {
            Step.ADOPT: take_over,
            Step.MANAGE: manage(nodes),
            Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        },
        again=again,
    )
    return Ready(None) if isinstance(outcome, FullNode) else outcome
