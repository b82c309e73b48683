"""Preparing: change RAID volumes and firmware of a machine without a system.

Ironic does it as manual cleaning, from `manageable` and back to it. An order has one round of cleaning, or two where both sorts
of RAID volumes are concerned (see `raid`); changes of firmware go with the last. Before a round is asked for, the node notes
which order and which round it is (see `begun`), so nobody begins it a second time and nobody takes it for begun who only
meant to. Where Ironic is interrupted in the middle, the round is begun again, with all that it was made of at first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ingot.provisioner import (
    BEGIN_ANEW,
    Act,
    Busy,
    Failed,
    HostRef,
    NotRegistered,
    Permit,
    Preparation,
    Ready,
)
from ingot.provisioner.ironic import begun, raid, states
from ingot.provisioner.ironic.attempts import Retry, Scope
from ingot.provisioner.ironic.begun import Kind
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Wait, busy, cleans_by_hand
from ingot.provisioner.ironic.drivers import own_raid_interface
from ingot.provisioner.ironic.firmware_steps import Steps, firmware_steps
from ingot.provisioner.ironic.model import FullNode, add, remove
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

FAILED: Final = "changing the RAID volumes or the firmware failed"


@dataclass(frozen=True, slots=True)
class Round:
    """What one cleaning does."""

    target: raid.Target | None
    steps: Steps


def rounds(wanted: Preparation) -> list[Round]:
    """Raises `UnusableVolumes`."""
    targets = raid.targets(wanted.raid, hints=wanted.root_device is not None)
    found = [Round(target, target.steps()) for target in targets]
    if firmware := firmware_steps(wanted.firmware):
        last = found.pop() if found else Round(None, [])
        found.append(Round(last.target, last.steps + firmware))
    return found


PREPARE: Final = Verb(
    name="prepare",
    acts={Step.CLEAN: Act.CLEAN},
    rules=(
        on(states.CLEAN_WAIT, when=(Fact.OVERDUE, Fact.TOLD), then=Step.ABORT),
        *HINDRANCES,
        on(states.MANAGEABLE, when=Fact.UNFINISHED, then=Step.CLEAN),
        on(states.AVAILABLE, when=Fact.UNFINISHED, then=Step.MANAGE),
        on(states.MANAGEABLE, states.AVAILABLE, when=Fact.PLANNED, then=Step.STRIKE),
        on(states.MANAGEABLE, states.AVAILABLE, then=Done()),
        on(states.CLEAN_FAILED, when=(Fact.INTERRUPTED, Fact.MAINTENANCE), then=Step.CLEAR_MAINTENANCE),
        on(states.CLEAN_FAILED, when=Fact.INTERRUPTED, then=Step.GO_ON),
        *after_failed_cleaning(FAILED),
        on(states.INSPECT_FAILED, states.ADOPT_FAILED, then=Step.MANAGE),
        elsewhere(
            then=Fail(
                "the host cannot be prepared while Ironic has it as {state}: an operating system may run on it",
                ask_why=False,
                remedy=BEGIN_ANEW,
            )
        ),
    ),
)


async def prepare(
    nodes: Nodes, host: HostRef, wanted: Preparation, *, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    try:
        planned = rounds(wanted)
    except raid.UnusableVolumes as problem:
        return Failed(str(problem))

    def plan(node: FullNode) -> list[Round]:
        return _noted_plan(node, wanted.name) or planned

    def decide(node: FullNode, retry: Retry) -> Decision:
        note = begun.note_of(node, Kind.PREPARATION)
        this = note is not None and note.name == wanted.name
        all_begun = _begun(node, wanted) >= len(plan(node))
        # Somebody took the order that failed for begun: he hears of it, whatever is wanted now, before anything else begins.
        told = retry.allowed or (not this and nodes.attempts.was_told(node.uuid, Scope.STATE))
        order = {
            Fact.UNFINISHED: not all_begun,
            Fact.PLANNED: bool(begun.without_plan(node, Kind.PREPARATION)),
            Fact.INTERRUPTED: this and retry is Retry.INTERRUPTED,
            Fact.TOLD: told,
        }
        too_long = cleans_by_hand(node) and begun.takes_too_long(node, Kind.PREPARATION, nodes.now())
        if too_long:
            order[Fact.OVERDUE] = True
        decision = PREPARE.decide(node, facts_of(node, nodes.now(), order))
        if too_long and isinstance(decision, Fail):
            return begun.too_long(FAILED)
        if isinstance(decision, Wait) and all_begun and planned and cleans_by_hand(node):
            return replace(decision, begun=True)
        return decision

    async def clean(node: FullNode) -> Busy | Failed:
        at, to_do = _begun(node, wanted), plan(node)
        try:
            for one in to_do:
                raid.check(one.target, _controlled_by(node))
            await _begin(nodes, node, wanted.name, to_do, at)
        except raid.UnusableVolumes as problem:
            return Failed(str(problem))
        return Busy(states.PREPARING, begun=at + 1 == len(to_do))

    async def go_on(node: FullNode) -> None:
        node = await nodes.patch(node, begun.begin_again(node, Kind.PREPARATION))
        await nodes.client.set_provision_state(node.uuid, "manage")
        nodes.cache.doubt(node.uuid)

    async def strike_plan(node: FullNode) -> None:
        await nodes.patch(node, begun.without_plan(node, Kind.PREPARATION))

    deeds: dict[Step, Deed] = {
        Step.CLEAN: clean,
        Step.GO_ON: go_on,
        Step.STRIKE: strike_plan,
        Step.MANAGE: manage(nodes),
        Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        Step.ABORT: abort(nodes, "the ramdisk does not report any more; ending what it was to do"),
    }
    outcome = await carry_out(
        nodes,
        host,
        PREPARE,
        decide,
        deeds,
        again=again,
        permit=permit,
        under_way=begun.not_from_memory if planned else busy,
    )
    return Ready(None) if isinstance(outcome, FullNode) else outcome


def _begun(node: FullNode, wanted: Preparation) -> int:
    return begun.rounds_begun(node, Kind.PREPARATION, wanted.name)


def _noted_plan(node: FullNode, name: str) -> list[Round]:
    """What the order of this name was made of when it was first begun."""
    note = begun.note_of(node, Kind.PREPARATION)
    if note is None or note.name != name:
        return []
    try:
        return msgspec.convert(note.plan, list[Round])
    except msgspec.ValidationError:
        # Another version of Ingot wrote it.
        return []


async def _begin(nodes: Nodes, node: FullNode, name: str, plan: list[Round], at: int) -> None:
    target = plan[at].target
    if target is not None:
        node = await _choose_interface(nodes, node, target)
        raid.check(target, _controlled_by(node))
        await nodes.client.set_raid_config(node.uuid, target.config())
    note = begun.write(
        node, Kind.PREPARATION, name, nodes.now(), rounds=at + 1, plan=msgspec.to_builtins(plan)
    )
    node = await nodes.patch(node, [note])
    await nodes.ask_state(node, "clean", clean_steps=list(plan[at].steps))


def _controlled_by(node: FullNode) -> str:
    """Ironic's interface to the RAID controller; while the ramdisk makes volumes, the one that the driver goes back to."""
    if node.raid_interface == raid.SOFTWARE:
        return own_raid_interface(node.driver) or raid.NONE
    return node.raid_interface or raid.NONE


async def _choose_interface(nodes: Nodes, node: FullNode, target: raid.Target) -> FullNode:
    """The ramdisk makes software volumes; the driver's own interface, which Ironic chooses, the others."""
    if target.software and node.raid_interface != raid.SOFTWARE:
        return await nodes.patch(node, [add("/raid_interface", raid.SOFTWARE)])
    if not target.software and node.raid_interface == raid.SOFTWARE:
        return await nodes.patch(node, [remove("/raid_interface")])
    return node
