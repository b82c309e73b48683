"""Registering a host with Ironic: made once, found again, and its credentials proven."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from fake_ironic import FakeIronic, long_ago
from ironic_orders import MAC, NODE, until

from ingot.provisioner import (
    Access,
    BackendUnavailable,
    Busy,
    Credentials,
    Failed,
    HostRef,
    NotRegistered,
    Power,
    PowerOffMode,
    Ready,
)
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner
from ingot.trust import Secret

WRONG = "HTTP GET https://127.0.0.1:8443/redfish/v1/Systems/1 returned code 401. Base.1.0: no"


async def register(
    backend: IronicProvisioner, host: HostRef, access: Access, *, changed: bool = False, again: bool = False
):
    return await backend.register(host, access, credentials_changed=changed, again=again)


async def registered(
    backend: IronicProvisioner, ironic: FakeIronic, host: HostRef, access: Access
) -> HostRef:
    """The way a host goes when all is well."""
    assert isinstance(await register(backend, host, access, changed=True), Busy)
    ironic.finish(NODE)
    answer = await register(backend, host, access)
    assert isinstance(answer, Ready)
    return replace(host, backend_id=answer.value.backend_id)


def with_password(access: Access, password: str) -> Access:
    return replace(access, credentials=Credentials(username="admin", password=Secret(password)))


async def test_a_new_host_becomes_a_node_with_its_port_and_is_taken_under_management(
    backend, ironic, host, access
):
    known = await registered(backend, ironic, host, access)

    node = ironic.node(NODE)
    assert known.backend_id == node["uuid"]
    assert node["driver_info"] == {
        "redfish_address": "https://127.0.0.1:8443",
        "redfish_username": "admin",
        "redfish_password": "s3cret",
        "redfish_system_id": "/redfish/v1/Systems/1",
        "deploy_iso": "https://127.0.0.1/ramdisk.iso",
    }
    assert node["boot_interface"] == "redfish-virtual-media"
    assert node["properties"]["capabilities"] == "boot_mode:uefi"
    assert ironic.ports[MAC]["pxe_enabled"] is True


async def test_a_host_that_is_in_line_costs_no_request(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    before = len(ironic.requests)
    assert isinstance(await register(backend, known, access), Ready)
    assert len(ironic.requests) == before


async def test_a_wrong_password_is_told_once_and_tried_again_when_it_is_due(backend, ironic, host, access):
    await register(backend, host, access, changed=True)
    ironic.fail(NODE, WRONG)

    told = await register(backend, host, access)
    assert isinstance(told, Failed)
    assert told.refused_credentials
    assert "the BMC at https://127.0.0.1:8443 refused the user name or password (HTTP 401)" in told.message
    assert ironic.node(NODE)["provision_state"] == "enroll"

    assert isinstance(await register(backend, host, access, again=True), Busy)
    assert ironic.node(NODE)["provision_state"] == "verifying"


async def test_an_ironic_that_had_nobody_for_a_host_is_asked_again_and_nobody_is_told(
    backend, ironic, host, access
):
    ironic.no_worker_for = "manage"
    with pytest.raises(BackendUnavailable):
        await register(backend, host, access, changed=True)
    assert isinstance(await register(backend, host, access), Busy)
    assert ironic.node(NODE)["provision_state"] == "verifying"


async def test_a_second_failure_is_told_although_the_caller_still_means_the_first(
    backend, ironic, host, access
):
    await register(backend, host, access, changed=True)
    ironic.fail(NODE, WRONG)
    await register(backend, host, access)
    await register(backend, host, access, again=True)
    ironic.fail(NODE, WRONG)
    assert isinstance(await register(backend, host, access, again=True), Failed)


async def test_a_corrected_password_is_handed_on_and_tried_at_once(backend, ironic, host, access):
    await register(backend, host, with_password(access, "wrong"), changed=True)
    ironic.fail(NODE, WRONG)
    await register(backend, host, with_password(access, "wrong"))

    assert isinstance(await register(backend, host, access, changed=True), Busy)
    assert ironic.node(NODE)["driver_info"]["redfish_password"] == "s3cret"
    assert ironic.node(NODE)["provision_state"] == "verifying"


async def test_new_credentials_of_a_managed_host_are_tried_without_touching_it(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "n3w"
    changed = with_password(access, "n3w")

    assert isinstance(await register(backend, known, changed, changed=True), Busy)
    await until(lambda: ironic.asked("boot_device") == 1)
    answer = await settled(backend, known, changed)
    assert isinstance(answer, Ready)
    assert ironic.node(NODE)["driver_info"]["redfish_password"] == "n3w"
    assert ironic.asked("states/power") == 0


async def test_power_that_could_not_be_switched_with_the_old_credentials_is_asked_for_again_with_the_new(
    backend, ironic, plugin, host, access, guard
):
    host = await registered(backend, ironic, host, access)
    ironic.change(NODE, power_state="power on")
    await plugin.delivered()
    off = partial(backend.set_power, host, Power.OFF, mode=PowerOffMode.HARD, permit=guard)
    assert isinstance(await off(again=False), Busy)
    ironic.change(NODE, target_power_state=None, last_error="HTTP POST returned code 401")
    await plugin.delivered()
    assert isinstance(await off(again=False), Failed)
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "n3w"
    changed = with_password(access, "n3w")
    await register(backend, host, changed, changed=True)
    assert isinstance(await off(again=False), Busy)


async def test_new_credentials_that_do_not_work_are_told_and_tried_again_when_due(
    backend, ironic, host, access
):
    known = await registered(backend, ironic, host, access)
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "other"
    changed = with_password(access, "n3w")

    await register(backend, known, changed, changed=True)
    told = await settled(backend, known, changed)
    assert isinstance(told, Failed)
    assert told.refused_credentials
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "n3w"
    assert isinstance(await register(backend, known, changed, again=True), Busy)
    assert isinstance(await settled(backend, known, changed), Ready)


async def test_new_credentials_that_ironic_could_not_try_are_tried_again_before_they_count(
    backend, ironic, host, access
):
    known = await registered(backend, ironic, host, access)
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "other"
    changed = with_password(access, "n3w")

    ironic.trials_lost = 1
    await register(backend, known, changed, changed=True)
    with pytest.raises(BackendUnavailable):
        await settled(backend, known, changed)
    assert isinstance(await register(backend, known, changed, changed=True), Busy)
    assert isinstance(await settled(backend, known, changed), Failed)


async def test_new_credentials_that_are_being_tried_do_not_count_before_the_bmc_has_answered(
    backend, ironic, host, access
):
    known = await registered(backend, ironic, host, access)
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "other"

    await register(backend, known, with_password(access, "n3w"), changed=True)
    # The Secret is not read again while it is the same.
    told = await settled(backend, known, replace(access, credentials=None))
    assert isinstance(told, Failed)
    assert told.refused_credentials


async def test_new_credentials_that_ironic_takes_during_an_inspection_are_tried_before_they_count(
    backend, ironic, host, access
):
    known = await registered(backend, ironic, host, access)
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "other"
    ironic.change(NODE, provision_state="inspect wait", target_provision_state="manageable")
    changed = with_password(access, "n3w")

    assert isinstance(await register(backend, known, changed, changed=True), Busy)
    told = await settled(backend, known, changed)
    assert isinstance(told, Failed)
    assert told.refused_credentials
    ironic.change(NODE, provision_state="manageable", target_provision_state=None)
    assert isinstance(await settled(backend, known, changed), Failed)


async def test_new_credentials_are_tried_although_a_port_cannot_be_made(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    ironic.bmc_passwords["https://127.0.0.1:8443"] = "other"
    other = ironic.add_node("rack~h2")
    mac = "52:54:00:00:00:77"
    ironic.ports[mac] = {"uuid": "p", "address": mac, "node_uuid": other["uuid"], "pxe_enabled": True}
    changed = replace(with_password(access, "n3w"), boot_mac=mac)

    await register(backend, known, changed, changed=True)
    await until(lambda: ironic.asked("boot_device") == 1)
    told = await settled(backend, known, replace(changed, boot_mac=MAC))
    assert isinstance(told, Failed)
    assert told.refused_credentials


async def settled(backend: IronicProvisioner, host: HostRef, access: Access):
    """Asks until the answer is no longer Busy."""
    async with asyncio.timeout(20):
        while isinstance(answer := await register(backend, host, access), Busy):  # noqa: ASYNC110 - polls on purpose
            await asyncio.sleep(0.01)
    return answer


async def test_credentials_that_change_during_a_deployment_are_handed_on_after_it(
    backend, ironic, host, access
):
    known = await registered(backend, ironic, host, access)
    ironic.change(NODE, provision_state="deploying", target_provision_state="active")
    changed = with_password(access, "n3w")

    answer = await register(backend, known, changed, changed=True)
    assert isinstance(answer, Busy)
    assert "handed on afterwards" in answer.why
    ironic.change(NODE, provision_state="active")
    # The caller says only once that they changed.
    await settled(backend, known, changed)
    assert ironic.node(NODE)["driver_info"]["redfish_password"] == "n3w"


async def test_a_killed_operator_finds_its_half_registered_node_by_name(
    where: IronicAccess, ironic, host, access
):
    async with IronicProvisioner(where) as first:
        await register(first, host, access, changed=True)
    ironic.change(NODE, provision_state="enroll")
    async with IronicProvisioner(where) as second:
        assert isinstance(await register(second, host, access), Busy)
    assert len(ironic.nodes) == 1
    assert ironic.node(NODE)["provision_state"] == "verifying"


async def test_two_that_create_the_same_node_end_with_one(backend, ironic, host, access, where):
    async with IronicProvisioner(where) as other:
        await asyncio.gather(
            register(backend, host, access, changed=True), register(other, host, access, changed=True)
        )
    assert len(ironic.nodes) == 1


async def test_a_node_without_a_name_is_found_by_its_mac_address_and_gets_ours(backend, ironic, host, access):
    node = ironic.add_node(None)
    ironic.ports[MAC] = {"uuid": "p", "address": MAC, "node_uuid": node["uuid"], "pxe_enabled": True}
    assert isinstance(await settled(backend, host, access), Ready)
    assert node["name"] == NODE
    assert len(ironic.nodes) == 1


async def test_a_mac_address_of_another_host_is_refused_with_its_name(backend, ironic, host, access):
    node = ironic.add_node("rack~h2")
    ironic.ports[MAC] = {"uuid": "p", "address": MAC, "node_uuid": node["uuid"], "pxe_enabled": True}
    answer = await register(backend, host, access, changed=True)
    assert isinstance(answer, Failed)
    assert f"the MAC address {MAC} already belongs to the host rack/h2" in answer.message
    assert MAC in answer.message
    assert len(ironic.nodes) == 1


@pytest.mark.parametrize("state", ["active", "deploy failed", "adopt failed"])
async def test_a_machine_that_runs_somebody_elses_system_is_refused_and_left_alone(
    backend, ironic, host, access, state
):
    ironic.add_node(NODE, state, instance_uuid="somebody-else")
    answer = await backend.register(host, access, credentials_changed=True, again=False)
    assert isinstance(answer, Failed)
    assert "another operating system runs on it" in answer.message
    assert "externallyProvisioned" in answer.message
    assert all(request.startswith("GET ") for request in ironic.requests)


async def test_an_id_of_a_node_that_is_gone_gives_nobody_a_right_to_what_runs(backend, ironic, host, access):
    ironic.add_node(NODE, "active", instance_uuid="somebody-else")
    stale = replace(host, backend_id="of-a-node-that-is-gone")
    answer = await backend.register(stale, access, credentials_changed=True, again=False)
    assert isinstance(answer, Failed)
    assert "another operating system runs on it" in answer.message
    assert all(request.startswith("GET ") for request in ironic.requests)


async def test_a_machine_that_is_to_be_managed_as_it_runs_is_taken(backend, ironic, host, access):
    ironic.add_node(NODE, "active", instance_uuid="somebody-else")
    answer = await backend.register(
        host, replace(access, runs_a_system=True), credentials_changed=True, again=False
    )
    assert not isinstance(answer, Failed)


async def test_a_database_from_a_backup_is_brought_in_line_once_ironic_has_started(
    backend, ironic, plugin, host, access
):
    """The node is the one it was, with the settings that it had then."""
    known = await registered(backend, ironic, host, access)
    plugin.heartbeat()
    await plugin.delivered()
    assert isinstance(await register(backend, known, access), Ready)
    wanted = dict(ironic.node(NODE)["driver_info"])
    ironic.node(NODE)["driver_info"] = wanted | {"redfish_username": "of-before", "redfish_password": "old"}
    plugin.sender += "-again"
    plugin.heartbeat()
    await plugin.delivered()
    without = replace(access, credentials=None)
    assert isinstance(await register(backend, known, without), NotRegistered)
    answer = await register(backend, known, access)
    assert isinstance(answer, Busy)
    assert "trying the new credentials" in answer.why
    assert ironic.node(NODE)["driver_info"] == wanted


async def test_after_the_database_is_lost_the_host_is_registered_anew(backend, ironic, host, access, guard):
    known = await registered(backend, ironic, host, access)
    ironic.lose_database()
    assert (await backend.adopt(known, None, permit=guard, again=False)).why  # notices that the node is gone
    assert isinstance(await register(backend, known, access), Busy)
    assert ironic.node(NODE)["uuid"] != known.backend_id
    assert ironic.node(NODE)["driver_info"]["redfish_password"] == "s3cret"


async def test_a_changed_setting_is_patched_and_nothing_else(backend, ironic, host, access):
    known = await registered(backend, ironic, host, access)
    ironic.node(NODE)["driver_info"]["somebody_elses"] = "key"
    answer = await register(
        backend, known, replace(access, automated_cleaning=False, verify_certificate=False)
    )
    assert isinstance(answer, Ready)
    node = ironic.node(NODE)
    assert node["automated_clean"] is False
    assert node["driver_info"]["redfish_verify_ca"] is False
    assert node["driver_info"]["somebody_elses"] == "key"
    assert node["driver_info"]["redfish_password"] == "s3cret"


async def test_a_scheme_that_ironic_has_dropped_is_refused_with_what_to_use(backend, ironic, host, access):
    answer = await register(backend, host, replace(access, address="irmc://127.0.0.1"))
    assert isinstance(answer, Failed)
    assert "irmc" in answer.message
    assert "redfish-virtualmedia" in answer.message
    assert not ironic.nodes


async def test_a_verification_that_hangs_is_told(backend, ironic, host, access):
    await register(backend, host, access, changed=True)
    ironic.node(NODE)["provision_updated_at"] = long_ago(30)
    answer = await register(backend, host, access)
    assert isinstance(answer, Failed)
    assert "no progress since" in answer.message


async def test_no_password_is_in_a_message_or_repr(backend, ironic, host, access):
    ironic.invalid_reason = "x"
    await register(backend, host, access, changed=True)
    ironic.fail(NODE, "connecting to https://admin:s3cret@127.0.0.1 failed, password=s3cret")
    answer = await register(backend, host, access)
    assert isinstance(answer, Failed)
    assert "s3cret" not in answer.message
    assert "s3cret" not in repr(access)
