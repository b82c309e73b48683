"""What we say of Ironic's state machine, beside the state machine of the Ironic that is installed."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from ingot.provisioner.ironic import states, ways
from ingot.services.environment import ensure, without_ours

PRINTS = """
import json
from ironic.common import states
from ironic.common.state_machine import machine

ways = {state: {event: way.name for event, way in machine._transitions[state].items()} for state in machine.states}
print(json.dumps({"ways": ways, "stable": sorted(states.STABLE_STATES), "failed": sorted(states.FAILURE_STATES)}))
"""
BY_ITSELF = {"done", "fail", "wait", "resume", "hold", "clean", "manage"}
"""Events that come without a request, in a state that Ironic works in."""


@pytest.fixture(scope="module")
def theirs() -> dict:
    done = subprocess.run(
        [str(ensure().python), "-c", PRINTS],
        env=without_ours(os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict = json.loads(done.stdout)
    return found


def test_no_state_of_ironic_is_unknown_to_us(theirs: dict):
    assert set(theirs["ways"]) == set(states.ALL)


def test_what_ironic_calls_stable_or_failed_is_not_waited_for(theirs: dict):
    assert set(theirs["stable"]) | set(theirs["failed"]) == states.STABLE
    assert set(theirs["failed"]) | {states.ERROR} == states.FAILED


def test_every_request_of_ours_leads_where_ironic_leads_it(theirs: dict):
    for (step, state), end in ways.ON_REQUEST.items():
        assert theirs["ways"][state].get(ways.REQUESTS[step]) == end, (step, state)


def test_what_becomes_of_a_node_by_itself_is_what_ironic_does_with_it(theirs: dict):
    for state, ends in ways.BY_ITSELF.items():
        found = {end for event, end in theirs["ways"][state].items() if event in BY_ITSELF}
        assert ends == found, state


def test_every_state_that_is_not_stable_has_a_way_out_or_is_a_hold():
    assert set(states.ALL) - states.STABLE == set(ways.BY_ITSELF) | states.HOLDS
