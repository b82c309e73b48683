"""Switching a host on and off, and its vitals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic, long_ago
from ironic_orders import NODE, Guard

from ingot.provisioner import (
    Act,
    Busy,
    Failed,
    HostRef,
    Inspection,
    NotRegistered,
    Power,
    PowerOffMode,
    Ready,
    Vitals,
)
from ingot.provisioner.ironic import IronicProvisioner


@pytest.fixture
def known(ironic: FakeIronic, host: HostRef) -> HostRef:
    node = ironic.add_node(
        NODE, "active", power_state="power off", driver_info={"redfish_address": "https://127.0.0.1:1"}
    )
    return replace(host, backend_id=node["uuid"])


async def switch(
    backend: IronicProvisioner,
    host: HostRef,
    wanted: Power,
    guard: Guard,
    *,
    again: bool = False,
    mode=PowerOffMode.SOFT,
):
    return await backend.set_power(host, wanted, mode=mode, permit=guard, again=again)


async def test_a_host_is_switched_on_without_asking_anybody(backend, ironic, plugin, known, guard):
    assert await switch(backend, known, Power.ON, guard) == Busy("switching the power on")
    assert await switch(backend, known, Power.ON, guard) == Busy("switching the power on")
    ironic.change(NODE, power_state="power on", target_power_state=None)
    await plugin.delivered()
    assert await switch(backend, known, Power.ON, guard) == Ready(None)
    assert ironic.asked("PUT") == 1
    assert guard.acts == []


async def test_a_host_is_switched_off_only_with_a_permit(backend, ironic, known, guard):
    ironic.change(NODE, power_state="power on")
    guard.refuses = {Act.POWER_OFF}
    assert await switch(backend, known, Power.OFF, guard) == Busy("nobody asked for power off")
    assert ironic.asked("PUT") == 0
    guard.refuses = set()
    assert isinstance(await switch(backend, known, Power.OFF, guard), Busy)
    assert ironic.node(NODE)["target_power_state"] == "power off"
    sight = guard.asked[-1][1]
    assert sight.powered_on is True
    assert sight.holds_instance


async def test_what_hangs_is_told_to_somebody_who_wants_to_switch(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="cleaning", power_state="power on")
    assert isinstance(await switch(backend, known, Power.OFF, guard), Busy)
    ironic.node(NODE)["provision_updated_at"] = long_ago(90)
    answer = await switch(backend, known, Power.OFF, guard)
    assert isinstance(answer, Failed)
    assert "no progress since" in answer.message
    assert ironic.asked("PUT") == 0


async def test_where_soft_is_not_offered_it_is_switched_off_hard(backend, ironic, known, guard):
    ironic.change(NODE, power_state="power on")
    ironic.no_soft_power = True
    assert isinstance(await switch(backend, known, Power.OFF, guard), Busy)
    assert ironic.asked("states/power") == 2
    assert ironic.node(NODE)["target_power_state"] == "power off"


async def test_a_failure_is_told_once_and_then_tried_anew(backend, ironic, plugin, known, guard):
    await switch(backend, known, Power.ON, guard)
    ironic.change(
        NODE,
        target_power_state=None,
        last_error="Failed to change power state to 'power on': HTTP POST returned code 500",
    )
    await plugin.delivered()
    told = await switch(backend, known, Power.ON, guard, again=True)
    assert isinstance(told, Failed)
    assert "the power cannot be switched on" in told.message
    assert isinstance(await switch(backend, known, Power.ON, guard), Failed)
    assert isinstance(await switch(backend, known, Power.ON, guard, again=True), Busy)
    assert ironic.asked("PUT") == 2


async def test_a_host_that_was_switched_on_and_later_off_by_hand_is_switched_on_again(
    backend, ironic, plugin, known, guard
):
    await switch(backend, known, Power.ON, guard)
    ironic.change(NODE, power_state="power on", target_power_state=None)
    await plugin.delivered()
    assert (await backend.vitals(known)).powered_on is True
    ironic.change(NODE, power_state="power off")
    await plugin.delivered()
    assert await switch(backend, known, Power.ON, guard) == Busy("switching the power on")


async def test_a_host_that_was_being_switched_on_when_it_was_inspected_is_switched_on_afterwards_without_an_error(
    backend, ironic, plugin, known, guard
):
    ironic.change(NODE, provision_state="manageable")
    await switch(backend, known, Power.ON, guard)
    ironic.change(NODE, power_state="power on", target_power_state=None)
    await plugin.delivered()
    assert isinstance(await backend.inspect(known, Inspection(), permit=guard, again=False), Busy)
    ironic.change(NODE, provision_state="manageable", power_state="power off")
    await plugin.delivered()
    assert await switch(backend, known, Power.ON, guard) == Busy("switching the power on")


async def test_a_host_that_must_not_be_switched_off_is_rebooted_once(backend, ironic, plugin, known, guard):
    ironic.change(NODE, power_state="power on", disable_power_off=True)
    assert isinstance(await switch(backend, known, Power.OFF, guard, mode=PowerOffMode.HARD), Busy)
    ironic.change(NODE, target_power_state=None)
    await plugin.delivered()
    assert await switch(backend, known, Power.OFF, guard) == Ready(None)
    assert ironic.asked("PUT") == 1


async def test_power_waits_for_what_ironic_is_doing(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="deploying")
    answer = await switch(backend, known, Power.ON, guard)
    assert isinstance(answer, Busy)
    assert "afterwards" in answer.why
    assert ironic.asked("PUT") == 0


async def test_vitals_come_from_memory(backend, ironic, known):
    ironic.change(NODE, health="WARNING", fault="power failure", power_state=None)
    assert await backend.vitals(known) == Vitals(powered_on=None, power_failure=True, health="Warning")
    before = len(ironic.requests)
    await backend.vitals(known)
    assert len(ironic.requests) == before


async def test_a_host_nobody_knows_has_no_vitals(backend, ironic, host):
    assert isinstance(await backend.vitals(host), NotRegistered)
