"""Inspecting: what is the machine made of?

The ramdisk is booted, looks around and reports; for fast inspection the BMC is asked instead. What was found once stays with
Ironic until it is asked to look again. Booting the ramdisk stops whatever runs on the machine, so the permit is asked as for
a power off.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.api.hardwaredata import HardwareDetails
from ingot.provisioner import Act, Busy, Failed, HostRef, Inspection, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Retry
from ingot.provisioner.ironic.carrying_out import carry_out
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.decisions import (
    Decision,
    Done,
    Fail,
    Step,
    after_failed_cleaning,
    hindrance,
)
from ingot.provisioner.ironic.errors import NotFound
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.inventory import InspectionData, hardware_details
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import abort, clear_maintenance, manage

WITHOUT_RESULT: Final = (
    "the inspection ended without a result: Ironic has no inventory of the host. Look at Ironic's log"
)


def decide_inspect(node: Node, now: datetime, *, anew: bool, again: bool) -> Decision:
    """`anew`: the ramdisk has to look, whatever Ironic has from earlier. `Done`: what Ironic has is good, if it has anything."""
    if node.provision_state == states.INSPECT_WAIT and overdue(node, now):
        return Step.ABORT
    if answer := hindrance(node, now):
        return answer
    match node.provision_state:
        case states.MANAGEABLE:
            return Step.INSPECT if anew else Done()
        case states.AVAILABLE:
            return Step.MANAGE if anew else Done()
        case states.INSPECT_FAILED:
            aborted = "aborted" in (node.last_error or "")
            return Step.INSPECT if again or aborted else Fail("the inspection failed")
        case states.CLEAN_FAILED:
            return after_failed_cleaning(node, again=again)
        case states.ADOPT_FAILED:
            return Step.MANAGE
    return Fail(
        f"the host cannot be inspected while Ironic has it as {node.provision_state!r}: an operating system may run on it",
        ask_why=False,
    )


class Inspector:
    """Inspects, and remembers which hosts it is looking at: the order to look anew stays until the result is there."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._looking: set[str] = set()

    async def inspect(
        self, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool
    ) -> Ready[HardwareDetails] | Busy | Failed | NotRegistered:
        outcome = await self._look(host, permit=permit, again=again, anew=bool(wanted.renewal))
        if not isinstance(outcome, FullNode):
            return outcome
        if (data := await self._found(outcome)) is None:
            # The state was read before the result, so the result cannot have come in between: there was no inspection,
            # or the one that we began has ended without leaving anything, and nothing more will come of it.
            if again:
                self._looking.discard(outcome.uuid)
            outcome = await self._look(host, permit=permit, again=again, anew=True)
            return Failed(WITHOUT_RESULT) if isinstance(outcome, FullNode) else outcome
        self._looking.discard(outcome.uuid)
        return Ready(hardware_details(data))

    async def _look(
        self, host: HostRef, *, permit: Permit, again: bool, anew: bool
    ) -> FullNode | Busy | Failed | NotRegistered:
        nodes = self._nodes

        def decide(node: FullNode, retry: Retry) -> Decision:
            return decide_inspect(
                node, nodes.now(), anew=anew and node.uuid not in self._looking, again=retry.allowed
            )

        async def start(node: FullNode) -> Busy:
            await nodes.ask_state(node, "inspect")
            self._looking.add(node.uuid)
            return Busy(states.sentence(states.INSPECTING))

        deeds = {
            Step.INSPECT: guarded(Act.POWER_OFF, permit, start),
            Step.MANAGE: manage(nodes),
            Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
            Step.ABORT: abort(nodes, "the ramdisk did not report in time; the inspection is ended"),
        }
        return await carry_out(nodes, host, decide, deeds, again=again)

    async def _found(self, node: FullNode) -> InspectionData | None:
        try:
            return await self._nodes.client.inventory(node.uuid)
        except NotFound:
            return None
