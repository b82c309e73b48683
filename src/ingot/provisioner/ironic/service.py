"""Servicing: change the firmware of a machine in use.

Ironic stops its system, changes the firmware and starts the system again: from `active` and back to it. Named orders as in
`prepare`. An order without a change ends what was begun, where Ironic can be interrupted, and forgets it: the same order given
later is a new one. An interruption of Ironic is told like a failure here: the machine is in use, and what was flashed halfway is
not flashed again unasked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready, Service
from ingot.provisioner.ironic import begun, states
from ingot.provisioner.ironic.attempts import Retry, Scope
from ingot.provisioner.ironic.begun import Kind
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Unregistered, Wait
from ingot.provisioner.ironic.firmware_steps import firmware_steps
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.rules import HINDRANCES, Fact, Verb, elsewhere, facts_of, on
from ingot.provisioner.ironic.transitions import clear_maintenance

FAILED: Final = "changing the firmware failed"
GIVEN_UP: Final = "the service operation was aborted"


SERVICE: Final = Verb(
    name="service",
    # Ironic may switch the machine off and on to end it, whatever runs there.
    acts={Step.SERVICE: Act.SERVICE, Step.ABORT: Act.SERVICE},
    rules=(
        on(states.SERVICE_WAIT, unless=Fact.WANTED, then=Step.ABORT),
        on(states.SERVICE_WAIT, when=(Fact.OVERDUE, Fact.TOLD), then=Step.ABORT),
        *HINDRANCES,
        on(states.ACTIVE, when=(Fact.WANTED, Fact.BEGUN), then=Done()),
        on(states.ACTIVE, when=Fact.WANTED, then=Step.SERVICE),
        on(states.ACTIVE, when=Fact.NOTED, then=Step.STRIKE),
        on(states.ACTIVE, then=Done()),
        on(states.SERVICE_FAILED, unless=Fact.TOLD, then=Fail(FAILED)),
        on(states.SERVICE_FAILED, when=Fact.MAINTENANCE, then=Step.CLEAR_MAINTENANCE),
        on(states.SERVICE_FAILED, when=Fact.WANTED, then=Step.SERVICE),
        on(states.SERVICE_FAILED, then=Step.ABORT),
        elsewhere(
            then=Unregistered(
                "the firmware of a running host is changed while Ironic has it as 'active', and it has it as {state}; it is "
                "taken over first"
            )
        ),
    ),
)


async def service(
    nodes: Nodes, host: HostRef, wanted: Service, *, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    def given_up(node: FullNode) -> bool:
        # Ironic says so when it has started the system again, and until then only we know.
        asked = nodes.attempts.was_started(node.uuid, Scope.GIVE_UP)
        return node.provision_state == states.ACTIVE and (asked or GIVEN_UP in (node.last_error or ""))

    def heard_of(node: FullNode) -> bool:
        return nodes.attempts.was_told(node.uuid, Scope.STATE) or begun.is_about_to_begin(node, Kind.SERVICE)

    def decide(node: FullNode, _: Retry) -> Decision:
        was_begun = begun.rounds_begun(node, Kind.SERVICE, wanted.name) > 0 and not given_up(node)
        may_retry = nodes.attempts.may_retry(node.uuid, Scope.STATE, again=again)
        order = {
            Fact.WANTED: bool(wanted),
            Fact.BEGUN: was_begun,
            Fact.NOTED: begun.note_of(node, Kind.SERVICE) is not None,
            # As in `prepare`: somebody took the order that failed for begun.
            Fact.TOLD: may_retry or (not was_begun and heard_of(node)),
        }
        is_at_it = node.provision_state in (states.SERVICING, states.SERVICE_WAIT)
        too_long = is_at_it and begun.takes_too_long(node, Kind.SERVICE, nodes.now())
        if too_long:
            order[Fact.OVERDUE] = True
        decision = SERVICE.decide(node, facts_of(node, nodes.now(), order))
        if too_long and isinstance(decision, Fail):
            return begun.too_long(FAILED)
        if isinstance(decision, Wait) and was_begun and node.provision_state in states.IN_SERVICE:
            return replace(decision, begun=True)
        return decision

    async def start(node: FullNode) -> Busy:
        node = await nodes.patch(node, [begun.write(node, Kind.SERVICE, wanted.name, nodes.now())])
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
        Step.SERVICE: start,
        Step.ABORT: end,
        Step.STRIKE: strike,
        Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
    }
    outcome = await carry_out(
        nodes, host, SERVICE, decide, deeds, again=again, permit=permit, under_way=begun.not_from_memory
    )
    return Ready(None) if isinstance(outcome, FullNode) else outcome
