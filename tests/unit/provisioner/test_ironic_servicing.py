"""Servicing through the Ironic back end: the firmware of a machine in use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic, long_ago
from ironic_orders import NODE, Guard

from ingot.api.hostfirmwarecomponents import FirmwareUpdate
from ingot.provisioner import (
    Act,
    BackendUnavailable,
    Busy,
    Failed,
    FirmwareChange,
    HostRef,
    NotRegistered,
    Ready,
    Service,
)
from ingot.provisioner.ironic import IronicProvisioner

UPDATE = Service(
    name="one",
    firmware=FirmwareChange(
        settings={"Turbo": "Enabled"},
        updates=(FirmwareUpdate(component="bmc", url="https://files/bmc.bin"),),
    ),
)
NOTHING = Service(name="nothing")
SERVICING = Busy("changing the firmware; the system is started again afterwards", begun=True)


@pytest.fixture
def known(ironic: FakeIronic, host: HostRef) -> HostRef:
    fields = {"power_state": "power on", "instance_uuid": host.uid, "provision_updated_at": long_ago(5)}
    node = ironic.add_node(NODE, "active", **fields)
    return replace(host, backend_id=node["uuid"])


async def service(backend, host, guard: Guard, wanted: Service = UPDATE, *, again: bool = False):
    return await backend.service(host, wanted, permit=guard, again=again)


async def test_the_firmware_of_a_running_host_is_changed_once(backend, ironic, plugin, known, guard):
    assert await service(backend, known, guard) == SERVICING
    await plugin.delivered()
    assert await service(backend, known, guard) == SERVICING
    ironic.finish(NODE)
    await plugin.delivered()
    for _ in range(2):
        assert await service(backend, known, guard) == Ready(None)
    assert ironic.service_steps == [
        [
            {
                "interface": "bios",
                "step": "apply_configuration",
                "args": {"settings": [{"name": "Turbo", "value": "Enabled"}]},
            },
            {
                "interface": "firmware",
                "step": "update",
                "args": {"settings": [{"component": "bmc", "url": "https://files/bmc.bin"}]},
            },
        ]
    ]
    assert guard.acts == [Act.SERVICE]
    assert guard.asked[0][1].holds_instance


async def test_nothing_is_changed_where_that_is_refused(backend, ironic, known, guard):
    guard.refuses = {Act.SERVICE}
    assert await service(backend, known, guard) == Busy("nobody asked for service")
    assert ironic.verbs == []
    assert ironic.node(NODE)["extra"] == {}


@pytest.mark.parametrize("state", ["manageable", "available", "deploy failed", "rescue"])
async def test_only_a_running_host_is_serviced_and_any_other_is_taken_over_first(
    backend, ironic, known, guard, state
):
    ironic.change(NODE, provision_state=state)
    answer = await service(backend, known, guard, again=True)
    assert isinstance(answer, NotRegistered)
    assert "taken over first" in answer.why
    assert ironic.verbs == []


async def test_a_service_is_neither_lost_nor_done_twice_when_the_operator_dies(
    backend, ironic, where, known, guard
):
    ironic.lost_verb = "service"
    with pytest.raises(BackendUnavailable):
        await service(backend, known, guard)
    async with IronicProvisioner(where) as second:
        assert await service(second, known, guard) == SERVICING
        ironic.finish(NODE)
    async with IronicProvisioner(where) as third:
        assert await service(third, known, guard) == Ready(None)
    assert len(ironic.service_steps) == 1


async def test_a_service_for_which_ironic_had_nobody_was_not_done(backend, ironic, known, guard):
    ironic.no_worker_for = "service"
    with pytest.raises(BackendUnavailable):
        await service(backend, known, guard)
    assert await service(backend, known, guard) == SERVICING
    ironic.finish(NODE)
    assert await service(backend, known, guard) == Ready(None)
    assert len(ironic.service_steps) == 1


async def test_an_ironic_that_dies_in_the_middle_is_told_before_anything_is_flashed_again(
    backend, ironic, known, guard
):
    await service(backend, known, guard)
    ironic.restart()
    told = await service(backend, known, guard)
    assert isinstance(told, Failed)
    assert "can't be resumed by conductor" in told.message
    assert len(ironic.service_steps) == 1
    assert await service(backend, known, guard, again=True) == SERVICING
    ironic.finish(NODE)
    assert await service(backend, known, guard) == Ready(None)


async def test_a_failure_is_told_and_the_service_repeated_when_due(backend, ironic, where, known, guard):
    await service(backend, known, guard)
    ironic.fail(NODE, "bad signature", maintenance=True, fault="service failure")
    told = await service(backend, known, guard)
    assert told == Failed("changing the firmware failed: bad signature")
    # The note of the next attempt is written, and the operator dies before Ironic hears of it.
    ironic.lost_verb = "service"
    with pytest.raises(BackendUnavailable):
        await service(backend, known, guard, again=True)
    assert ironic.node(NODE)["maintenance"] is False
    async with IronicProvisioner(where) as second:
        assert await service(second, known, guard, again=False) == SERVICING
        ironic.finish(NODE)
        assert await service(second, known, guard) == Ready(None)
    assert len(ironic.service_steps) == 2


async def test_another_order_waits_only_until_the_failure_was_told(backend, ironic, known, guard):
    await service(backend, known, guard)
    ironic.fail(NODE, "bad signature", maintenance=True, fault="service failure")
    told = await service(backend, known, guard, replace(UPDATE, name="two"))
    assert told == Failed("changing the firmware failed: bad signature")
    assert await service(backend, known, guard, replace(UPDATE, name="two")) == SERVICING


async def test_a_machine_that_never_takes_a_setting_is_told_although_its_ramdisk_reports(
    backend, ironic, known, guard
):
    await service(backend, known, guard)
    ironic.change(NODE, provision_state="service wait")
    assert isinstance(await service(backend, known, guard), Busy)
    ironic.node(NODE)["extra"]["ingot_service"]["at"] -= 7 * 3600
    told = await service(backend, known, guard)
    assert isinstance(told, Failed)
    assert "under way for more than 6 hours" in told.message
    await service(backend, known, guard, again=True)
    assert ironic.verbs == ["service", "abort"]


async def test_a_ramdisk_that_reports_no_more_is_told_and_then_given_up(backend, ironic, known, guard):
    await service(backend, known, guard)
    ironic.change(NODE, provision_state="service wait")
    ironic.node(NODE)["provision_updated_at"] = long_ago(90)
    told = await service(backend, known, guard)
    assert isinstance(told, Failed)
    assert "no progress since" in told.message
    await service(backend, known, guard, again=True)
    assert ironic.verbs == ["service", "abort"]
    # What was given up was not done.
    assert await service(backend, known, guard) == SERVICING


async def test_a_service_that_somebody_ended_in_ironic_was_not_done(backend, ironic, known, guard):
    await service(backend, known, guard)
    error = "By request, the service operation was aborted"
    ironic.change(NODE, provision_state="active", last_error=error)
    assert await service(backend, known, guard) == SERVICING


@pytest.mark.parametrize("state", ["service wait", "service failed"])
async def test_what_nobody_wants_any_more_is_ended_and_can_be_wanted_again(
    backend, ironic, plugin, known, guard, state
):
    await service(backend, known, guard)
    failed = state == "service failed"
    ironic.change(
        NODE, provision_state=state, maintenance=failed, last_error="it does not go" if failed else None
    )
    await plugin.delivered()
    if failed:
        assert isinstance(await service(backend, known, guard, NOTHING), Failed)
    assert isinstance(await service(backend, known, guard, NOTHING), Busy)
    await plugin.delivered()
    assert await service(backend, known, guard, NOTHING) == Ready(None)
    assert ironic.node(NODE)["provision_state"] == "active"
    assert ironic.node(NODE)["extra"] == {}
    assert ironic.verbs == ["service", "abort"]
    assert guard.acts == [Act.SERVICE, Act.SERVICE]
    assert await service(backend, known, guard) == SERVICING


async def test_what_cannot_be_interrupted_is_waited_for(backend, ironic, known, guard):
    await service(backend, known, guard)
    assert await service(backend, known, guard, NOTHING) == replace(SERVICING, begun=False)
    ironic.finish(NODE)
    assert await service(backend, known, guard, NOTHING) == Ready(None)


async def test_a_host_nobody_ever_serviced_costs_no_change(backend, ironic, known, guard):
    assert await service(backend, known, guard, NOTHING) == Ready(None)
    assert [request for request in ironic.requests if not request.startswith("GET")] == []


async def test_a_host_in_service_counts_as_managed(backend, ironic, known, guard):
    for state in ("servicing", "service wait", "service failed"):
        ironic.change(NODE, provision_state=state)
        assert await backend.adopt(known, None, permit=guard, again=False) == Ready(None)


async def test_maintenance_that_a_failed_abort_left_behind_is_lifted(backend, ironic, known, guard):
    ironic.change(NODE, maintenance=True, fault="service failure")
    assert await service(backend, known, guard) == SERVICING
