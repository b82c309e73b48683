"""Deleting: make Ironic forget the host.

The record goes, the machine stays as it is. An operation that waits for its ramdisk is ended first; one that cannot be
interrupted is waited for.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.client import ABORTS_DEPLOYMENTS
from ingot.provisioner.ironic.decisions import Decision, Step
from ingot.provisioner.ironic.giving_up import GIVE_UP
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.rules import Fact, Going, Verb, elsewhere, facts_of, on
from ingot.provisioner.ironic.transitions import abort, drop_record

DELETE: Final = Verb(
    name="delete",
    acts={Step.DELETE: Act.DELETE, Step.ABORT: Act.DELETE},
    rules=(
        on(states.STABLE, then=Step.DELETE),
        elsewhere(states.HOLDS, when=Fact.OVERDUE, then=Step.DELETE),
        *GIVE_UP,
        elsewhere(then=Going("Ironic forgets the host as soon as that is over")),
    ),
)


async def delete(nodes: Nodes, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
    aborts_deployments = await nodes.client.version() >= ABORTS_DEPLOYMENTS

    def decide(node: Node, now: datetime) -> Decision:
        return DELETE.decide(node, facts_of(node, now, {Fact.ABORTS_DEPLOYMENTS: aborts_deployments}))

    async def forget(node: FullNode) -> None:
        await drop_record(nodes, node, "The host is deleted; Ingot forgets it.")
        nodes.interruptions.progressed(host.key)

    deeds: dict[Step, Deed] = {
        Step.DELETE: forget,
        Step.ABORT: abort(nodes, "ending what Ironic is doing with the host"),
    }
    outcome = await carry_out(
        nodes,
        host,
        DELETE,
        lambda node, _: decide(node, nodes.now()),
        deeds,
        again=True,
        permit=permit,
        under_way=decide,
    )
    if isinstance(outcome, NotRegistered | FullNode):
        return Ready(None)
    return outcome
