"""Every pair of what a host asks for and how Ironic has its node: none is missing, none is a dead end, none destroys unasked.

The rules of the verbs are the code, so what is proven of them is proven of it: the walks below go where the rules and Ironic's
own state machine lead, with every set of facts that the rules of a state ask about.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ingot.api.baremetalhost import State
from ingot.hosts.states.table import HANDLERS
from ingot.provisioner import Act
from ingot.provisioner.ironic import states, ways
from ingot.provisioner.ironic.decisions import Done, Fail, Step, Unregistered, Wait
from ingot.provisioner.ironic.pairs import ASKED_IN, LATER, VERBS, all_states, applicable
from ingot.provisioner.ironic.pairs_page import page
from ingot.provisioner.ironic.rules import (
    DESTROYS,
    Fact,
    Facts,
    Going,
    Hangs,
    Switching,
    Verb,
    elsewhere,
    on,
)

EACH_VERB = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
PASSING = {Fact.OVERDUE, Fact.SWITCHING, Fact.CHANGING, Fact.POWER_FAULT}
"""What Ironic, the clock or the machine changes without being asked."""
BY_NAME = {verb.name: verb for verb in VERBS}


def fact_sets(verb: Verb, state: str) -> list[Facts]:
    """Every set of facts that the rules of this pair can tell apart."""
    asked = sorted({fact for rule in applicable(verb, state) for fact in rule.when | rule.unless}, key=str)
    chosen = itertools.chain.from_iterable(
        itertools.combinations(asked, count) for count in range(len(asked) + 1)
    )
    return [facts for one in chosen if consistent(facts := frozenset(one))]


def consistent(facts: Facts) -> bool:
    """Facts that exclude or include each other."""
    return not (
        {Fact.IS_ON, Fact.IS_OFF} <= facts
        or (Fact.POWER_FAULT in facts and Fact.FAULT not in facts)
        or (Fact.RAMDISK_GONE in facts and Fact.WRITTEN not in facts)
    )


@EACH_VERB
def test_no_pair_is_missing(verb: Verb):
    for state in all_states():
        for facts in fact_sets(verb, state):
            assert verb.rule_for(state, facts) in applicable(verb, state)


@EACH_VERB
def test_no_rule_is_dead(verb: Verb):
    """A rule that never decides would be a sentence on the page that is not true."""
    used = {id(verb.rule_for(state, facts)) for state in all_states() for facts in fact_sets(verb, state)}
    assert [rule for rule in verb.rules if id(rule) not in used and rule not in SHARED] == []


SHARED = tuple(rule for rule in VERBS[1].rules if isinstance(rule.then, Hangs | Going | Wait | Unregistered))
"""What all verbs have in common need not matter to each."""


# No dead end

Place = tuple[Verb, str, Facts]

MAKES_TRUE: dict[Step, set[Fact]] = {
    Step.SERVICE: {Fact.BEGUN, Fact.NOTED},
    Step.GO_ON: {Fact.UNFINISHED},
    Step.DEPLOY: {Fact.OURS},
    Step.ABORT: {Fact.ABORTED},
    Step.NOTE: {Fact.AS_WANTED},
    Step.CHANGE_MEDIA: {Fact.AS_WANTED},
    Step.SWITCH_ON: {Fact.AS_WANTED},
    Step.SWITCH_OFF: {Fact.AS_WANTED},
    Step.START: {Fact.ASKED_TO_START, Fact.IS_ON},
    Step.RESTART: {Fact.ASKED_TO_START, Fact.IS_ON},
    Step.STOP_RAMDISK: {Fact.ASKED_TO_STOP, Fact.IS_OFF},
}
MAKES_FALSE: dict[Step, set[Fact]] = {
    Step.CLEAR_MAINTENANCE: {Fact.MAINTENANCE, Fact.FAULT, Fact.POWER_FAULT},
    Step.INSPECT: {Fact.ANEW, Fact.ABORTED},
    Step.CLEAN: {Fact.UNFINISHED},
    Step.STRIKE: {Fact.NOTED, Fact.PLANNED},
    Step.DEPLOY: {Fact.INTERRUPTED},
    Step.UNDEPLOY: {Fact.OURS, Fact.WRITTEN, Fact.INTERRUPTED},
    Step.ABORT: {Fact.RESTART},
    Step.START: {Fact.IS_OFF},
    Step.RESTART: {Fact.IS_OFF},
    Step.STOP_RAMDISK: {Fact.IS_ON},
}
"""What a step makes of the facts, where it works."""


def following(verb: Verb, state: str, facts: Facts) -> list[Place] | None:
    """What can come next; None at an end: it is done, or a person has been told what to do."""
    outcome = verb.rule_for(state, facts).then
    match outcome:
        case Done() | Hangs() | Step.SUBSCRIBE | Step.DELETE | Step.FORGET:
            return None
        case Fail(remedy=remedy) if remedy:
            return None
        case Fail(undone_by=other) if other:
            return [(BY_NAME[other], state, facts & PASSING)]
        case Fail():
            assert Fact.TOLD not in facts, f"{verb.name} fails for ever in {state!r} ({facts})"
            return [(verb, state, facts | {Fact.TOLD})]
        case Unregistered():
            # Registering brings a node out of `enroll`; a running host is taken over.
            taken_over = verb is BY_NAME["service"] and state != states.ENROLL
            return [(BY_NAME["adopt" if taken_over else "register"], state, facts & PASSING)]
        case Going() | Switching() | Wait() if state in states.HOLDS:
            # Nobody ends it, so whoever reads this has to be able to, without talking to Ironic.
            assert "ingot host detach --force" in states.sentence(state)
            return None
        case Going() | Switching() | Wait():
            passed = facts - (PASSING if state in states.STABLE else PASSING - {Fact.OVERDUE})
            return [(verb, end, passed) for end in ways.BY_ITSELF.get(state, {state})] + [
                # Or it hangs, and that is told.
                (verb, state, passed | {Fact.OVERDUE})
            ] * (state == LATER)
    assert isinstance(outcome, Step)
    end = ways.leads_to(outcome, state)
    assert end is not None, f"{verb.name} asks for {outcome.value} in {state!r}, which Ironic refuses"
    changed = (facts | MAKES_TRUE.get(outcome, set())) - MAKES_FALSE.get(outcome, set())
    return [(verb, end, frozenset(changed) - ({Fact.OVERDUE, Fact.TOLD} if end != state else set()))]


def comes_to_an_end(verb: Verb, state: str, facts: Facts) -> bool:
    """Whether there is a way on that ends. What is under way may fail over and over, but it must be able to succeed."""
    seen: set[Place] = set()
    left: list[Place] = [(verb, state, facts)]
    while left:
        place = left.pop()
        if place in seen:
            continue
        seen.add(place)
        if (more := following(*place)) is None:
            return True
        left += more
    return False


@EACH_VERB
def test_no_pair_is_a_dead_end(verb: Verb):
    stuck = [
        (state, facts)
        for state in all_states()
        for facts in fact_sets(verb, state)
        if not comes_to_an_end(verb, state, facts)
    ]
    assert stuck == []


@pytest.mark.parametrize("state", sorted(states.HOLDS))
def test_what_is_on_hold_is_given_up_by_force_without_asking_ironic_to_end_it(state: str):
    """Ironic only notes that cleaning or servicing on hold is to end, and takes down a deployment that is."""
    everything = frozenset({Fact.FORCE, Fact.ABORTS_DEPLOYMENTS})
    assert BY_NAME["detach"].rule_for(state, everything).then is Step.DELETE
    assert BY_NAME["delete"].rule_for(state, everything).then is Step.DELETE
    for verb in VERBS:
        assert all(verb.rule_for(state, facts).then is not Step.ABORT for facts in fact_sets(verb, state))


@EACH_VERB
def test_a_hold_is_never_said_to_take_too_long(verb: Verb):
    for state in states.HOLDS:
        assert all(Fact.OVERDUE not in rule.when for rule in applicable(verb, state))


def test_a_dead_end_would_be_found():
    stuck = Verb(name="stuck", rules=(on(states.ACTIVE, then=Wait("for ever")), elsewhere(then=Done())))
    assert not comes_to_an_end(stuck, states.ACTIVE, frozenset())
    refused = Verb(name="refused", rules=(elsewhere(then=Fail("no")),))
    with pytest.raises(AssertionError, match="fails for ever"):
        comes_to_an_end(refused, states.ACTIVE, frozenset())


# Nothing is destroyed that nobody asked to destroy

MEANS = {
    Step.INSPECT: {"inspect"},
    Step.CLEAN: {"prepare"},
    Step.PROVIDE: {"provision", "deprovision"},
    Step.DEPLOY: {"provision"},
    Step.UNDEPLOY: {"deprovision", "provision"},
    Step.SERVICE: {"service"},
    Step.SWITCH_OFF: {"switch off"},
    Step.STOP_RAMDISK: {"provision"},
    Step.RESTART: {"provision"},
    Step.DELETE: {"delete", "detach"},
    Step.FORGET: {"adopt"},
}
"""Which verbs mean it when they ask for something that destroys."""
KEEPS = ("register", "adopt", "switch on", "data image", "subscribe")
"""All that a provisioned host asks for unless a person wanted more: no machine is stopped and no disk touched by them."""


def test_only_verbs_that_mean_it_destroy():
    found = {step: {verb.name for verb in VERBS if step in verb.steps} for step in DESTROYS}
    assert found == MEANS


@EACH_VERB
def test_the_permit_is_asked_before_every_step_that_destroys(verb: Verb):
    assert verb.steps & DESTROYS <= set(verb.acts)


def test_a_verb_that_destroys_without_asking_cannot_be_built():
    with pytest.raises(TypeError, match="asks nobody"):
        Verb(name="careless", rules=(elsewhere(then=Step.UNDEPLOY),))


@pytest.mark.parametrize("name", KEEPS)
def test_what_a_running_host_asks_for_by_itself_leaves_the_machine_alone(name: str):
    assert BY_NAME[name].steps & DESTROYS <= {Step.FORGET}
    assert set(BY_NAME[name].acts.values()) <= {Act.FORGET}


@EACH_VERB
def test_what_runs_is_overwritten_or_cleaned_from_no_state_that_can_hold_a_system(verb: Verb):
    """Only an undeploy leaves such a state; a deployment of ours that was cut off goes on."""
    for state in states.HOLDS_INSTANCE:
        for facts in fact_sets(verb, state):
            step = verb.rule_for(state, facts).then
            assert step not in (Step.CLEAN, Step.PROVIDE, Step.INSPECT)
            if step is Step.DEPLOY:
                assert facts >= {Fact.OURS, Fact.INTERRUPTED}


RUNS = (
    {states.ACTIVE, states.ADOPTING, states.ADOPT_FAILED}
    | states.IN_SERVICE
    | {states.RESCUE, states.RESCUE_WAIT, states.RESCUE_FAILED, states.RESCUING}
    | {states.UNRESCUING, states.UNRESCUE_FAILED}
)
"""A system is there that was deployed or adopted to the end."""


def test_a_provisioning_takes_down_nothing_that_runs_neither_itself_nor_by_what_follows_its_failure():
    """Whoever asks to deprovision means it, and the guard asks whose it is; a provisioning that finds a system never does."""
    provision = BY_NAME["provision"]
    for state in RUNS:
        for facts in fact_sets(provision, state):
            outcome = provision.rule_for(state, facts).then
            assert outcome not in DESTROYS
            if isinstance(outcome, Fail):
                assert outcome.remedy
                assert not outcome.undone_by


# The page and the states of hosts


def test_every_state_of_a_host_says_what_it_asks_for():
    assert set(ASKED_IN) == {str(state) for state in HANDLERS} - {State.NONE, State.UNMANAGED}


def test_the_page_is_what_the_rules_say():
    written = Path(__file__).parents[3] / "docs" / "node-states.md"
    assert written.read_text() == page(), "run `make docs`"
