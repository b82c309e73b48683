"""Inspecting: what is the machine made of?

The ramdisk is booted, looks around and reports; for fast inspection the BMC is asked instead. What was found once stays with
Ironic until it is asked to look again; each such request has a name and is begun once (see `begun`). Booting the ramdisk stops
whatever runs on the machine, so the permit is asked as for a power off.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.provisioner import (
    BEGIN_ANEW,
    Act,
    Busy,
    Failed,
    Findings,
    HostRef,
    Inspection,
    NotRegistered,
    Permit,
    Ready,
)
from ingot.provisioner.ironic import begun, states
from ingot.provisioner.ironic.attempts import Retry
from ingot.provisioner.ironic.begun import Kind
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Wait, busy
from ingot.provisioner.ironic.inventory import findings
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.rules import (
    HINDRANCES,
    Fact,
    Verb,
    after_failed_cleaning,
    elsewhere,
    facts_of,
    on,
)
from ingot.provisioner.ironic.transitions import abort, clear_maintenance, manage

WITHOUT_RESULT: Final = (
    "the inspection ended without a result: Ironic has no inventory of the host. Look at Ironic's log"
)


INSPECT: Final = Verb(
    name="inspect",
    acts={Step.INSPECT: Act.POWER_OFF},
    rules=(
        on(states.INSPECT_WAIT, when=Fact.RESTART, then=Step.ABORT),
        on(states.INSPECT_WAIT, when=Fact.OVERDUE, then=Step.ABORT),
        *HINDRANCES,
        on(states.MANAGEABLE, when=Fact.ANEW, then=Step.INSPECT),
        on(states.AVAILABLE, when=Fact.ANEW, then=Step.MANAGE),
        # What Ironic has is good, if it has anything.
        on(states.MANAGEABLE, states.AVAILABLE, then=Done()),
        on(states.INSPECT_FAILED, when=Fact.ANEW, then=Step.INSPECT),
        on(states.INSPECT_FAILED, when=Fact.TOLD, then=Step.INSPECT),
        on(states.INSPECT_FAILED, when=Fact.ABORTED, then=Step.INSPECT),
        on(states.INSPECT_FAILED, then=Fail("the inspection failed")),
        *after_failed_cleaning(),
        on(states.ADOPT_FAILED, then=Step.MANAGE),
        elsewhere(
            then=Fail(
                "the host cannot be inspected while Ironic has it as {state}: an operating system may run on it",
                ask_why=False,
                remedy=BEGIN_ANEW,
            )
        ),
    ),
)


async def inspect(
    nodes: Nodes, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool
) -> Ready[Findings] | Busy | Failed | NotRegistered:
    outcome = await _look(nodes, host, wanted, permit=permit, again=again)
    if not isinstance(outcome, FullNode):
        return outcome
    if (data := await nodes.inventory(outcome)) is not None:
        return Ready(findings(data))
    # The state was read before the result, so the result cannot have come in between: there was no inspection, or one that
    # has ended without leaving anything, and nothing more will come of it.
    if again or outcome.inspection_finished_at is None:
        outcome = await _look(nodes, host, wanted, permit=permit, again=again, anew=True)
    return Failed(WITHOUT_RESULT) if isinstance(outcome, FullNode) else outcome


async def _look(
    nodes: Nodes, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool, anew: bool = False
) -> FullNode | Busy | Failed | NotRegistered:
    """Has the ramdisk look where that is still to be done; the node once it has. `anew`: it is to be done."""

    def renews(node: FullNode) -> bool:
        return wanted.renewal != "" and not begun.rounds_begun(node, Kind.INSPECTION, wanted.renewal)

    def decide(node: FullNode, retry: Retry) -> Decision:
        order = {
            Fact.ANEW: anew or renews(node),
            Fact.RESTART: wanted.restart,
            Fact.TOLD: retry.allowed,
            Fact.ABORTED: "aborted" in (node.last_error or ""),
        }
        decision = INSPECT.decide(node, facts_of(node, nodes.now(), order))
        if decision is Step.INSPECT and not nodes.inspections.admits(host.key):
            return _in_line(nodes)
        return decision

    async def start(node: FullNode) -> Busy:
        if renews(node):
            node = await nodes.patch(node, [begun.write(node, Kind.INSPECTION, wanted.renewal, nodes.now())])
        with nodes.inspections.beginning(host.key):
            await nodes.ask_state(node, "inspect")
        return Busy(states.sentence(states.INSPECTING))

    def under_way(node: Node, now: datetime) -> Decision | None:
        if wanted.restart and node.provision_state == states.INSPECT_WAIT:
            return None
        return _in_line(nodes) if nodes.inspections.waits(host.key) else busy(node, now)

    deeds: dict[Step, Deed] = {
        Step.INSPECT: start,
        Step.MANAGE: manage(nodes),
        Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        Step.ABORT: abort(nodes, "the ramdisk did not report; it is booted once more"),
    }
    return await carry_out(
        nodes, host, INSPECT, decide, deeds, again=again, permit=permit, under_way=under_way
    )


def _in_line(nodes: Nodes) -> Wait:
    return Wait(
        f"waiting to be inspected: {nodes.inspections.at_once} other hosts are, and more are not at once"
    )
