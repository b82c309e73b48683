"""An Ironic that dies in the middle of anything and comes back: no error, no pause, and no second deployment."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fake_ironic import DEPLOY_STEPS, FakeIronic
from ironic_orders import IMAGE, MAC, NODE, ORDER, Guard

from ingot.api.meta import Key
from ingot.provisioner import (
    Access,
    Act,
    Busy,
    Failed,
    HostRef,
    Inspection,
    NotRegistered,
    Power,
    PowerOffMode,
    Ready,
)
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner
from ingot.provisioner.ironic.decisions import Done, Fail, Step, Wait
from ingot.provisioner.ironic.interruptions import (
    MOST_IN_A_ROW,
    Interruptions,
    switching_was_interrupted,
    was_interrupted,
)
from ingot.provisioner.ironic.model import FullNode, HistoryEntry
from ingot.provisioner.ironic.nodes import sight
from ingot.provisioner.ironic.provision import PROVISION
from ingot.provisioner.ironic.rules import Fact, facts_of
from ingot.provisioner.ironic.unfinished import Left, facts_of_cut_off, left_to_do

RESTART = "The deploying state can't be resumed by conductor 127.0.0.1. Moving to fail state."
TAKE_OVER = "Operation was aborted due to conductor take over"
POWER_CUT = "Pending power operation was aborted due to conductor restart"
POWER_FAILED = "Failed to change power state to 'power on' by 'power on': no answer"
REAL = "Deploy step deploy.write_image failed: Image failed to verify against checksum"


def entry(text: str, severity: str = "ERROR") -> HistoryEntry:
    return HistoryEntry(severity=severity, event=text)


# Recognising an interruption


@pytest.mark.parametrize(
    ("last_error", "history", "expected"),
    [
        (RESTART, [], True),
        (TAKE_OVER, [], True),
        (f"{TAKE_OVER}. Also Failed to tear down cleaning", [], True),
        (REAL, [], False),
        (REAL, [RESTART], False),
        (None, [], False),
        (None, [RESTART], True),
        (None, [TAKE_OVER, REAL], True),
        (None, [REAL, RESTART], False),
        (POWER_FAILED, [POWER_FAILED, RESTART], True),
        (POWER_CUT, [RESTART], True),
        (POWER_CUT, [], False),
        (POWER_CUT, [REAL], False),
    ],
)
def test_an_interruption_is_told_from_a_failure_by_the_newest_word_about_the_state(
    last_error, history, expected
):
    node = FullNode(uuid="u", provision_state="deploy failed", last_error=last_error)
    assert was_interrupted(node, [entry(text) for text in history]) is expected


def test_what_is_no_error_in_the_history_is_passed_over():
    node = FullNode(uuid="u", provision_state="deploy failed")
    assert was_interrupted(node, [entry("deployment started", "INFO"), entry(RESTART)])


@pytest.mark.parametrize(
    ("last_error", "history", "expected"),
    [
        (POWER_CUT, [], True),
        (None, ["Pending power operation was aborted due to conductor take over"], True),
        (POWER_FAILED, [POWER_CUT], False),
        (RESTART, [], False),
        (None, [], False),
    ],
)
def test_the_same_for_switching_the_power(last_error, history, expected):
    node = FullNode(uuid="u", provision_state="active", last_error=last_error)
    assert switching_was_interrupted(node, [entry(text) for text in history]) is expected


def test_only_so_many_interruptions_in_a_row_are_passed_over():
    seen, host = Interruptions(), Key("rack", "h1")
    for number in range(MOST_IN_A_ROW):
        assert seen.may_go_on(host, "deploy failed", number)
        assert seen.may_go_on(host, "deploy failed", number), "the same one, looked at again"
    assert not seen.may_go_on(host, "deploy failed", "one more")
    assert seen.may_go_on(host, "inspect failed", "of another kind")
    assert seen.may_go_on(Key("rack", "h2"), "deploy failed", "of another host")
    seen.progressed(host, "inspect failed")
    assert not seen.may_go_on(host, "deploy failed", "still one too many")
    seen.progressed(host)
    assert seen.may_go_on(host, "deploy failed", "after something worked")


# What is left of a deployment


def cut_off(step: str | None, *, listed: bool = True, **fields) -> FullNode:
    steps = [{"step": one, "interface": "deploy"} for one in DEPLOY_STEPS]
    info = {"deploy_steps": steps, "deploy_step_index": DEPLOY_STEPS.index(step) if step else None}
    return FullNode(
        uuid="u",
        provision_state="deploy failed",
        deploy_step={"step": step} if step else {},
        driver_internal_info=info if listed else {"deploy_steps": None},
        **fields,
    )


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (None, Left.EVERYTHING),
        ("deploy", Left.EVERYTHING),
        ("write_image", Left.EVERYTHING),
        ("prepare_instance_boot", Left.EVERYTHING),
        ("tear_down_agent", Left.RESTART),
        ("switch_to_tenant_network", Left.START),
        ("boot_instance", Left.START),
    ],
)
def test_the_step_says_what_is_left(step, left):
    assert left_to_do(cut_off(step)) is left


def test_a_step_that_an_earlier_deployment_left_behind_says_nothing():
    assert left_to_do(cut_off("boot_instance", listed=False)) is Left.EVERYTHING
    stale = FullNode(
        uuid="u",
        deploy_step={"step": "boot_instance"},
        driver_internal_info={"deploy_steps": [{"step": "deploy"}], "deploy_step_index": 0},
    )
    assert left_to_do(stale) is Left.EVERYTHING


@pytest.mark.parametrize("index", [None, -1, 99, "5", True])
def test_an_index_that_points_nowhere_says_nothing(index):
    node = cut_off("boot_instance")
    node.driver_internal_info["deploy_step_index"] = index
    assert left_to_do(node) is Left.EVERYTHING


def test_a_ramdisk_that_cannot_be_switched_off_is_not_asked_to_end():
    assert left_to_do(cut_off("tear_down_agent", disable_power_off=True)) is Left.EVERYTHING


NOW = datetime(2026, 1, 1, tzinfo=UTC)
ON, OFF = {"power_state": "power on"}, {"power_state": "power off"}
SWITCHING = {"power_state": "power off", "target_power_state": "power on"}


@pytest.mark.parametrize(
    ("step", "power", "asked", "expected"),
    [
        ("write_image", ON, "", Step.DEPLOY),
        ("boot_instance", ON, "", Step.START),
        ("boot_instance", OFF, "", Step.START),
        ("boot_instance", SWITCHING, "start", Wait),
        ("boot_instance", ON, "start", Done),
        ("boot_instance", OFF, "start", Fail),
        ("tear_down_agent", ON, "", Step.STOP_RAMDISK),
        ("tear_down_agent", OFF, "", Step.STOP_RAMDISK),
        ("tear_down_agent", OFF, "stop", Step.START),
        ("tear_down_agent", ON, "stop", Step.DEPLOY),
        ("tear_down_agent", ON, "stop start", Done),
    ],
)
def test_a_deployment_is_finished_step_by_step(step, power, asked, expected):
    node = cut_off(step, **power)
    order = facts_of_cut_off(node, asked_to_stop="stop" in asked, asked_to_start="start" in asked)
    order |= {Fact.OURS: True, Fact.INTERRUPTED: True}
    decision = PROVISION.decide(node, facts_of(node, NOW, order))
    assert (decision if isinstance(decision, Step) else type(decision)) == expected


def test_an_unfinished_deployment_is_nothing_that_could_be_lost():
    assert sight(cut_off("write_image")).holds_instance
    assert not sight(cut_off("write_image"), unfinished=True).holds_instance


# The verbs


@pytest.fixture
async def known(backend: IronicProvisioner, ironic: FakeIronic, host: HostRef, access: Access) -> HostRef:
    """A host that Ironic has under management."""
    await backend.register(host, access, credentials_changed=True, again=False)
    ironic.finish(NODE)
    return await registered(backend, host, access)


async def registered(backend: IronicProvisioner, host: HostRef, access: Access) -> HostRef:
    answer = await backend.register(host, access, credentials_changed=False, again=False)
    assert isinstance(answer, Ready)
    return replace(host, backend_id=answer.value.backend_id)


async def provision(backend: IronicProvisioner, host: HostRef, guard: Guard):
    return await backend.provision(host, ORDER, permit=guard, again=False)


async def deploying(backend, ironic, known, guard, step: str) -> None:
    """A deployment of ours that has come to this step."""
    ironic.change(NODE, provision_state="available")
    assert isinstance(await provision(backend, known, guard), Busy)
    if step:
        ironic.at_step(NODE, step)


def switched(ironic: FakeIronic, power: str) -> None:
    """Ironic has done what it was asked to; that clears the error."""
    assert ironic.node(NODE)["target_power_state"] == power
    ironic.change(NODE, power_state=power, target_power_state=None, last_error=None)


async def test_verifying_that_was_interrupted_begins_again(backend, ironic, host, access):
    await backend.register(host, access, credentials_changed=True, again=False)
    ironic.restart()
    assert ironic.node(NODE)["provision_state"] == "enroll"
    answer = await backend.register(host, access, credentials_changed=False, again=False)
    assert isinstance(answer, Busy)
    assert ironic.node(NODE)["provision_state"] == "verifying"


async def test_verifying_that_is_always_interrupted_is_told_in_the_end(backend, ironic, host, access):
    await backend.register(host, access, credentials_changed=True, again=False)
    for _ in range(MOST_IN_A_ROW):
        ironic.restart()
        assert isinstance(await backend.register(host, access, credentials_changed=False, again=False), Busy)
    ironic.restart()
    answer = await backend.register(host, access, credentials_changed=False, again=False)
    assert isinstance(answer, Failed)
    assert "can't be resumed" in answer.message


async def test_an_inspection_that_was_interrupted_begins_again(backend, ironic, known, guard):
    await backend.inspect(known, Inspection(), permit=guard, again=False)
    ironic.restart()
    assert ironic.node(NODE)["provision_state"] == "inspect failed"
    answer = await backend.inspect(known, Inspection(), permit=guard, again=False)
    assert isinstance(answer, Busy)
    assert ironic.node(NODE)["provision_state"] == "inspecting"
    assert guard.acts == [Act.POWER_OFF, Act.POWER_OFF]


@pytest.mark.parametrize("maintenance", [False, True])
async def test_cleaning_that_was_interrupted_begins_again(backend, ironic, known, guard, maintenance):
    await provision(backend, known, guard)
    ironic.restart()
    if maintenance:
        # What another conductor does that takes the node over.
        ironic.change(NODE, last_error=TAKE_OVER, maintenance=True, fault="clean failure")
    assert isinstance(await provision(backend, known, guard), Busy)
    node = ironic.node(NODE)
    assert (node["provision_state"], node["maintenance"]) == ("cleaning", False)


async def test_an_undeploy_that_was_interrupted_begins_again(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="active", instance_uuid=known.uid)
    for _ in range(2):
        answer = await backend.deprovision(known, automated_cleaning=True, permit=guard, again=False)
        assert isinstance(answer, Busy)
        assert ironic.node(NODE)["provision_state"] == "deleting"
        ironic.restart()
        assert ironic.node(NODE)["provision_state"] == "error"


async def test_an_adoption_that_was_interrupted_begins_again(backend, ironic, known, guard):
    await backend.adopt(known, IMAGE, permit=guard, again=False)
    ironic.restart()
    assert ironic.node(NODE)["provision_state"] == "adopt failed"
    assert isinstance(await backend.adopt(known, IMAGE, permit=guard, again=False), Busy)
    assert ironic.node(NODE)["provision_state"] == "adopting"


async def test_switching_that_was_interrupted_begins_again_and_is_told_when_it_always_is(
    backend, ironic, known, guard
):
    async def switch():
        return await backend.set_power(known, Power.ON, mode=PowerOffMode.SOFT, permit=guard, again=False)

    ironic.change(NODE, provision_state="active", power_state="power off")
    for _ in range(MOST_IN_A_ROW + 1):
        assert isinstance(await switch(), Busy)
        assert ironic.node(NODE)["target_power_state"] == "power on"
        ironic.restart()
    answer = await switch()
    assert isinstance(answer, Failed)
    assert "aborted due to conductor restart" in answer.message


# Deployments


@pytest.mark.parametrize("step", ["", "deploy", "write_image", "prepare_instance_boot"])
async def test_a_deployment_cut_off_before_the_disk_is_complete_begins_again_without_a_cleaning(
    backend, ironic, known, guard, step
):
    await deploying(backend, ironic, known, guard, step)
    ironic.restart()
    assert ironic.node(NODE)["provision_state"] == "deploy failed"
    assert isinstance(await provision(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "deploying"
    ironic.finish(NODE)
    assert await provision(backend, known, guard) == Ready(None)
    assert guard.acts == [Act.DEPLOY, Act.DEPLOY]
    assert not any(sight.holds_instance for _, sight in guard.asked)


async def test_what_is_refused_is_not_deployed_again(backend, ironic, known, guard):
    await deploying(backend, ironic, known, guard, "deploy")
    ironic.restart()
    guard.refuses = {Act.DEPLOY}
    assert await provision(backend, known, guard) == Busy("nobody asked for deploy")
    assert ironic.node(NODE)["provision_state"] == "deploy failed"


async def test_the_unfinished_deployment_of_somebody_else_is_not_gone_on_with(backend, ironic, known, guard):
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.restart()
    ironic.change(NODE, instance_uuid="somebody-else")
    assert isinstance(await provision(backend, known, guard), Failed)
    assert ironic.asked("states/power") == 0


async def test_a_deployment_that_failed_is_still_told(backend, ironic, known, guard):
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.fail(NODE, "Deploy step deploy.boot_instance failed: no power", remember=False)
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Failed)
    assert "no power" in answer.message
    assert ironic.asked("states/power") == 0


async def test_a_deployment_that_is_always_cut_off_is_told_in_the_end(backend, ironic, known, guard):
    await deploying(backend, ironic, known, guard, "deploy")
    for _ in range(MOST_IN_A_ROW):
        ironic.restart()
        assert isinstance(await provision(backend, known, guard), Busy)
        assert ironic.node(NODE)["provision_state"] == "deploying"
    ironic.restart()
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Failed)
    assert "can't be resumed" in answer.message


async def test_a_deployment_cut_off_at_its_last_step_is_finished_by_switching_on(
    backend, ironic, known, guard
):
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.change(NODE, power_state="power on")  # What Ironic believes: the ramdisk went off by itself.
    ironic.restart()
    answer = await provision(backend, known, guard)
    assert answer == Busy("the image is written; starting the host from its disk")
    assert isinstance(await provision(backend, known, guard), Busy)
    switched(ironic, "power on")
    assert await provision(backend, known, guard) == Ready(None)
    assert guard.acts == [Act.DEPLOY]
    assert ironic.asked("states/power") == 1


async def test_an_ironic_that_dies_again_while_it_switches_on_is_asked_again(backend, ironic, known, guard):
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.restart()
    for _ in range(3):
        assert isinstance(await provision(backend, known, guard), Busy)
        assert ironic.node(NODE)["target_power_state"] == "power on"
        ironic.restart()
    await provision(backend, known, guard)
    switched(ironic, "power on")
    assert await provision(backend, known, guard) == Ready(None)
    assert guard.acts == [Act.DEPLOY]


async def test_a_host_that_cannot_be_switched_on_is_told_with_the_reason(backend, ironic, known, guard):
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.restart()
    await provision(backend, known, guard)
    ironic.change(NODE, power_state="power off", target_power_state=None, last_error=POWER_FAILED)
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Failed)
    assert "the image is on the disk" in answer.message
    assert "no answer" in answer.message


async def test_a_host_that_must_not_be_switched_off_is_reset_into_its_system(backend, ironic, known, guard):
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.change(NODE, disable_power_off=True, power_state="power on")
    ironic.restart()
    guard.refuses = {Act.POWER_OFF}
    assert await provision(backend, known, guard) == Busy("nobody asked for power off")
    assert ironic.power_targets == []
    guard.refuses = set()
    assert isinstance(await provision(backend, known, guard), Busy)
    assert ironic.power_targets == ["rebooting"]
    switched(ironic, "power on")
    assert await provision(backend, known, guard) == Ready(None)


async def test_a_ramdisk_that_was_being_stopped_is_stopped_softly_before_the_host_starts(
    backend, ironic, known, guard
):
    await deploying(backend, ironic, known, guard, "tear_down_agent")
    ironic.restart()
    assert await provision(backend, known, guard) == Busy("the image is written; stopping the ramdisk")
    switched(ironic, "power off")
    assert isinstance(await provision(backend, known, guard), Busy)
    switched(ironic, "power on")
    assert await provision(backend, known, guard) == Ready(None)
    assert ironic.power_targets == ["soft power off", "power on"]
    assert guard.acts == [Act.DEPLOY, Act.POWER_OFF]
    assert not guard.asked[-1][1].holds_instance


async def test_a_system_that_was_started_is_not_taken_for_the_ramdisk_by_another_operator(
    backend, ironic, known, guard, where
):
    await deploying(backend, ironic, known, guard, "tear_down_agent")
    ironic.restart()
    await provision(backend, known, guard)
    switched(ironic, "power off")
    await provision(backend, known, guard)
    switched(ironic, "power on")
    async with IronicProvisioner(where, None) as another:
        assert isinstance(await provision(another, known, guard), Busy)
        switched(ironic, "power on")
        assert await provision(another, known, guard) == Ready(None)
    assert ironic.power_targets == ["soft power off", "power on", "power on"]


@pytest.mark.parametrize("offered", [True, False])
async def test_where_the_ramdisk_does_not_stop_softly_all_begins_again(
    backend, ironic, known, guard, offered
):
    await deploying(backend, ironic, known, guard, "tear_down_agent")
    ironic.change(NODE, power_state="power on")
    ironic.no_soft_power = not offered
    ironic.restart()
    assert isinstance(await provision(backend, known, guard), Busy)
    if offered:
        ironic.change(NODE, target_power_state=None, last_error=POWER_FAILED)
        assert isinstance(await provision(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "deploying"
    assert "power off" not in ironic.power_targets


# What follows: the running host comes under management again


@pytest.fixture
async def finished(backend, ironic, known, guard) -> HostRef:
    """A host whose deployment was cut off at its last step and finished: it runs, and Ironic says that it failed."""
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.restart()
    await provision(backend, known, guard)
    switched(ironic, "power on")
    assert await provision(backend, known, guard) == Ready(None)
    assert ironic.node(NODE)["provision_state"] == "deploy failed"
    return known


async def adopted_anew(backend, ironic, host, access, guard) -> None:
    """The passes of a controller until the host is managed again."""
    assert isinstance(await backend.adopt(host, IMAGE, permit=guard, again=False), NotRegistered)
    assert not ironic.nodes
    assert isinstance(await backend.register(host, access, credentials_changed=False, again=False), Busy)
    ironic.finish(NODE)
    known = await registered(backend, host, access)
    assert known.backend_id != host.backend_id
    assert isinstance(await backend.adopt(known, IMAGE, permit=guard, again=False), Busy)
    ironic.finish(NODE)
    assert await backend.adopt(known, IMAGE, permit=guard, again=False) == Ready(None)
    node = ironic.node(NODE)
    assert (node["provision_state"], node["instance_uuid"]) == ("active", host.uid)
    assert ironic.ports[MAC]["node_uuid"] == node["uuid"]


async def test_a_running_host_that_ironic_calls_failed_is_registered_anew_and_adopted(
    backend, ironic, finished, access, guard
):
    before = len(ironic.power_targets)
    await adopted_anew(backend, ironic, finished, access, guard)
    assert guard.acts[-1] is Act.FORGET
    assert guard.asked[-1][1].holds_instance
    assert len(ironic.power_targets) == before


async def test_a_record_is_not_dropped_where_that_is_refused(backend, ironic, finished, guard):
    guard.refuses = {Act.FORGET}
    answer = await backend.adopt(finished, IMAGE, permit=guard, again=False)
    assert answer == Busy("nobody asked for forget")
    assert ironic.nodes


async def test_an_operator_that_is_killed_before_the_record_is_dropped_drops_it_later(
    where: IronicAccess, ironic, finished, access, guard
):
    # Killed between the two calls that it takes; all that it remembered is gone.
    ironic.change(NODE, maintenance=True)
    async with IronicProvisioner(where) as another:
        await adopted_anew(another, ironic, finished, access, guard)


async def test_an_operator_that_is_killed_while_the_host_is_switched_on_asks_again(
    where: IronicAccess, backend, ironic, known, guard
):
    await deploying(backend, ironic, known, guard, "boot_instance")
    ironic.restart()
    await provision(backend, known, guard)
    switched(ironic, "power on")
    async with IronicProvisioner(where) as another:
        assert isinstance(await provision(another, known, guard), Busy)
        switched(ironic, "power on")
        assert await provision(another, known, guard) == Ready(None)
    assert ironic.power_targets == ["power on", "power on"]
    assert guard.acts == [Act.DEPLOY]


@pytest.mark.parametrize("fields", [{"instance_uuid": "somebody-else"}, {"driver_internal_info": {}}])
async def test_a_record_that_is_not_of_a_finished_deployment_of_ours_is_told_before_it_is_dropped(
    backend, ironic, finished, guard, fields
):
    ironic.change(NODE, **fields)
    guard.asked.clear()
    assert isinstance(await backend.adopt(finished, IMAGE, permit=guard, again=False), Failed)
    assert guard.asked == []
    assert ironic.nodes
    assert isinstance(await backend.adopt(finished, IMAGE, permit=guard, again=True), NotRegistered)
    assert guard.acts == [Act.FORGET]
    assert ironic.nodes == {}
