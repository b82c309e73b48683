"""The life of a host through the Ironic back end, one verb after the other, with what can go wrong in each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_ironic import FakeIronic, long_ago
from ironic_orders import IMAGE, NODE, ORDER, Guard
from msgspec import structs

from ingot.api.baremetalhost import Image, RootDeviceHints
from ingot.provisioner import (
    Act,
    BackendUnavailable,
    Busy,
    ConfigDrive,
    Failed,
    HostRef,
    Inspection,
    NotRegistered,
    Ready,
)
from ingot.provisioner.ironic import IronicProvisioner
from ingot.provisioner.ironic.client import LOCK_PAUSES
from ingot.trust import Secret

INVENTORY = {
    "cpu": {"architecture": "x86_64", "count": 4},
    "memory": {"physical_mb": 8192},
    "interfaces": [],
    "disks": [],
}


@pytest.fixture
def known(ironic: FakeIronic, host: HostRef) -> HostRef:
    """A host that Ironic has under management."""
    info = {
        "redfish_address": "https://127.0.0.1:8443",
        "redfish_username": "admin",
        "redfish_password": "s3cret",
    }
    node = ironic.add_node(NODE, driver_info=info, power_state="power off", automated_clean=True)
    return replace(host, backend_id=node["uuid"])


async def inspect(
    backend: IronicProvisioner,
    host: HostRef,
    guard: Guard,
    *,
    again: bool = False,
    renewal: str = "",
    restart: bool = False,
):
    wanted = Inspection(renewal=renewal, restart=restart)
    return await backend.inspect(host, wanted, permit=guard, again=again)


async def provision(
    backend: IronicProvisioner, host: HostRef, guard: Guard, order=ORDER, *, again: bool = False
):
    return await backend.provision(host, order, permit=guard, again=again)


async def deprovision(
    backend: IronicProvisioner, host: HostRef, guard: Guard, *, again: bool = False, clean: bool = True
):
    return await backend.deprovision(host, automated_cleaning=clean, permit=guard, again=again)


# Inspecting


async def test_an_inspection_ends_with_what_the_ramdisk_found(backend, ironic, plugin, known, guard):
    assert isinstance(await inspect(backend, known, guard), Busy)
    assert isinstance(await inspect(backend, known, guard), Busy)
    assert ironic.asked("PUT") == 1
    ironic.inspected(NODE, INVENTORY)
    await plugin.delivered()
    answer = await inspect(backend, known, guard)
    assert isinstance(answer, Ready)
    assert answer.value.hardware.ram_mebibytes == 8192
    assert guard.acts == [Act.POWER_OFF]


async def test_a_host_that_was_inspected_is_not_inspected_again(backend, ironic, known, guard):
    ironic.was_inspected(known.backend_id, INVENTORY)
    assert isinstance(await inspect(backend, known, guard), Ready)
    assert ironic.asked("PUT") == 0


async def test_a_wish_to_look_anew_is_fulfilled_once_for_each_name(backend, ironic, known, guard):
    ironic.was_inspected(known.backend_id, INVENTORY)
    for times, name in enumerate(["monday", "tuesday"], 1):
        assert isinstance(await inspect(backend, known, guard, renewal=name), Busy)
        ironic.inspected(NODE, INVENTORY)
        for _ in range(2):
            assert isinstance(await inspect(backend, known, guard, renewal=name), Ready)
        assert ironic.asked("PUT") == times
    assert isinstance(await inspect(backend, known, guard), Ready)
    assert ironic.asked("PUT") == 2


async def test_a_wish_to_look_anew_survives_the_operator(backend, ironic, where, known, guard):
    ironic.was_inspected(known.backend_id, INVENTORY)
    # The operator dies when it has noted the order and Ironic has not heard of it.
    ironic.lost_verb = "inspect"
    with pytest.raises(BackendUnavailable):
        await inspect(backend, known, guard, renewal="monday")
    assert ironic.node(NODE)["provision_state"] == "manageable"
    async with IronicProvisioner(where) as second:
        assert isinstance(await inspect(second, known, guard, renewal="monday"), Busy)
        ironic.inspected(NODE, INVENTORY)
    async with IronicProvisioner(where) as third:
        assert isinstance(await inspect(third, known, guard, renewal="monday"), Ready)
    assert ironic.verbs == ["inspect"]


async def test_a_look_for_which_ironic_had_nobody_is_still_to_be_taken(backend, ironic, known, guard):
    ironic.was_inspected(known.backend_id, INVENTORY)
    ironic.no_worker_for = "inspect"
    with pytest.raises(BackendUnavailable):
        await inspect(backend, known, guard, renewal="monday")
    assert isinstance(await inspect(backend, known, guard, renewal="monday"), Busy)
    assert ironic.verbs == ["inspect"]


async def test_a_failed_look_is_not_taken_for_one_after_something_else_went_on(backend, ironic, known, guard):
    """The inventory that Ironic has is from before the request, whoever moved the node on."""
    ironic.was_inspected(known.backend_id, INVENTORY)
    await inspect(backend, known, guard, renewal="monday")
    ironic.fail(NODE, "no disks found")
    assert isinstance(await deprovision(backend, known, guard), Busy)
    ironic.finish(NODE)
    assert isinstance(await inspect(backend, known, guard, renewal="monday"), Busy)
    assert ironic.node(NODE)["provision_state"] == "inspecting"


async def test_a_ramdisk_that_does_not_come_up_is_booted_once_more_without_an_error(
    backend, ironic, plugin, known, guard
):
    await inspect(backend, known, guard)
    ironic.change(NODE, provision_state="inspect wait")
    await plugin.delivered()
    assert isinstance(await inspect(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "inspect wait"
    assert isinstance(await inspect(backend, known, guard, restart=True), Busy)
    ironic.change(NODE, last_error="Inspection was aborted by request.")
    assert isinstance(await inspect(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "inspecting"
    assert guard.acts == [Act.POWER_OFF, Act.POWER_OFF]


async def test_a_failed_inspection_is_told_with_its_reason_and_repeated_when_due(
    backend, ironic, known, guard
):
    await inspect(backend, known, guard)
    ironic.fail(NODE, "Ramdisk reported error: no disks found", remember=False)
    told = await inspect(backend, known, guard)
    assert isinstance(told, Failed)
    assert "no disks found" in told.message
    assert isinstance(await inspect(backend, known, guard, again=True), Busy)
    assert ironic.node(NODE)["provision_state"] == "inspecting"


async def test_an_inspection_that_ended_without_a_result_is_told_and_repeated_when_due(
    backend, ironic, known, guard
):
    await inspect(backend, known, guard)
    ironic.finish(NODE)
    told = await inspect(backend, known, guard)
    assert isinstance(told, Failed)
    assert "without a result" in told.message
    assert ironic.asked("states/provision") == 1
    assert isinstance(await inspect(backend, known, guard, again=True), Busy)
    assert ironic.asked("states/provision") == 2


async def test_an_inspection_whose_ramdisk_never_reports_is_ended(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="inspect wait")
    ironic.node(NODE)["provision_updated_at"] = long_ago(60)
    assert isinstance(await inspect(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "inspect failed"


async def test_a_running_host_is_never_inspected(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="active")
    answer = await inspect(backend, known, guard, renewal="monday", again=True)
    assert isinstance(answer, Failed)
    assert ironic.asked("PUT") == 0


async def test_an_inspection_that_is_refused_is_not_started(backend, ironic, known, guard):
    guard.refuses = {Act.POWER_OFF}
    answer = await inspect(backend, known, guard)
    assert answer == Busy("nobody asked for power off")
    assert ironic.asked("PUT") == 0


# Provisioning


async def test_provisioning_cleans_deploys_and_ends_with_the_image_and_its_config_drive(
    backend, ironic, known, guard
):
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Busy)
    assert "cleaning the disks" in answer.why
    ironic.finish(NODE)
    assert isinstance(await provision(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "deploying"
    ironic.change(NODE, deploy_step={"step": "write_image", "interface": "deploy"})
    ironic.finish(NODE)
    assert await provision(backend, known, guard) == Ready(None)

    node = ironic.node(NODE)
    assert guard.acts == [Act.CLEAN, Act.DEPLOY]
    assert not any(sight.holds_instance for _, sight in guard.asked)
    assert node["instance_uuid"] == known.uid
    assert node["instance_info"] == {
        "image_source": IMAGE.url,
        "image_disk_format": "raw",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": "ab" * 32,
        "capabilities": {},
    }
    drive = ironic.configdrives[node["uuid"]]
    assert drive["user_data"] == "#cloud-config\n"
    assert drive["meta_data"]["uuid"] == known.uid
    assert drive["meta_data"]["local-hostname"] == "h1"
    assert drive["meta_data"]["role"] == "db"


async def test_waiting_names_the_step_and_costs_one_request_at_most(backend, ironic, known, guard):
    await provision(backend, known, guard)
    ironic.change(NODE, provision_state="clean wait", clean_step={"step": "erase_devices_metadata"})
    first = await provision(backend, known, guard)
    before = len(ironic.requests)
    assert await provision(backend, known, guard) == first
    assert first == Busy("cleaning the disks", "waiting for the ramdisk, step erase_devices_metadata")
    assert len(ironic.requests) == before


@pytest.mark.parametrize(("state", "act"), [("manageable", Act.CLEAN), ("available", Act.DEPLOY)])
async def test_what_is_refused_is_not_done(backend, ironic, known, guard, state, act):
    ironic.change(NODE, provision_state=state)
    guard.refuses = {act}
    assert await provision(backend, known, guard) == Busy(f"nobody asked for {act.value}")
    assert ironic.node(NODE)["provision_state"] == state
    assert ironic.asked("PUT") == 0


async def test_a_failed_deployment_is_told_and_not_repeated_here(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    await provision(backend, known, guard)
    ironic.fail(
        NODE, "Deploy step deploy.write_image failed: Image failed to verify against checksum", remember=False
    )
    for again in (False, True, True):
        answer = await provision(backend, known, guard, again=again)
        assert isinstance(answer, Failed)
        assert "the image does not match its checksum" in answer.message
        assert IMAGE.url in answer.message
    assert ironic.asked("PUT") == 1


async def test_a_failure_that_ironic_gives_no_reason_for_yet_is_told_with_the_reason(
    backend, ironic, known, guard
):
    ironic.change(NODE, provision_state="available")
    await provision(backend, known, guard)
    # A node that is given up is moved first, and cleaned up after; then the reason is written down.
    ironic.change(NODE, provision_state="deploy failed")
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Busy)
    assert "about to say why" in answer.why
    ironic.change(NODE, last_error="Timeout reached while waiting for callback")
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Failed)
    assert "did not report in time" in answer.message


async def test_a_failure_without_any_reason_is_told_in_the_end(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    await provision(backend, known, guard)
    ironic.change(NODE, provision_state="deploy failed")
    ironic.change(NODE, provision_updated_at=long_ago(1))
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Failed)
    assert "Ironic gives no reason" in answer.message


async def test_a_password_in_the_url_of_an_image_is_not_told(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    order = replace(
        ORDER,
        image=structs.replace(IMAGE, url="https://u:hush@127.0.0.1/x"),
    )
    assert "hush" not in (await provision(backend, known, guard, order)).why
    ironic.fail(NODE, "no")
    assert "hush" not in (await provision(backend, known, guard, order)).message


async def test_an_image_that_is_not_there_is_told_as_such(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    await provision(backend, known, guard)
    ironic.fail(
        NODE,
        "Validation of image href failed, reason: Got HTTP code 404 instead of 200 in response to HEAD request.",
    )
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Failed)
    assert "its URL answers HTTP 404" in answer.message


async def test_what_ironic_finds_invalid_is_told_before_anything_is_written(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    ironic.invalid_reason = "image_checksum is missing"
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Failed)
    assert "image_checksum is missing" in answer.message
    assert ironic.node(NODE)["provision_state"] == "available"


async def test_the_hints_of_an_earlier_order_do_not_stay(backend, ironic, known, guard):
    ironic.change(
        NODE,
        provision_state="available",
        instance_info={"root_device": {"name": "s== /dev/sda"}, "boot_iso": "x"},
    )
    await provision(backend, known, guard)
    assert not {"root_device", "boot_iso"} & set(ironic.node(NODE)["instance_info"])


async def test_root_device_hints_reach_ironic_in_its_words(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    hints = RootDeviceHints(
        device_name="/dev/disk/by-path/pci-0", model="SSD", min_size_gigabytes=10, rotational=False
    )
    await provision(backend, known, guard, replace(ORDER, root_device=hints))
    assert ironic.node(NODE)["instance_info"]["root_device"] == {
        "by_path": "s== /dev/disk/by-path/pci-0",
        "model": "<in> SSD",
        "size": ">= 10",
        "rotational": "false",
    }


async def test_another_system_on_the_host_is_never_overwritten(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="active", instance_uuid="somebody-else")
    answer = await provision(backend, known, guard, again=True)
    assert isinstance(answer, Failed)
    assert answer.needs_person
    assert "may be in use and is left alone" in answer.message
    assert ironic.asked("PUT") == 0


async def test_an_image_that_cannot_be_written_is_refused_with_a_sentence(backend, ironic, known, guard):
    image = Image(url="https://127.0.0.1/x.raw", format="raw")
    answer = await provision(backend, known, guard, replace(ORDER, image=image))
    assert isinstance(answer, Failed)
    assert "no checksum" in answer.message
    assert ironic.asked("PUT") == 0


async def test_network_data_that_is_no_yaml_is_told_without_showing_it(backend, ironic, known, guard):
    drive = ConfigDrive(network_data=Secret("links: [\nsecret-gateway: ]}"))
    answer = await provision(backend, known, guard, replace(ORDER, config_drive=drive))
    assert isinstance(answer, Failed)
    assert "network data" in answer.message
    assert "secret-gateway" not in answer.message


async def test_network_data_with_an_impossible_date_is_told(backend, ironic, known, guard):
    drive = ConfigDrive(network_data=Secret("since: 2024-13-45"))
    answer = await provision(backend, known, guard, replace(ORDER, config_drive=drive))
    assert answer == Failed("the network data is neither YAML nor JSON")


async def test_nmstate_never_goes_into_a_config_drive(backend, ironic, known, guard):
    drive = ConfigDrive(network_data=Secret("interfaces: [{name: secret-gateway}]"))
    answer = await provision(backend, known, guard, replace(ORDER, config_drive=drive))
    assert isinstance(answer, Failed)
    assert "the network data is nmstate" in answer.message
    assert "gateway" not in answer.message
    assert ironic.asked("PUT") == 0


async def test_network_data_reaches_ironic_as_an_object(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="available")
    drive = ConfigDrive(network_data=Secret("links:\n- id: eno1\n"))
    await provision(backend, known, guard, replace(ORDER, config_drive=drive))
    assert ironic.configdrives[known.backend_id]["network_data"] == {"links": [{"id": "eno1"}]}


async def test_failed_cleaning_is_told_then_lifted_out_of_maintenance_and_begun_anew(
    backend, ironic, known, guard
):
    await provision(backend, known, guard)
    ironic.fail(
        NODE, "Clean step deploy.erase_devices_metadata failed", maintenance=True, fault="clean failure"
    )
    told = await provision(backend, known, guard)
    assert isinstance(told, Failed)
    assert "cleaning the disks failed" in told.message
    assert isinstance(await provision(backend, known, guard, again=True), Busy)
    assert ironic.node(NODE)["provision_state"] == "cleaning"
    assert ironic.node(NODE)["maintenance"] is False


# Weather


async def test_a_short_lock_is_waited_for_inside_the_call(backend, ironic, known, guard):
    ironic.locks_left = 2
    assert isinstance(await provision(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "cleaning"


async def test_a_long_lock_is_busy_and_the_host_is_announced_afterwards(backend, ironic, known, guard):
    stream = backend.changes()
    ironic.locks_left = len(LOCK_PAUSES) + 1
    answer = await provision(backend, known, guard)
    assert isinstance(answer, Busy)
    assert "busy with the node for a moment" in answer.why
    async for change in stream:
        if change == known.key:
            break
    assert isinstance(await provision(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "cleaning"


async def test_an_ironic_that_answers_500_is_unavailable(backend, ironic, known, guard):
    ironic.errors_left = 100
    with pytest.raises(BackendUnavailable, match="500"):
        await provision(backend, known, guard)


async def test_an_ironic_that_is_gone_is_unavailable(backend, ironic, known, guard):
    await ironic.stop()
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        await provision(backend, known, guard)


async def test_an_ironic_without_a_conductor_takes_no_orders(backend, ironic):
    await backend.check()
    ironic.drivers = []
    with pytest.raises(BackendUnavailable, match="no conductor"):
        await backend.check()


# Deprovisioning


async def test_deprovisioning_stops_cleans_and_ends_available(backend, ironic, plugin, known, guard):
    ironic.change(NODE, provision_state="active", instance_uuid=known.uid)
    assert isinstance(await deprovision(backend, known, guard, clean=False), Busy)
    assert ironic.node(NODE)["automated_clean"] is False
    ironic.change(NODE, provision_state="cleaning")
    assert isinstance(await deprovision(backend, known, guard), Busy)
    ironic.finish(NODE)
    await plugin.delivered()
    assert await deprovision(backend, known, guard) == Ready(None)
    assert guard.acts == [Act.UNDEPLOY]
    assert guard.asked[0][1].holds_instance


async def test_a_deployment_that_waits_for_its_ramdisk_is_ended(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="wait call-back", target_provision_state="active")
    assert isinstance(await deprovision(backend, known, guard), Busy)
    assert ironic.node(NODE)["provision_state"] == "deleting"


async def test_undeploying_what_nobody_asked_for_is_not_done(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="active")
    guard.refuses = {Act.UNDEPLOY}
    assert await deprovision(backend, known, guard) == Busy("nobody asked for undeploy")
    assert ironic.node(NODE)["provision_state"] == "active"


async def test_an_undeploy_that_failed_is_told_and_tried_again_when_due(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="active")
    await deprovision(backend, known, guard)
    ironic.fail(NODE, "power off failed")
    assert isinstance(await deprovision(backend, known, guard), Failed)
    assert isinstance(await deprovision(backend, known, guard, again=True), Busy)
    assert ironic.node(NODE)["provision_state"] == "deleting"


# Adopting


async def test_a_running_host_is_adopted_with_its_image_and_without_a_power_action(
    backend, ironic, known, guard
):
    assert isinstance(await backend.adopt(known, IMAGE, permit=guard, again=False), Busy)
    node = ironic.node(NODE)
    assert node["instance_info"]["image_source"] == IMAGE.url
    assert node["instance_uuid"] == known.uid
    ironic.finish(NODE)
    assert await backend.adopt(known, IMAGE, permit=guard, again=False) == Ready(None)
    assert ironic.asked("states/power") == 0


async def test_a_failed_adoption_is_told_and_tried_again_when_due(backend, ironic, known, guard):
    await backend.adopt(known, IMAGE, permit=guard, again=False)
    ironic.fail(NODE, "the boot interface does not like it")
    told = await backend.adopt(known, IMAGE, permit=guard, again=False)
    assert isinstance(told, Failed)
    assert "does not like it" in told.message
    assert isinstance(await backend.adopt(known, IMAGE, permit=guard, again=True), Busy)


async def test_manual_maintenance_of_a_running_host_is_lifted(backend, ironic, known, guard):
    ironic.change(NODE, provision_state="active", maintenance=True)
    assert await backend.adopt(known, None, permit=guard, again=False) == Ready(None)
    assert ironic.node(NODE)["maintenance"] is False


async def test_a_host_found_available_instead_of_running_is_told_before_it_is_adopted(
    backend, ironic, known, guard
):
    ironic.change(NODE, provision_state="available")
    answer = await backend.adopt(known, IMAGE, permit=guard, again=False)
    assert isinstance(answer, Failed)
    assert "past Ingot" in answer.message
    assert isinstance(await backend.adopt(known, IMAGE, permit=guard, again=True), Busy)
    assert ironic.node(NODE)["provision_state"] == "adopting"


# Deleting


@pytest.mark.parametrize(
    "state", ["enroll", "manageable", "available", "active", "deploy failed", "clean failed", "error"]
)
async def test_a_host_is_forgotten_from_every_state(backend, ironic, known, guard, state):
    ironic.change(NODE, provision_state=state, instance_uuid=known.uid)
    assert await backend.delete(known, permit=guard) == Ready(None)
    assert not ironic.nodes
    assert Act.DELETE in guard.acts
    assert ironic.asked("states/") == 0
    assert await backend.delete(known, permit=guard) == Ready(None)


async def test_deleting_is_refused_where_nobody_asked(backend, ironic, known, guard):
    guard.refuses = {Act.DELETE}
    assert await backend.delete(known, permit=guard) == Busy("nobody asked for delete")
    assert ironic.nodes


async def test_deleting_waits_for_what_cannot_be_interrupted_and_ends_what_can(
    backend, ironic, plugin, known, guard
):
    ironic.change(NODE, provision_state="deploying", target_provision_state="active")
    assert isinstance(await backend.delete(known, permit=guard), Busy)
    ironic.change(NODE, provision_state="clean wait")
    await plugin.delivered()
    answer = await backend.delete(known, permit=guard)
    assert isinstance(answer, Busy)
    assert ironic.node(NODE)["provision_state"] == "clean failed"
    assert await backend.delete(known, permit=guard) == Ready(None)


@pytest.mark.parametrize("verb", ["inspect", "provision", "deprovision"])
async def test_a_node_that_vanished_is_not_registered(backend, ironic, known, guard, verb):
    ironic.lose_database()
    call = {"inspect": inspect, "provision": provision, "deprovision": deprovision}[verb]
    assert isinstance(await call(backend, known, guard), NotRegistered)
