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
from ingot.provisioner.ironic.decisions import Decision, Step
from ingot.provisioner.ironic.giving_up import CAN_BE_GIVEN_UP, GIVE_UP
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.rules import Fact, Going, Verb, elsewhere, facts_of, on
from ingot.provisioner.ironic.transitions import abort, drop_record

DETACH: Final = Verb(
    name="detach",
    acts={Step.DELETE: Act.DETACH, Step.ABORT: Act.DETACH},
    rules=(
        on(states.STABLE, then=Step.DELETE),
        elsewhere(states.HOLDS, when=Fact.OVERDUE, then=Step.DELETE),
        on(
            CAN_BE_GIVEN_UP,
            unless=Fact.FORCE,
            then=Going(
                "the host is detached as soon as that is over. If its ramdisk does not come up, the detached annotation "
                'with {"force": true} gives it up'
            ),
        ),
        *GIVE_UP,
        elsewhere(then=Going("the host is detached as soon as that is over")),
    ),
)


async def detach(nodes: Nodes, host: HostRef, *, force: bool, permit: Permit) -> Ready[None] | Busy | Failed:
    aborts_deployments = await nodes.client.version() >= ABORTS_DEPLOYMENTS

    def decide(node: Node, now: datetime) -> Decision:
        order = {Fact.FORCE: force, Fact.ABORTS_DEPLOYMENTS: aborts_deployments}
        return DETACH.decide(node, facts_of(node, now, order))

    async def forget(node: FullNode) -> None:
        await drop_record(nodes, node, "The host is detached; Ingot leaves it alone.")
        nodes.interruptions.progressed(host.key)

    deeds: dict[Step, Deed] = {
        Step.DELETE: forget,
        Step.ABORT: abort(nodes, "giving up what waits for its ramdisk"),
    }
    outcome = await carry_out(
        nodes,
        host,
        DETACH,
        lambda node, _: decide(node, nodes.now()),
        deeds,
        again=True,
        permit=permit,
        under_way=decide,
    )
    return Ready(None) if isinstance(outcome, NotRegistered | FullNode) else outcome
