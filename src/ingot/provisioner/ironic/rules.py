"""What each verb does with a node in each state, as data.

A verb has a list of rules. Each rule says for which states it is meant, which facts must hold and which must not, and what
then happens; the first one that fits decides. So the list is at once the code, the page `docs/node-states.md`, and what the
tests walk through: every pair of verb and state has an answer, no pair is a dead end, nothing is destroyed unasked.

`Verb.acts` says which steps can cost somebody something, and what the permit is asked for before them: a verb that has such a
step without saying so cannot be built.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from ingot.provisioner import Act
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.deadlines import overdue, overdue_sentence
from ingot.provisioner.ironic.decisions import (
    Decision,
    Fail,
    Step,
    Unregistered,
    Wait,
    progress,
    switching_sentence,
)
from ingot.provisioner.ironic.model import Node


class Fact(enum.Enum):
    """What a rule can ask, in the words of the page."""

    # The node
    OVERDUE = "it has been so for longer than that ever takes"
    MAINTENANCE = "it is in maintenance"
    FAULT = "Ironic found a fault"
    POWER_FAULT = "Ironic cannot reach the power controls"
    ERROR = "the last attempt left an error"
    ABORTED = "it was ended by request"
    SWITCHING = "the power is being switched"
    IS_ON = "it is switched on"
    IS_OFF = "it is switched off"
    NEVER_OFF = "it must not be switched off"
    # The order, and what came of it
    TOLD = "its failure has been told, and the next attempt is due"
    INTERRUPTED = "nothing failed: Ironic died in the middle of it"
    OURS = "it is this host's"
    UNPROVEN = "the credentials were never tried"
    OTHERWISE = "the machine is to be reached or inspected in another way"
    ANEW = "the ramdisk still has to look"
    RESTART = "its ramdisk does not come up, and is to be booted once more"
    UNFINISHED = "something of the order is still to be begun"
    PLANNED = "what the order was made of is still noted"
    WANTED = "something is to be changed"
    BEGUN = "this very order was begun"
    NOTED = "an order is noted as begun"
    WRITTEN = "the image is written and only the restart is missing"
    RAMDISK_GONE = "the ramdisk has ended"
    ASKED_TO_STOP = "the ramdisk was asked to stop"
    ASKED_TO_START = "the machine was asked to start"
    ASKED = "it was asked for before"
    AS_WANTED = "it is as wanted"
    REBOOTED = "it was rebooted instead"
    FORCE = "whatever waits is to be given up"
    ABORTS_DEPLOYMENTS = "this Ironic can end a deployment"
    CHANGING = "Ironic is at the drive"
    REFUSED = "the BMC refused"
    SHOWN = "the drive shows what is wanted"
    EMPTY = "the drive is empty and is to be"


Facts = frozenset[Fact]


@dataclass(frozen=True, slots=True)
class Going:
    """Ironic is at it and will tell; what comes afterwards, if that is worth a word."""

    afterwards: str = ""


@dataclass(frozen=True, slots=True)
class Hangs:
    """Ironic is at it for longer than that ever takes."""


@dataclass(frozen=True, slots=True)
class Switching:
    """Ironic is switching the power and will tell."""


Outcome = Decision | Going | Hangs | Switching


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    states: frozenset[str]
    but: bool = False
    """Meant for all states but these; also for those that only a later Ironic knows."""
    when: Facts = frozenset()
    unless: Facts = frozenset()
    then: Outcome

    def concerns(self, state: str) -> bool:
        return (state in self.states) is not self.but

    def fits(self, state: str, facts: Facts) -> bool:
        return self.concerns(state) and self.when <= facts and not self.unless & facts

    @property
    def always(self) -> bool:
        return not self.when and not self.unless


def on(
    *meant: str | Iterable[str],
    then: Outcome,
    when: Fact | Iterable[Fact] = (),
    unless: Fact | Iterable[Fact] = (),
) -> Rule:
    """A rule for these states."""
    return Rule(states=_states(meant), then=then, when=_facts(when), unless=_facts(unless))


def elsewhere(
    *other: str | Iterable[str],
    then: Outcome,
    when: Fact | Iterable[Fact] = (),
    unless: Fact | Iterable[Fact] = (),
) -> Rule:
    """A rule for all states but these."""
    return Rule(states=_states(other), but=True, then=then, when=_facts(when), unless=_facts(unless))


def _states(given: Iterable[str | Iterable[str]]) -> frozenset[str]:
    return frozenset(state for one in given for state in ([one] if isinstance(one, str) else one))


def _facts(given: Fact | Iterable[Fact]) -> Facts:
    return frozenset([given]) if isinstance(given, Fact) else frozenset(given)


DESTROYS: Final = frozenset(
    {
        Step.INSPECT,
        Step.CLEAN,
        Step.PROVIDE,
        Step.DEPLOY,
        Step.UNDEPLOY,
        Step.SERVICE,
        Step.SWITCH_OFF,
        Step.STOP_RAMDISK,
        Step.RESTART,
        Step.DELETE,
        Step.FORGET,
    }
)
"""Steps that stop what runs, change disks or firmware, or drop Ironic's record."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verb:
    """What a host can ask for, and what Ironic is asked for it."""

    name: str
    rules: tuple[Rule, ...]
    acts: Mapping[Step, Act] = field(default_factory=dict)
    """What the permit is asked for before a step."""

    def __post_init__(self) -> None:
        if unguarded := self.steps & DESTROYS - set(self.acts):
            raise TypeError(f"{self.name} has steps that destroy, and asks nobody: {unguarded}")

    @property
    def steps(self) -> frozenset[Step]:
        return frozenset(rule.then for rule in self.rules if isinstance(rule.then, Step))

    def rule_for(self, state: str, facts: Facts) -> Rule:
        for rule in self.rules:
            if rule.fits(state, facts):
                return rule
        raise LookupError(f"no rule of {self.name} fits a node that is {state!r} ({facts})")

    def decide(self, node: Node, facts: Facts, *, named: str = "", found: str = "") -> Decision:
        """`named`: what the order is about, `found`: what is on the host; for the sentences that say so."""
        outcome = self.rule_for(node.provision_state, facts).then
        match outcome:
            case Going(afterwards):
                return progress(node, afterwards)
            case Hangs():
                return Fail(overdue_sentence(node), ask_why=False)
            case Switching():
                return switching_sentence(node)
            case Fail(headline):
                return replace(outcome, headline=_filled(headline, node, named, found))
            case Unregistered(why):
                return Unregistered(_filled(why, node, named, found))
        return outcome


def _filled(text: str, node: Node, named: str, found: str) -> str:
    filled = text.replace("{state}", repr(node.provision_state))
    return filled.replace("{named}", named).replace("{found}", found)


def facts_of(node: Node, now: datetime, order: Mapping[Fact, bool]) -> Facts:
    """What is so: of the node itself, and of the order by what its verb says."""
    found = {
        Fact.OVERDUE: overdue(node, now),
        Fact.MAINTENANCE: node.maintenance,
        Fact.FAULT: node.fault is not None,
        Fact.POWER_FAULT: node.fault == states.POWER_FAULT,
        Fact.SWITCHING: node.target_power_state is not None,
    }
    return frozenset(fact for fact, holds in {**found, **order}.items() if holds)


# What several verbs have in common

UNDER_WAY: Final = (
    elsewhere(states.STABLE, states.HOLDS, when=Fact.OVERDUE, then=Hangs()),
    elsewhere(states.STABLE, then=Going()),
)

_LEFT_BY_RESCUE: Final = (states.RESCUE, states.RESCUE_FAILED, states.UNRESCUE_FAILED)

HINDRANCES: Final = (
    *UNDER_WAY,
    on(
        states.ENROLL,
        then=Unregistered("Ironic knows the host, but has not taken it under management yet"),
    ),
    elsewhere(
        _LEFT_BY_RESCUE,
        when=Fact.POWER_FAULT,
        then=Wait(
            "Ironic cannot reach the power controls of the BMC; it tries again by itself every few minutes. If the BMC has "
            "another address or password by now, correct spec.bmc or its Secret. If it is dead for good, let the host go as it "
            "is with `ingot host detach --force`; one that is being deleted is gone then"
        ),
    ),
    elsewhere(_LEFT_BY_RESCUE, when=Fact.MAINTENANCE, unless=Fact.FAULT, then=Step.CLEAR_MAINTENANCE),
    # What went wrong in a failed state has to be told first; in any other it is over.
    elsewhere(states.FAILED, _LEFT_BY_RESCUE, when=Fact.MAINTENANCE, then=Step.CLEAR_MAINTENANCE),
)
"""What stands in the way of any change of state, whatever is wanted."""


def after_failed_cleaning(headline: str = "cleaning the disks failed") -> tuple[Rule, ...]:
    """Cleaning failed: told once; then maintenance is lifted and the node goes back to where cleaning can start anew."""
    return (
        on(states.CLEAN_FAILED, unless=Fact.TOLD, then=Fail(headline)),
        on(states.CLEAN_FAILED, when=Fact.MAINTENANCE, then=Step.CLEAR_MAINTENANCE),
        on(states.CLEAN_FAILED, then=Step.MANAGE),
    )
