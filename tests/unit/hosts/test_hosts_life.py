"""A host's life, state by state, on the embedded API with a scripted back end."""

from __future__ import annotations

import pytest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import FINALIZER, SECRET_FINALIZER, ErrorType
from ingot.api.core import EVENTS, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.meta import Key
from ingot.kube import NotFound
from ingot.provisioner import Busy, Failed


async def test_a_new_host_becomes_available_and_is_switched_on(rack: Rack) -> None:
    key = await rack.host()
    host = await rack.until(key, lambda host: host.state == "available" and host.status.powered_on)
    assert host.status.operational_status == "OK"
    assert host.status.provisioning.id == "id-of-h1"
    assert host.status.hardware_profile == "unknown"
    assert FINALIZER in host.metadata.finalizers
    assert rack.backend.machines[key].orders == ["register", "try admin", "inspect", "power on"]


async def test_inspection_leaves_hardware_data_that_belongs_to_the_host(rack: Rack) -> None:
    key = await rack.host()
    host = await rack.until_state(key, "available")
    data = await rack.hardware_data(key)
    assert data.spec.hardware is not None
    assert data.spec.hardware.cpu.count == 4
    assert data.metadata.owner_references[0].uid == host.metadata.uid
    found = host.hardware()
    assert found is not None
    assert found.nics[0].mac == "00:00:5e:00:53:01"
    assert host.spec.architecture == "x86_64"


async def test_hardware_data_that_an_earlier_host_of_the_name_left_becomes_the_hosts_own(rack: Rack) -> None:
    left = {"metadata": {"name": "h1"}, "spec": {"hardware": {"hostname": "old", "firmware": {}}}}
    await rack.client.create(HARDWARE_DATA, left, namespace=rack.namespace)
    key = await rack.host()
    host = await rack.until_state(key, "available")
    data = await rack.hardware_data(key)
    assert [owner.uid for owner in data.metadata.owner_references] == [host.metadata.uid]
    assert data.metadata.finalizers
    assert data.spec.hardware is not None
    assert data.spec.hardware.hostname == "h1"


async def test_every_state_that_was_passed_through_left_its_times_and_events(rack: Rack) -> None:
    key = await rack.host(hardwareProfile="libvirt")
    host = await rack.until(key, lambda host: host.status.powered_on)
    history = host.status.operation_history
    assert history.register.start is not None
    assert history.register.end is not None
    assert history.inspect.end is not None
    await rack.settle()
    assert {
        "Registered",
        "BMCAccessValidated",
        "ProfileSet",
        "InspectionStarted",
        "InspectionComplete",
        "PowerOn",
    } <= set(await rack.event_reasons())


async def test_a_host_without_a_bmc_is_only_a_note_until_it_has_one(rack: Rack) -> None:
    key = await rack.host(bmc=None)
    host = await rack.until_state(key, "unmanaged")
    assert host.status.operational_status == "discovered"
    address = "redfish-virtualmedia://127.0.0.1/redfish/v1/Systems/h1"
    await rack.change(key, {"bmc": {"address": address, "credentialsName": "h1-bmc"}})
    await rack.until_state(key, "available")


async def test_inspection_that_is_disabled_is_skipped(rack: Rack) -> None:
    key = await rack.host(inspectionMode="disabled", bootMACAddress="00:00:5e:00:53:01")
    await rack.until_state(key, "available")
    assert "inspect" not in rack.backend.machines[key].orders
    with pytest.raises(NotFound):
        await rack.hardware_data(key)


async def test_an_image_is_deployed_with_what_the_secrets_say(rack: Rack) -> None:
    await rack.secret("user", userData="#cloud-config")
    await rack.secret("net", networkData="links: []")
    await rack.secret("meta", metaData="{rack: r7}")
    key = await rack.host(
        image=IMAGE, userData={"name": "user"}, networkData={"name": "net"}, metaData={"name": "meta"}
    )
    host = await rack.until_state(key, "provisioned")
    assert host.status.provisioning.image is not None
    assert host.status.provisioning.image.url == IMAGE["url"]
    deployed = rack.backend.machines[key].deployment
    assert deployed is not None
    assert deployed.config_drive.user_data.reveal() == "#cloud-config"
    assert deployed.config_drive.network_data.reveal() == "links: []"
    assert deployed.config_drive.meta_data["rack"] == "r7"
    assert deployed.config_drive.meta_data["name"] == "h1"
    assert deployed.config_drive.meta_data["uuid"] == host.metadata.uid
    assert deployed.root_device is not None
    assert deployed.root_device.device_name == "/dev/sda"


async def test_the_attempted_image_is_written_before_the_back_end_is_told(rack: Rack) -> None:
    rack.backend.hold("provision", Busy("writing"))
    key = await rack.host(image=IMAGE)
    host = await rack.until_state(key, "provisioning")
    assert host.status.last_attempted_image is not None
    assert host.status.last_attempted_image.url == IMAGE["url"]
    rack.backend.let_go("provision")
    rack.backend.tell(key)
    await rack.until_state(key, "provisioned")


async def test_an_image_with_a_weak_checksum_is_installed_with_a_warning(rack: Rack) -> None:
    key = await rack.host(image=IMAGE | {"checksum": "0" * 32, "checksumType": "md5"})
    await rack.until_state(key, "provisioned")
    await rack.settle()
    events = (await rack.client.list(EVENTS, namespace=rack.namespace)).items
    assert [(event.type, event.message) for event in events if event.reason == "WeakImage"] == [
        (
            "Warning",
            "spec.image.checksum: md5 does not tell an image from one that was made to look like it; use sha256",
        )
    ]


async def test_a_host_that_is_to_be_off_is_not_provisioned(rack: Rack) -> None:
    key = await rack.host(image=IMAGE, online=False)
    await rack.until_state(key, "available")
    await rack.settle()
    assert "deploy" not in rack.backend.machines[key].orders
    conditions = (await rack.get(key)).status.conditions
    assert "once spec.online is true" in next(c.message for c in conditions if c.type == "Progressing")
    await rack.change(key, {"online": True})
    await rack.until_state(key, "provisioned")


async def test_power_follows_online(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.change(key, {"online": False})
    await rack.until(key, lambda host: not host.status.powered_on)
    await rack.change(key, {"online": True})
    await rack.until(key, lambda host: host.status.powered_on)
    assert rack.backend.machines[key].orders[-3:] == ["deploy", "power off soft", "power on"]


async def test_what_the_user_reads_while_waiting_is_what_the_back_end_said(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    key = await rack.host()
    host = await rack.until_state(key, "inspecting")
    progressing = next(found for found in host.status.conditions if found.type == "Progressing")
    assert (progressing.status, progressing.message) == ("True", "the ramdisk boots")


async def test_a_phase_is_written_at_once_and_its_details_only_now_and_then(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("inspecting the hardware"))
    key = await rack.host()
    host = await rack.until_state(key, "inspecting")
    await rack.settle()
    before = (await rack.get(key)).metadata.resource_version
    for step in range(3):
        rack.backend.hold("inspect", Busy("inspecting the hardware", f"step {step}"))
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).metadata.resource_version == before
    rack.backend.hold("inspect", Busy("writing it down", "step 1"))
    rack.backend.tell(key)
    host = await rack.until(key, lambda host: host.metadata.resource_version != before)
    assert next(found.message for found in host.status.conditions if found.type == "Progressing") == (
        "writing it down: step 1"
    )


async def test_a_host_goes_on_when_the_back_end_has_news_and_not_before(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    key = await rack.host()
    await rack.until_state(key, "inspecting")
    await rack.settle()
    rack.backend.let_go("inspect")
    await rack.settle()
    assert (await rack.get(key)).state == "inspecting"
    rack.backend.tell(key)
    await rack.until_state(key, "available")


async def test_removing_the_image_deprovisions(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.change(key, {"image": None})
    host = await rack.until_state(key, "available")
    assert host.status.provisioning.image is None
    assert rack.backend.machines[key].instance is None


async def test_another_image_replaces_the_one_that_runs(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    other = "https://images.example/b.raw"
    await rack.change(key, {"image": {"url": other}})
    await rack.until(
        key,
        lambda host: (
            host.state == "provisioned"
            and host.status.provisioning.image is not None
            and host.status.provisioning.image.url == other
        ),
    )
    assert [order for order in rack.backend.machines[key].orders if "deploy" in order] == [
        "deploy",
        "undeploy",
        "deploy",
    ]


async def test_a_changed_checksum_costs_no_running_machine(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.change(key, {"image": {"checksum": "1" * 64}})
    await rack.settle()
    assert (await rack.get(key)).state == "provisioned"
    assert rack.backend.machines[key].orders.count("deploy") == 1


async def test_an_externally_provisioned_host_is_only_switched_on_and_off(rack: Rack) -> None:
    key = await rack.host(externallyProvisioned=True)
    await rack.until(key, lambda host: host.state == "externally provisioned" and host.status.powered_on)
    assert rack.backend.machines[key].orders == ["register", "try admin", "power on"]


async def test_a_paused_host_is_left_alone(rack: Rack) -> None:
    key = await rack.host(annotations={"baremetalhost.metal3.io/paused": ""})
    await rack.settle()
    host = await rack.get(key)
    assert (host.state, host.metadata.finalizers) == ("", [])


async def test_nothing_is_written_when_nothing_changed(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.settle()
    before = (await rack.get(key)).metadata.resource_version
    for _ in range(5):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).metadata.resource_version == before


# Deletion


async def test_a_provisioned_host_is_deprovisioned_switched_off_and_forgotten(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.delete(key)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-3:] == ["undeploy", "power off hard", "delete"]
    for kind, name in ((HARDWARE_DATA, key), (SECRETS, rack.bmc)):
        await rack.until_missing(kind, name)


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        ("register", "registering"),
        ("inspect", "inspecting"),
        ("provision", "provisioning"),
        ("set_power", "available"),
    ],
)
async def test_a_host_can_be_deleted_while_something_is_under_way(rack: Rack, verb: str, state: str) -> None:
    rack.backend.hold(verb, Busy("under way"))
    key = await rack.host(**({"image": IMAGE} if verb == "provision" else {}))
    await rack.until_state(key, state)
    await rack.delete(key)
    rack.backend.let_go(verb)
    rack.backend.tell(key)
    await rack.until_gone(key)
    assert not rack.backend.machines[key].known


async def test_a_host_whose_secret_is_gone_can_still_be_deleted(rack: Rack) -> None:
    key = await rack.host(secret=False)
    await rack.until_error(key, "does not exist")
    await rack.delete(key)
    await rack.until_gone(key)


async def test_a_secret_that_two_hosts_use_stays_until_the_last_one_lets_go(rack: Rack) -> None:
    one = await rack.host("h1")
    two = await rack.host(
        "h2", bmc={"address": "redfish-virtualmedia://127.0.0.1/s", "credentialsName": "h1-bmc"}
    )
    for key in (one, two):
        await rack.until_state(key, "available")
    await rack.delete(one)
    await rack.until_gone(one)
    secret = await rack.client.get(SECRETS, rack.bmc)
    assert SECRET_FINALIZER in secret.metadata.finalizers
    await rack.delete(two)
    await rack.until_gone(two)
    await rack.until_missing(SECRETS, rack.bmc)


async def test_a_secret_is_let_go_when_the_hosts_that_use_it_go_at_the_same_time(rack: Rack) -> None:
    one = await rack.host("h1")
    two = await rack.host(
        "h2", bmc={"address": "redfish-virtualmedia://127.0.0.1/s", "credentialsName": "h1-bmc"}
    )
    rack.backend.hold("delete", Busy("forgetting the host"))
    for key in (one, two):
        await rack.until_state(key, "available")
        await rack.delete(key)
        await rack.until_state(key, "deleting")
    await rack.settle()
    rack.backend.let_go("delete")
    for key in (one, two):
        rack.backend.tell(key)
    for key in (one, two):
        await rack.until_gone(key)
    await rack.until_missing(SECRETS, rack.bmc)


# The back end forgets


async def test_a_back_end_that_lost_its_memory_is_told_of_a_provisioned_host_and_touches_nothing(
    rack: Rack,
) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    before = list(rack.backend.machines[key].orders)
    rack.backend.lose_memory()
    await rack.until(key, lambda _: rack.backend.machines[key].known)
    await rack.settle()
    assert rack.backend.machines[key].orders == [*before, "register"]
    assert rack.backend.machines[key].adopted is not None
    assert rack.backend.machines[key].adopted.url == IMAGE["url"]
    assert (await rack.get(key)).state == "provisioned"


async def test_a_record_that_is_in_the_way_is_made_anew_at_once_and_the_running_host_is_not_touched(
    rack: Rack,
) -> None:
    key = Key(rack.namespace, "h1")
    machine = rack.backend.machines[key]
    machine.record_in_the_way = True
    assert await rack.host(image=IMAGE) == key
    await rack.until(key, lambda _: machine.adopted is not None)
    host = await rack.until_well(key, "provisioned")
    since = machine.orders[machine.orders.index("deploy") :]
    assert since == ["deploy", "forget", "register"]
    assert host.status.error_count == 0


async def test_a_back_end_that_is_away_is_no_error_of_the_host(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.away = "connection refused"
    rack.backend.tell(key)
    await rack.settle()
    assert (await rack.get(key)).status.error_type == ErrorType.NONE


async def test_a_host_that_comes_while_the_back_end_is_away_says_what_it_waits_for(rack: Rack) -> None:
    rack.backend.away = "connection refused"
    key = await rack.host()
    host = await rack.until_state(key, "registering")
    assert rack.sentence(host) == "waiting for the back end, which does not answer: connection refused"
    assert host.status.error_type == ErrorType.NONE
    async with rack.host_writes() as writes:
        rack.backend.away = "no route"
        rack.backend.tell(key)
        await rack.settle()
    assert not writes
    rack.backend.come_back()
    await rack.until_state(key, "available")


async def test_a_failed_adoption_is_an_error_of_its_own_kind(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.script("adopt", Failed("Ironic says no"))
    rack.backend.tell(key)
    host = await rack.until_error(key, "Ironic says no")
    assert host.status.error_type == ErrorType.PROVISIONED_REGISTRATION
    assert host.state == "provisioned"
