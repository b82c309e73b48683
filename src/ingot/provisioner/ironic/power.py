"""Switching a host on and off, and telling how it is from memory.

Ironic switches in the background: while `target_power_state` is set it is at it, and when that is empty and the host is not
as wanted, it failed. Whether it was us who asked is only remembered in memory; after a restart it is simply asked again. A
host whose power must not be switched off is rebooted instead.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.provisioner import (
    Act,
    Busy,
    Failed,
    HostRef,
    NotRegistered,
    Permit,
    Power,
    PowerOffMode,
    Ready,
    Vitals,
)
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Retry, Scope
from ingot.provisioner.ironic.carrying_out import Deed, carry_out
from ingot.provisioner.ironic.decisions import (
    Decision,
    Done,
    Fail,
    Step,
    Unregistered,
    Wait,
    switching_sentence,
)
from ingot.provisioner.ironic.errors import BadRequest
from ingot.provisioner.ironic.model import FullNode, Node
from ingot.provisioner.ironic.nodes import Nodes, powered_on
from ingot.provisioner.ironic.rules import (
    Fact,
    Going,
    Hangs,
    Rule,
    Switching,
    Verb,
    elsewhere,
    facts_of,
    on,
)

SOFT_SECONDS: Final = 180
_OTHER: Final = {Scope.POWER_ON: Scope.POWER_OFF, Scope.POWER_OFF: Scope.POWER_ON}
_SWITCHABLE: Final = states.STABLE - {states.ENROLL}


def _rules(word: str, step: Step) -> tuple[Rule, ...]:
    return (
        on(
            states.ENROLL,
            then=Unregistered("Ironic knows the host, but has not taken it under management yet"),
        ),
        elsewhere(when=Fact.SWITCHING, then=Switching()),
        elsewhere(when=Fact.AS_WANTED, then=Done()),
        elsewhere(_SWITCHABLE, states.HOLDS, when=Fact.OVERDUE, then=Hangs()),
        elsewhere(_SWITCHABLE, then=Going("the power is switched afterwards")),
        on(_SWITCHABLE, when=(Fact.ASKED, Fact.REBOOTED), unless=Fact.TOLD, then=Done()),
        on(_SWITCHABLE, when=Fact.ASKED, unless=Fact.TOLD, then=Fail(f"the power cannot be switched {word}")),
        on(_SWITCHABLE, then=step),
    )


SWITCH_ON: Final = Verb(name="switch on", rules=_rules("on", Step.SWITCH_ON))
SWITCH_OFF: Final = Verb(
    name="switch off", acts={Step.SWITCH_OFF: Act.POWER_OFF}, rules=_rules("off", Step.SWITCH_OFF)
)


def switching(node: Node, _now: datetime | None = None) -> Wait | None:
    return None if node.target_power_state is None else switching_sentence(node)


async def set_power(
    nodes: Nodes, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    scope = Scope.POWER_ON if wanted is Power.ON else Scope.POWER_OFF
    verb = SWITCH_ON if wanted is Power.ON else SWITCH_OFF

    def decide(node: FullNode, retry: Retry) -> Decision:
        runs = powered_on(node)
        order = {
            Fact.AS_WANTED: runs is (wanted is Power.ON),
            # We asked Ironic to switch, and it has not come to what we wanted.
            Fact.ASKED: nodes.attempts.was_started(node.uuid, scope),
            # A host that must not be switched off was rebooted instead, and runs again.
            Fact.REBOOTED: node.disable_power_off
            and wanted is Power.OFF
            and runs is True
            and not node.last_error,
            Fact.TOLD: retry.allowed,
        }
        return verb.decide(node, facts_of(node, nodes.now(), order))

    async def switch(node: FullNode) -> Busy:
        await _ask(nodes, node, wanted, mode)
        nodes.attempts.started(node.uuid, scope)
        nodes.attempts.done(node.uuid, _OTHER[scope])
        return Busy(f"switching the power {wanted.value}")

    deeds: dict[Step, Deed] = dict.fromkeys(verb.steps, switch)
    outcome = await carry_out(
        nodes, host, verb, decide, deeds, again=again, permit=permit, scope=scope, under_way=switching
    )
    return Ready(None) if isinstance(outcome, FullNode) else outcome


async def _ask(nodes: Nodes, node: FullNode, wanted: Power, mode: PowerOffMode) -> None:
    if wanted is Power.ON:
        await nodes.ask_power(node, states.POWER_ON)
        return
    hard = "rebooting" if node.disable_power_off else states.POWER_OFF
    if mode is PowerOffMode.SOFT:
        try:
            await nodes.ask_power(node, f"soft {hard}", timeout=SOFT_SECONDS)
            return
        except BadRequest:
            # The driver offers no soft power off.
            pass
    await nodes.ask_power(node, hard)


async def vitals(nodes: Nodes, host: HostRef) -> Vitals | NotRegistered:
    node = nodes.known(host) or await nodes.fresh(host)
    if node is None:
        return NotRegistered(nodes.gone(host))
    if node.target_power_state is None and (on := powered_on(node)) is not None:
        # What was asked for has come true, also where nobody asks for it again.
        nodes.attempts.done(node.uuid, Scope.POWER_ON if on else Scope.POWER_OFF)
    return vitals_of(node)


def vitals_of(node: Node) -> Vitals:
    health = {"OK": "OK", "WARNING": "Warning", "CRITICAL": "Critical"}.get((node.health or "").upper(), "")
    return Vitals(powered_on=powered_on(node), power_failure=node.fault == states.POWER_FAULT, health=health)
