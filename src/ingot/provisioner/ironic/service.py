"""Servicing: change the firmware of a machine in use.

Ironic stops its system, changes the firmware and starts the system again: from `active` and back to it. Named orders as in
`prepare`. An order without a change ends what was begun, where Ironic can be interrupted, and forgets it: the same order given
later is a new one. An interruption of Ironic is told like a failure here: the machine is in use, and what was flashed halfway is
not flashed again unasked.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready, Service
from ingot.provisioner.ironic import begun, states
from ingot.provisioner.ironic.attempts import Retry, Scope
from ingot.provisioner.ironic.begun import Kind
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Wait, hindrance
from ingot.provisioner.ironic.firmware_steps import firmware_steps
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.transitions import clear_maintenance

GIVEN_UP: Final = "the service operation was aborted"
_CAN_BE_ENDED: Final = (states.SERVICE_WAIT, states.SERVICE_HOLD)


def decide_service(
    node: Node, now: datetime, *, wanted: bool, was_begun: bool, noted: bool, again: bool
) -> Decision:
    """`wanted`: there is something to change. `was_begun`: this order. `noted`: some order is noted as begun."""
    state = node.provision_state
    if state in _CAN_BE_ENDED and (not wanted or (again and overdue(node, now))):
        return Step.ABORT
    if answer := hindrance(node, now):
        return answer
    match state:
        case states.ACTIVE if wanted:
            return Done() if was_begun else Step.SERVICE
        case states.ACTIVE:
            return Step.STRIKE if noted else Done()
        case states.SERVICE_FAILED if wanted and was_begun and not again:
            return Fail("changing the firmware failed")
        case states.SERVICE_FAILED if node.maintenance:
            return Step.CLEAR_MAINTENANCE
        case states.SERVICE_FAILED:
            return Step.SERVICE if wanted else Step.ABORT
    return Fail(
        f"the firmware cannot be changed while Ironic has the host as {state!r}; it has to be 'active'",
        ask_why=False,
    )


async def service(
    nodes: Nodes, host: HostRef, wanted: Service, *, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    def given_up(node: FullNode) -> bool:
        # Ironic says so when it has started the system again, and until then only we know.
        asked = nodes.attempts.was_started(node.uuid, Scope.GIVE_UP)
        return node.provision_state == states.ACTIVE and (asked or GIVEN_UP in (node.last_error or ""))

    def decide(node: FullNode, _: Retry) -> Decision:
        was_begun = begun.rounds_begun(node, Kind.SERVICE, wanted.name) > 0 and not given_up(node)
        decision = decide_service(
            node,
            nodes.now(),
            wanted=bool(wanted),
            was_begun=was_begun,
            noted=begun.note_of(node, Kind.SERVICE) is not None,
            again=nodes.attempts.may_retry(node.uuid, Scope.STATE, again=again),
        )
        if isinstance(decision, Wait) and was_begun and node.provision_state in states.IN_SERVICE:
            return replace(decision, begun=True)
        return decision

    async def start(node: FullNode) -> Busy:
        node = await nodes.patch(node, [begun.write(node, Kind.SERVICE, wanted.name)])
        await nodes.ask_state(node, "service", service_steps=list(firmware_steps(wanted.firmware)))
        nodes.attempts.done(node.uuid, Scope.GIVE_UP)
        return Busy(states.sentence(states.SERVICING), begun=True)

    async def strike(node: FullNode) -> None:
        await nodes.patch(node, begun.strike(node, Kind.SERVICE))
        nodes.attempts.done(node.uuid, Scope.GIVE_UP)

    async def end(node: FullNode) -> Busy:
        await nodes.client.set_provision_state(node.uuid, "abort")
        nodes.cache.doubt(node.uuid)
        nodes.attempts.started(node.uuid, Scope.GIVE_UP)
        return Busy("ending the change of the firmware; the system is started again")

    deeds: dict[Step, Deed] = {
        Step.SERVICE: guarded(Act.SERVICE, permit, start),
        # Ironic may switch the machine off and on for it, whatever runs there.
        Step.ABORT: guarded(Act.SERVICE, permit, end),
        Step.STRIKE: strike,
        Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
    }
    outcome = await carry_out(nodes, host, decide, deeds, again=again, under_way=begun.not_from_memory)
    return Ready(None) if isinstance(outcome, FullNode) else outcome
