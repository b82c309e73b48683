"""Detaching through the Ironic back end: the record goes, the machine stays as it is, whatever state it is in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fake_ironic import FakeIronic, long_ago
from ironic_orders import NODE, ORDER, Guard

from ingot.provisioner import Act, Busy, HostRef, Inspection, Preparation, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.decisions import Step, Wait
from ingot.provisioner.ironic.detach import DETACH
from ingot.provisioner.ironic.model import Node
from ingot.provisioner.ironic.rules import Fact, facts_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WAITS = {"inspect wait", "clean wait", "clean hold", "wait call-back", "deploy hold", "service wait"}


@pytest.fixture
def known(ironic: FakeIronic, host: HostRef) -> HostRef:
    node = ironic.add_node(NODE, "active", power_state="power on", instance_uuid=host.uid)
    return replace(host, backend_id=node["uuid"])


@pytest.mark.parametrize(
    "state", ["active", "manageable", "available", "deploy failed", "clean failed", "error", "enroll"]
)
async def test_a_host_is_forgotten_and_its_machine_not_touched(backend, ironic, known, guard: Guard, state):
    ironic.change(NODE, provision_state=state)
    assert await backend.detach(known, force=False, permit=guard) == Ready(None)
    assert ironic.nodes == {}
    assert guard.acts == [Act.DETACH]
    assert ironic.power_targets == []
    assert ironic.asked("states/provision") == 0
    # Once more is no harm.
    assert await backend.detach(known, force=False, permit=guard) == Ready(None)


async def test_a_host_that_may_not_be_detached_stays(backend, ironic, known, guard: Guard):
    guard.refuses = {Act.DETACH}
    answer = await backend.detach(known, force=False, permit=guard)
    assert answer == Busy("nobody asked for detach")
    assert ironic.nodes


async def test_what_is_under_way_is_waited_for(backend, ironic, known, guard: Guard):
    ironic.change(NODE, provision_state="deploying")
    answer = await backend.detach(known, force=True, permit=guard)
    assert isinstance(answer, Busy)
    assert "detached as soon as that is over" in answer.why
    assert guard.acts == []


async def test_what_waits_for_its_ramdisk_is_given_up_by_force_alone(backend, ironic, known, guard: Guard):
    ironic.change(NODE, provision_state="wait call-back")
    answer = await backend.detach(known, force=False, permit=guard)
    assert isinstance(answer, Busy)
    assert '{"force": true}' in answer.why
    assert isinstance(await backend.detach(known, force=True, permit=guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "deploy failed"
    assert await backend.detach(known, force=True, permit=guard) == Ready(None)
    assert ironic.nodes == {}


@pytest.mark.parametrize("state", sorted(states.HOLDS))
async def test_what_is_on_hold_is_told_with_what_gives_it_up_and_given_up_by_force(
    backend, ironic, known, guard: Guard, state
):
    ironic.change(NODE, provision_state=state)
    wanted = Inspection(renewal="x")
    for answer in (
        await backend.inspect(known, wanted, permit=guard, again=True),
        await backend.prepare(known, Preparation(name="x"), permit=guard, again=True),
        await backend.provision(known, ORDER, permit=guard, again=True),
        await backend.deprovision(known, automated_cleaning=True, permit=guard, again=True),
        await backend.detach(known, force=False, permit=guard),
    ):
        assert isinstance(answer, Busy)
        assert "on hold" in answer.why
        assert "`ingot host detach --force`, then `ingot host attach`" in answer.why
    assert await backend.detach(known, force=True, permit=guard) == Ready(None)
    assert ironic.nodes == {}
    assert ironic.verbs == []
    assert ironic.power_targets == []
    assert guard.acts == [Act.DETACH]


@pytest.mark.parametrize("verb", ["deprovision", "detach", "delete"])
async def test_a_host_whose_bmc_is_dead_for_good_can_be_let_go_and_says_how(
    backend, ironic, known, guard: Guard, verb
):
    ironic.change(NODE, maintenance=True, fault="power failure")
    if verb == "deprovision":
        answer = await backend.deprovision(known, automated_cleaning=True, permit=guard, again=True)
        assert isinstance(answer, Busy)
        assert "If it is dead for good" in answer.why
        assert "`ingot host detach --force`" in answer.why
        return
    let_go = (
        backend.delete(known, permit=guard)
        if verb == "delete"
        else backend.detach(known, force=True, permit=guard)
    )
    assert await let_go == Ready(None)
    assert ironic.nodes == {}
    assert ironic.power_targets == []


async def test_an_ironic_that_cannot_abort_deployments_forgets_without(backend, ironic, known, guard: Guard):
    ironic.newest = "1.109"
    ironic.change(NODE, provision_state="wait call-back")
    assert await backend.detach(known, force=True, permit=guard) == Ready(None)
    assert ironic.asked("states/provision") == 0


async def test_what_hangs_is_not_waited_for(backend, ironic, known, guard: Guard):
    ironic.change(NODE, provision_state="deploying")
    ironic.node(NODE)["provision_updated_at"] = long_ago(minutes=90)
    assert await backend.detach(known, force=False, permit=guard) == Ready(None)


@pytest.mark.parametrize("aborts", [True, False])
@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("state", states.ALL)
def test_no_state_is_a_dead_end(state: str, force: bool, aborts: bool):
    """Every state goes, is ended, or is waited for because Ironic ends it; and by force none is waited for at a ramdisk."""
    node = Node(uuid="u", provision_state=state)
    order = {Fact.FORCE: force, Fact.ABORTS_DEPLOYMENTS: aborts}
    decision = DETACH.decide(node, facts_of(node, NOW, order))
    if not states.is_busy(state):
        assert decision is Step.DELETE
    elif force and state in WAITS:
        assert decision in (Step.ABORT, Step.DELETE)
    elif not force:
        assert isinstance(decision, Wait)
