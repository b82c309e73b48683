"""What each verb decides for each state of a node: tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ingot.provisioner import Power
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.adopt import decide_adopt
from ingot.provisioner.ironic.attempts import Retry
from ingot.provisioner.ironic.decisions import Done, Fail, Step, Unregistered, Wait
from ingot.provisioner.ironic.delete import decide_delete
from ingot.provisioner.ironic.deprovision import decide_deprovision
from ingot.provisioner.ironic.inspect import decide_inspect
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import sight
from ingot.provisioner.ironic.power import decide_power
from ingot.provisioner.ironic.prepare import decide_prepare
from ingot.provisioner.ironic.provision import decide_provision
from ingot.provisioner.ironic.register import decide_register
from ingot.provisioner.ironic.service import decide_service
from ingot.provisioner.ironic.unfinished import Asked

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ALL_STATES = sorted(
    value for name, value in vars(states).items() if name.isupper() and isinstance(value, str)
)
ALL_STATES = [state for state in ALL_STATES if not state.startswith("power ") and state != states.CLEAN_FAULT]
BUSY = [state for state in ALL_STATES if states.is_busy(state)]


def node(state: str, **fields) -> FullNode:
    return FullNode(uuid="u", provision_state=state, provision_updated_at=NOW, **fields)


def stuck(state: str) -> FullNode:
    return FullNode(uuid="u", provision_state=state, provision_updated_at=NOW - timedelta(days=1))


def kind(decision) -> object:
    return decision if isinstance(decision, Step) else type(decision)


VERBS = {
    "inspect": lambda n, again: decide_inspect(n, NOW, anew=True, restart=False, again=again),
    "prepare": lambda n, again: decide_prepare(
        n, NOW, unfinished=True, failed_other=False, cut_off=False, again=again
    ),
    "service": lambda n, again: decide_service(
        n, NOW, wanted=True, was_begun=n.provision_state == "service failed", noted=True, again=again
    ),
    "provision": lambda n, again: decide_provision(
        n, NOW, ours=False, named="the image http://x", retry=Retry.DUE if again else Retry.NO, asked=Asked()
    ),
    "deprovision": lambda n, again: decide_deprovision(n, NOW, again=again),
    "adopt": lambda n, again: decide_adopt(n, NOW, ours=True, again=again),
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
    ("service", "manageable", Fail, Fail),
    ("service", "available", Fail, Fail),
    ("service", "deploy failed", Fail, Fail),
    ("service", "rescue", Fail, Fail),
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
    ("adopt", "deploy failed", Fail, Fail),
    ("adopt", "service failed", Done, Done),
]


@pytest.mark.parametrize(("verb", "state", "first", "then"), TABLE)
def test_the_table_of_verbs_and_states(verb, state, first, then):
    assert kind(VERBS[verb](node(state), False)) == first
    assert kind(VERBS[verb](node(state), True)) == then


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("state", [*ALL_STATES, "a state of a later Ironic"])
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


@pytest.mark.parametrize("state", ALL_STATES)
def test_a_service_that_was_begun_is_begun_again_in_no_state_unasked(state):
    for wanted in (False, True):
        decision = decide_service(node(state), NOW, wanted=wanted, was_begun=True, noted=False, again=False)
        assert decision is not Step.SERVICE


@pytest.mark.parametrize("state", ALL_STATES)
def test_only_a_machine_that_waits_for_its_ramdisk_is_made_to_boot_it_once_more(state):
    decision = decide_inspect(node(state), NOW, anew=False, restart=True, again=False)
    assert (decision is Step.ABORT) is (state == "inspect wait")


@pytest.mark.parametrize(
    ("state", "error", "again", "expected"),
    [
        ("manageable", None, False, Done),
        ("available", None, False, Done),
        ("inspect failed", "no disks", False, Fail),
        ("inspect failed", "no disks", True, Step.INSPECT),
        ("inspect failed", "Inspection was aborted by request.", False, Step.INSPECT),
        ("clean failed", None, False, Fail),
    ],
)
def test_an_inspection_that_was_begun_is_not_begun_again_unless_it_failed(state, error, again, expected):
    decision = decide_inspect(node(state, last_error=error), NOW, anew=False, restart=False, again=again)
    assert kind(decision) == expected


@pytest.mark.parametrize(
    ("state", "failed_other", "expected"),
    [
        ("manageable", False, Done),
        ("available", False, Done),
        ("clean failed", False, Fail),
        ("clean failed", True, Step.MANAGE),
        ("cleaning", False, Wait),
        ("active", False, Fail),
    ],
)
def test_a_preparation_with_nothing_left_to_begin(state, failed_other, expected):
    decision = decide_prepare(
        node(state), NOW, unfinished=False, failed_other=failed_other, cut_off=False, again=False
    )
    assert kind(decision) == expected


@pytest.mark.parametrize(
    ("state", "fields", "noted", "expected"),
    [
        ("active", {}, False, Done),
        ("active", {}, True, Step.STRIKE),
        ("servicing", {}, True, Wait),
        ("service wait", {}, True, Step.ABORT),
        ("service hold", {}, True, Step.ABORT),
        ("service failed", {}, True, Step.ABORT),
        ("service failed", {"maintenance": True, "fault": "service failure"}, True, Step.CLEAR_MAINTENANCE),
    ],
)
def test_a_service_that_nobody_wants_any_more_is_ended(state, fields, noted, expected):
    decision = decide_service(
        node(state, **fields), NOW, wanted=False, was_begun=False, noted=noted, again=False
    )
    assert kind(decision) == expected


def test_a_preparation_that_was_cut_off_goes_on():
    def decide(**fields):
        cut = node("clean failed", **fields)
        return decide_prepare(cut, NOW, unfinished=False, failed_other=False, cut_off=True, again=True)

    assert decide() is Step.GO_ON
    assert decide(maintenance=True, fault="clean failure") is Step.CLEAR_MAINTENANCE


def test_a_service_that_was_begun_is_not_begun_again_and_another_need_not_wait_for_its_failure_to_be_told():
    active, failed = node("active"), node("service failed")
    assert decide_service(active, NOW, wanted=True, was_begun=True, noted=True, again=False) == Done()
    decision = decide_service(failed, NOW, wanted=True, was_begun=False, noted=True, again=False)
    assert decision is Step.SERVICE


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
    assert decide_provision(running, NOW, ours=True, named="x", retry=Retry.NO, asked=Asked()) == Done()


@pytest.mark.parametrize(
    ("state", "error", "again", "unproven", "expected"),
    [
        ("enroll", None, False, False, Step.MANAGE),
        ("enroll", "no", False, False, Fail),
        ("enroll", "no", True, False, Step.MANAGE),
        ("enroll", "no", False, True, Step.MANAGE),
        ("verifying", None, False, False, Wait),
        ("manageable", "old", False, False, Done),
        ("active", None, False, True, Done),
        ("deploying", None, False, False, Done),
        ("deploying", None, False, True, Wait),
        ("inspect wait", None, False, True, Done),
    ],
)
def test_registering(state, error, again, unproven, expected):
    decision = decide_register(node(state, last_error=error), NOW, again=again, unproven=unproven)
    assert kind(decision) == expected


@pytest.mark.parametrize("state", ALL_STATES)
def test_nothing_but_manage_is_ever_asked_by_registering(state):
    decision = decide_register(node(state), NOW, again=True, unproven=True)
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
        ("clean hold", Step.ABORT),
        ("service wait", Step.ABORT),
        ("wait call-back", Step.ABORT),
        ("rescue wait", Step.DELETE),
        ("deploying", Wait),
        ("verifying", Wait),
        ("deleting", Wait),
    ],
)
def test_deleting(state, expected):
    assert kind(decide_delete(node(state), NOW, aborts_deployments=True)) == expected


def test_an_ironic_that_cannot_abort_a_deployment_forgets_it_as_it_is():
    assert decide_delete(node("wait call-back"), NOW, aborts_deployments=False) is Step.DELETE


@pytest.mark.parametrize("state", ["deploying", "deleting", "inspecting"])
def test_what_hangs_does_not_keep_a_host_from_being_deleted(state):
    assert decide_delete(stuck(state), NOW, aborts_deployments=True) is Step.DELETE


@pytest.mark.parametrize(
    ("fields", "wanted", "asked", "again", "expected"),
    [
        ({"power_state": "power on"}, Power.ON, False, False, Done),
        ({"power_state": "power off"}, Power.ON, False, False, Step.SWITCH),
        ({"power_state": "power off"}, Power.ON, True, False, Fail),
        ({"power_state": "power off"}, Power.ON, True, True, Step.SWITCH),
        ({"power_state": "power off", "target_power_state": "power on"}, Power.ON, True, True, Wait),
        ({"power_state": None}, Power.OFF, False, False, Step.SWITCH),
        ({"power_state": "power on", "disable_power_off": True}, Power.OFF, True, False, Done),
        (
            {"power_state": "power on", "disable_power_off": True, "last_error": "no"},
            Power.OFF,
            True,
            False,
            Fail,
        ),
    ],
)
def test_power(fields, wanted, asked, again, expected):
    assert (
        kind(decide_power(node("active", **fields), NOW, wanted, asked_before=asked, again=again)) == expected
    )


def test_what_an_undeploy_would_destroy_is_seen_as_an_instance():
    kept = {state for state in ALL_STATES if sight(node(state)).holds_instance}
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
