"""The pairs as a page for people: `docs/node-states.md`, written by `make docs`.

Pure but for `main`. States that a verb treats alike share a line, and what stands in the way of most verbs is written once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from ingot.provisioner.ironic import ways
from ingot.provisioner.ironic.decisions import Done, Fail, Step, Unregistered, Wait
from ingot.provisioner.ironic.pairs import ASKED_IN, VERBS, all_states, applicable
from ingot.provisioner.ironic.rules import (
    HINDRANCES,
    Fact,
    Facts,
    Going,
    Hangs,
    Outcome,
    Rule,
    Switching,
    Verb,
)

_HEAD: Final = """\
# What happens to a host, however Ironic has its node

Written by `make docs` from the rules that decide (`src/ingot/provisioner/ironic/rules.py` and one module for each verb); a test
compares the two. Ironic may be found in any state: its database was lost or restored, somebody used it past Ingot, or a process
died at the wrong moment. So each verb that a host asks for has an answer to each state of the node, and for all of them holds:

- no pair is a dead end: each leads on, or ends with a sentence that says what a person does;
- a step that stops a machine, changes its disks or firmware, or drops Ironic's record asks first (**permit**): the host is read
  afresh, and what its state does not ask for is refused. What runs is never wiped because the two disagree: but for a host that
  is deleted, an undeploy is refused where Ironic's record notes another provisioning than the one that is undone, and where a
  provisioning that was not finished is undone and no note says that it was its own;
- a failure is told before anything is tried again.

The first line that fits decides. A state that only a later Ironic has counts as work that ends by itself.

## What a host asks for

| state of the host | verbs, in this order |
|---|---|
"""


def page() -> str:
    return "".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD
    for state, verbs in ASKED_IN.items():
        yield f"| {state} | {', '.join(verb.name for verb in verbs)} |\n"
    yield "\nData images, subscriptions and detaching are asked for in any state that has registered.\n"
    yield from _section("What stands in the way", _IN_THE_WAY)
    for verb in VERBS:
        yield from _section(verb.name.capitalize(), verb)


def _section(title: str, verb: Verb) -> Iterator[str]:
    yield f"\n## {title}\n\n"
    if verb is _IN_THE_WAY:
        yield "For every verb whose table says so, at the place where it says so.\n\n"
    yield "| Ironic has the node as | and | so |\n|---|---|---|\n"
    for rules, alike in _groups(verb):
        yield from _rows(verb, rules, alike)


_IN_THE_WAY: Final = Verb(name="what stands in the way", rules=HINDRANCES)
_ABOVE: Final = "| *what stands in the way*, above"


def _groups(verb: Verb) -> list[tuple[tuple[Rule | None, ...], list[str]]]:
    """States that the same rules apply to. None stands for all that stands in the way."""
    found: dict[tuple[Rule | None, ...], list[str]] = {}
    for state in all_states():
        rules: dict[Rule | None, None] = {}
        for rule in applicable(verb, state):
            rules[None if verb is not _IN_THE_WAY and rule in HINDRANCES else rule] = None
        if rules:
            found.setdefault(tuple(rules), []).append(state)
    return list(found.items())


def _rows(verb: Verb, rules: tuple[Rule | None, ...], alike: list[str]) -> Iterator[str]:
    named = ", ".join(alike)
    for rule in rules:
        yield f"| {named} | {_ABOVE if rule is None else _row(verb, rule, alike)} |\n"
        named = ""


def _row(verb: Verb, rule: Rule, alike: list[str]) -> str:
    return f"{_conditions(rule)} | {_outcome(verb, rule.then, alike)}"


def _conditions(rule: Rule) -> str:
    said = [fact.value for fact in _in_order(rule.when)]
    said += [f"not: {fact.value}" for fact in _in_order(rule.unless)]
    return "; ".join(said)


def _in_order(facts: Facts) -> list[Fact]:
    return [fact for fact in Fact if fact in facts]


def _outcome(verb: Verb, outcome: Outcome, alike: list[str]) -> str:
    match outcome:
        case Step():
            return _step(verb, outcome, alike)
        case Done():
            return "done"
        case Going(afterwards):
            return f"wait: Ironic is at it{f'; {afterwards}' if afterwards else ''}"
        case Switching():
            return "wait: Ironic is at it"
        case Hangs():
            return "fail: Ironic shows no progress; look at its log, and restart it"
        case Wait(why):
            return f"wait: {why}"
        case Unregistered(why):
            return f"register the host: {why}"
        case Fail(headline, remedy=remedy, undone_by=other):
            end = f". {remedy}" if remedy else f"; then {other}" if other else ""
            words = {"{named}": "the image", "{found}": "another system", "{state}": "that"}
            for place, word in words.items():
                headline = headline.replace(place, word)
            return f"fail: {headline}{end}"


def _step(verb: Verb, step: Step, alike: list[str]) -> str:
    act = verb.acts.get(step)
    asked = f", with a **permit** to {act.value}" if act is not None else ""
    ends = sorted(
        {end for state in alike if (end := ways.leads_to(step, state)) not in (None, state)}, key=str
    )
    leads = f" → {', '.join(str(end) for end in ends)}" if ends else ""
    return f"{step.value}{asked}{leads}"


def main() -> None:
    sys.stdout.write(page())


if __name__ == "__main__":
    main()
