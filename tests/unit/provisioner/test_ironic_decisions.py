"""What each verb decides for each state of a node: tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.adopt import ADOPT
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Unregistered, Wait
from ingot.provisioner.ironic.delete import DELETE
from ingot.provisioner.ironic.deprovision import DEPROVISION
from ingot.provisioner.ironic.inspect import INSPECT
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import sight
from ingot.provisioner.ironic.power import SWITCH_OFF, SWITCH_ON
from ingot.provisioner.ironic.prepare import PREPARE
from ingot.provisioner.ironic.provision import PROVISION
from ingot.provisioner.ironic.register import REGISTER
from ingot.provisioner.ironic.rules import Fact, Verb, facts_of
from ingot.provisioner.ironic.service import SERVICE

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BUSY = [state for state in states.ALL if states.is_busy(state)]


def node(state: str, **fields) -> FullNode:
    return FullNode(uuid="u", provision_state=state, provision_updated_at=NOW, **fields)


def stuck(state: str) -> FullNode:
    return FullNode(uuid="u", provision_state=state, provision_updated_at=NOW - timedelta(days=1))


def kind(decision) -> object:
    return decision if isinstance(decision, Step) else type(decision)


def decide(verb: Verb, found: FullNode, *order: Fact, told: bool = False) -> Decision:
    facts = facts_of(found, NOW, dict.fromkeys(order, True) | {Fact.TOLD: told})
    return verb.decide(found, facts, named="the image http://x")


VERBS = {
    "inspect": lambda n, told: decide(INSPECT, n, Fact.ANEW, told=told),
    "prepare": lambda n, told: decide(PREPARE, n, Fact.UNFINISHED, told=told),
    "service": lambda n, told: decide(SERVICE, n, Fact.WANTED, Fact.NOTED, told=told),
    "provision": lambda n, told: decide(PROVISION, n, told=told),
    "deprovision": lambda n, told: decide(DEPROVISION, n, told=told),
    "adopt": lambda n, told: decide(ADOPT, n, Fact.OURS, told=told),
}

# verb, state, decision at first, decision once the failure was told
TABLE = [
    ("inspect", "manageable", Step.INSPECT, Step.INSPECT),
    ("inspect", "available", Step.MANAGE, Step.MANAGE),
    ("inspect", "inspect failed", Step.INSPECT, Step.INSPECT),
    ("inspect", "clean failed", Fail, Step.MANAGE),
    ("inspect", "adopt failed", Step.MANAGE, Step.MANAGE),
    ("inspect", "active", Fail, Fail),
    ("inspect", "deploy failed", Fail, Fail),
    ("inspect", "error", Fail, Fail),
    ("prepare", "manageable", Step.CLEAN, Step.CLEAN),
    ("prepare", "available", Step.MANAGE, Step.MANAGE),
    ("prepare", "clean failed", Fail, Step.MANAGE),
    ("prepare", "inspect failed", Step.MANAGE, Step.MANAGE),
    ("prepare", "adopt failed", Step.MANAGE, Step.MANAGE),
    ("prepare", "active", Fail, Fail),
    ("prepare", "deploy failed", Fail, Fail),
    ("prepare", "service failed", Fail, Fail),
    ("prepare", "rescue", Fail, Fail),
    ("service", "active", Step.SERVICE, Step.SERVICE),
    ("service", "service failed", Fail, Step.SERVICE),
    ("service", "manageable", Unregistered, Unregistered),
    ("service", "available", Unregistered, Unregistered),
    ("service", "deploy failed", Unregistered, Unregistered),
    ("service", "rescue", Unregistered, Unregistered),
    ("provision", "manageable", Step.PROVIDE, Step.PROVIDE),
    ("provision", "available", Step.DEPLOY, Step.DEPLOY),
    ("provision", "deploy failed", Fail, Fail),
    ("provision", "clean failed", Fail, Step.MANAGE),
    ("provision", "inspect failed", Step.MANAGE, Step.MANAGE),
    ("provision", "active", Fail, Fail),
    ("provision", "error", Fail, Fail),
    ("provision", "rescue", Fail, Fail),
    ("deprovision", "available", Done, Done),
    ("deprovision", "manageable", Step.PROVIDE, Step.PROVIDE),
    ("deprovision", "active", Step.UNDEPLOY, Step.UNDEPLOY),
    ("deprovision", "deploy failed", Step.UNDEPLOY, Step.UNDEPLOY),
    ("deprovision", "wait call-back", Step.UNDEPLOY, Step.UNDEPLOY),
    ("deprovision", "rescue", Step.UNDEPLOY, Step.UNDEPLOY),
    ("deprovision", "error", Fail, Step.UNDEPLOY),
    ("deprovision", "clean failed", Fail, Step.MANAGE),
    ("adopt", "manageable", Step.ADOPT, Step.ADOPT),
    ("adopt", "active", Done, Done),
    ("adopt", "adopt failed", Fail, Step.ADOPT),
    ("adopt", "available", Fail, Step.MANAGE),
    ("adopt", "inspect failed", Step.MANAGE, Step.MANAGE),
    ("adopt", "deploy failed", Fail, Step.FORGET),
    ("adopt", "error", Fail, Step.FORGET),
    ("adopt", "rescue", Fail, Step.FORGET),
    ("adopt", "unrescue failed", Fail, Step.FORGET),
    ("adopt", "service failed", Done, Done),
]


@pytest.mark.parametrize(("verb", "state", "first", "then"), TABLE)
def test_the_table_of_verbs_and_states(verb, state, first, then):
    assert kind(VERBS[verb](node(state), False)) == first
    assert kind(VERBS[verb](node(state), True)) == then


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("state", [*states.ALL, "a state of a later Ironic"])
def test_every_verb_has_an_answer_to_every_state(verb, state, again):
    decision = VERBS[verb](node(state), again)
    assert isinstance(decision, Step | Wait | Done | Fail | Unregistered)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("state", BUSY)
def test_what_ironic_is_doing_is_waited_for_with_a_sentence(verb, state):
    decision = VERBS[verb](node(state), True)
    interruptible = {"wait call-back", "rescue wait", "service wait"}
    if verb == "deprovision" and state in interruptible:
        assert decision is Step.UNDEPLOY
    elif verb == "adopt" and state in states.IN_SERVICE:
        # It is managed already; what becomes of its service is told by another verb.
        assert decision == Done()
    else:
        assert isinstance(decision, Wait)
        assert decision.why


@pytest.mark.parametrize("verb", ["provision", "adopt"])
@pytest.mark.parametrize("state", ["inspecting", "cleaning", "deploying", "deleting", "adopting"])
def test_what_hangs_is_a_failure_with_a_sentence(verb, state):
    decision = VERBS[verb](stuck(state), True)
    assert isinstance(decision, Fail)
    assert "no progress since" in decision.headline


def test_an_inspection_that_waits_too_long_is_aborted():
    assert VERBS["inspect"](stuck("inspect wait"), False) is Step.ABORT


@pytest.mark.parametrize("verb", ["prepare", "service"])
def test_a_ramdisk_that_reports_no_more_is_told_and_then_given_up(verb):
    waiting = {"prepare": "clean wait", "service": "service wait"}[verb]
    assert isinstance(VERBS[verb](stuck(waiting), False), Fail)
    assert VERBS[verb](stuck(waiting), True) is Step.ABORT


@pytest.mark.parametrize("state", states.ALL)
def test_a_service_that_was_begun_is_begun_again_in_no_state_unasked(state):
    for wanted in ((), (Fact.WANTED,)):
        assert decide(SERVICE, node(state), Fact.BEGUN, *wanted) is not Step.SERVICE


@pytest.mark.parametrize("state", states.ALL)
def test_only_a_machine_that_waits_for_its_ramdisk_is_made_to_boot_it_once_more(state):
    decision = decide(INSPECT, node(state), Fact.RESTART)
    assert (decision is Step.ABORT) is (state == "inspect wait")


@pytest.mark.parametrize(
    ("state", "facts", "expected"),
    [
        ("manageable", [], Done),
        ("available", [], Done),
        ("inspect failed", [], Fail),
        ("inspect failed", [Fact.TOLD], Step.INSPECT),
        ("inspect failed", [Fact.ABORTED], Step.INSPECT),
        ("clean failed", [], Fail),
    ],
)
def test_an_inspection_that_was_begun_is_not_begun_again_unless_it_failed(state, facts, expected):
    decision = decide(INSPECT, node(state), *facts, told=Fact.TOLD in facts)
    assert kind(decision) == expected


@pytest.mark.parametrize(
    ("state", "told", "expected"),
    [
        ("manageable", False, Done),
        ("available", False, Done),
        ("clean failed", False, Fail),
        ("clean failed", True, Step.MANAGE),
        ("cleaning", False, Wait),
        ("active", False, Fail),
    ],
)
def test_a_preparation_with_nothing_left_to_begin(state, told, expected):
    assert kind(decide(PREPARE, node(state), told=told)) == expected


@pytest.mark.parametrize(
    ("state", "fields", "noted", "expected"),
    [
        ("active", {}, False, Done),
        ("active", {}, True, Step.STRIKE),
        ("servicing", {}, True, Wait),
        ("service wait", {}, True, Step.ABORT),
        ("service hold", {}, True, Wait),
        ("service failed", {}, True, Step.ABORT),
        ("service failed", {"maintenance": True, "fault": "service failure"}, True, Step.CLEAR_MAINTENANCE),
    ],
)
def test_a_service_that_nobody_wants_any_more_is_ended(state, fields, noted, expected):
    decision = decide(SERVICE, node(state, **fields), *([Fact.NOTED] if noted else []), told=True)
    assert kind(decision) == expected


def test_a_preparation_that_was_cut_off_goes_on():
    assert decide(PREPARE, node("clean failed"), Fact.INTERRUPTED, told=True) is Step.GO_ON
    maintained = node("clean failed", maintenance=True, fault="clean failure")
    assert decide(PREPARE, maintained, Fact.INTERRUPTED, told=True) is Step.CLEAR_MAINTENANCE


def test_a_service_that_was_begun_is_not_begun_again():
    assert decide(SERVICE, node("active"), Fact.WANTED, Fact.BEGUN, Fact.NOTED) == Done()


@pytest.mark.parametrize("wanted", [[], [Fact.WANTED], [Fact.WANTED, Fact.BEGUN]])
def test_a_service_that_failed_is_told_whatever_is_wanted_now(wanted):
    """Somebody took it for begun, and would take it for done."""
    assert isinstance(decide(SERVICE, node("service failed"), *wanted), Fail)


@pytest.mark.parametrize("verb", ["inspect", "prepare", "provision", "deprovision"])
def test_maintenance_that_an_earlier_failure_left_behind_is_lifted(verb):
    left = node("manageable", maintenance=True, fault="clean failure")
    assert VERBS[verb](left, False) is Step.CLEAR_MAINTENANCE


def test_cleaning_by_our_own_steps_is_not_called_cleaning():
    preparing = node("clean wait", target_provision_state="manageable", clean_step={"step": "update"})
    assert VERBS["prepare"](preparing, False) == Wait(
        "changing RAID volumes or firmware", "waiting for the ramdisk, step update"
    )


@pytest.mark.parametrize("verb", VERBS)
def test_a_host_that_is_only_enrolled_has_to_be_registered(verb):
    assert isinstance(VERBS[verb](node("enroll"), True), Unregistered)


@pytest.mark.parametrize("verb", VERBS)
def test_maintenance_that_somebody_set_is_lifted_and_a_power_fault_is_waited_for(verb):
    assert VERBS[verb](node("manageable", maintenance=True), False) is Step.CLEAR_MAINTENANCE
    fault = node("manageable", maintenance=True, fault="power failure")
    assert isinstance(VERBS[verb](fault, True), Wait)


def test_the_step_that_runs_is_named():
    cleaning = node("clean wait", clean_step={"step": "erase_devices_metadata", "interface": "deploy"})
    assert VERBS["provision"](cleaning, False) == Wait(
        "cleaning the disks", "waiting for the ramdisk, step erase_devices_metadata"
    )
    deploying = node("deploying", deploy_step="write_image")
    assert VERBS["provision"](deploying, False) == Wait("deploying the image", "step write_image")


def test_a_step_that_an_earlier_phase_left_behind_is_not_named():
    cleaning = node("cleaning", deploy_step={"step": "boot_instance"})
    assert VERBS["provision"](cleaning, False) == Wait("cleaning the disks")


def test_our_own_deployment_is_done_even_in_maintenance():
    running = node("active", maintenance=True)
    assert decide(PROVISION, running, Fact.OURS) == Done()


@pytest.mark.parametrize(
    ("state", "facts", "expected"),
    [
        ("enroll", [], Step.MANAGE),
        ("enroll", [Fact.ERROR], Fail),
        ("enroll", [Fact.ERROR, Fact.TOLD], Step.MANAGE),
        ("enroll", [Fact.ERROR, Fact.UNPROVEN], Step.MANAGE),
        ("verifying", [], Wait),
        ("manageable", [Fact.ERROR], Done),
        ("active", [Fact.UNPROVEN], Done),
        ("deploying", [], Done),
        ("deploying", [Fact.UNPROVEN], Wait),
        ("inspect wait", [Fact.UNPROVEN], Done),
    ],
)
def test_registering(state, facts, expected):
    assert kind(decide(REGISTER, node(state), *facts, told=Fact.TOLD in facts)) == expected


@pytest.mark.parametrize("state", states.ALL)
def test_nothing_but_manage_is_ever_asked_by_registering(state):
    decision = decide(REGISTER, node(state), Fact.UNPROVEN, told=True)
    assert decision is Step.MANAGE or not isinstance(decision, Step)
    assert decision is not Step.MANAGE or state == "enroll"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("enroll", Step.DELETE),
        ("active", Step.DELETE),
        ("deploy failed", Step.DELETE),
        ("inspect wait", Step.ABORT),
        ("clean wait", Step.ABORT),
        ("clean hold", Step.DELETE),
        ("service hold", Step.DELETE),
        ("service wait", Step.ABORT),
        ("wait call-back", Step.ABORT),
        ("rescue wait", Step.DELETE),
        ("deploying", Wait),
        ("verifying", Wait),
        ("deleting", Wait),
    ],
)
def test_deleting(state, expected):
    assert kind(decide(DELETE, node(state), Fact.ABORTS_DEPLOYMENTS)) == expected


def test_a_deployment_on_hold_is_forgotten_because_to_abort_it_would_take_it_down():
    assert decide(DELETE, node("deploy hold"), Fact.ABORTS_DEPLOYMENTS) is Step.DELETE


def test_an_ironic_that_cannot_abort_a_deployment_forgets_it_as_it_is():
    assert decide(DELETE, node("wait call-back")) is Step.DELETE


@pytest.mark.parametrize("state", ["deploying", "deleting", "inspecting"])
def test_what_hangs_does_not_keep_a_host_from_being_deleted(state):
    assert decide(DELETE, stuck(state), Fact.ABORTS_DEPLOYMENTS) is Step.DELETE


@pytest.mark.parametrize(
    ("verb", "fields", "facts", "expected"),
    [
        (SWITCH_ON, {}, [Fact.AS_WANTED], Done),
        (SWITCH_ON, {}, [], Step.SWITCH_ON),
        (SWITCH_ON, {}, [Fact.ASKED], Fail),
        (SWITCH_ON, {}, [Fact.ASKED, Fact.TOLD], Step.SWITCH_ON),
        (SWITCH_ON, {"target_power_state": "power on"}, [Fact.ASKED, Fact.TOLD], Wait),
        (SWITCH_OFF, {}, [], Step.SWITCH_OFF),
        (SWITCH_OFF, {}, [Fact.ASKED, Fact.REBOOTED], Done),
        (SWITCH_OFF, {}, [Fact.ASKED], Fail),
    ],
)
def test_power(verb, fields, facts, expected):
    assert kind(decide(verb, node("active", **fields), *facts, told=Fact.TOLD in facts)) == expected


def test_what_an_undeploy_would_destroy_is_seen_as_an_instance():
    kept = {state for state in states.ALL if sight(node(state)).holds_instance}
    assert kept >= {
        "active",
        "deploying",
        "wait call-back",
        "deploy failed",
        "error",
        "adopting",
        "rescue",
        "servicing",
    }
    assert not kept & {
        "enroll",
        "verifying",
        "manageable",
        "available",
        "inspecting",
        "cleaning",
        "clean failed",
    }
