"""A machine that runs what its host did not put there: host and back end know different things, and a person has to say more.

So it is after the API, or the back end, was restored from a backup, and where somebody used the back end past Ingot.
"""

from __future__ import annotations

import pytest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import Annotation, BareMetalHost, Image
from ingot.api.meta import Key
from ingot.provisioner import Busy, ConfigDrive, Deployment, Failed

OTHER = IMAGE | {"url": "https://images.example/b.raw"}
THEIRS = Deployment(
    name="of a time that the API forgot",
    image=Image(url="https://images.example/theirs.raw"),
    config_drive=ConfigDrive(),
)
LEFT_ALONE = Failed("another system runs there. Say what is to become of it", needs_person=True)


async def restored(rack: Rack) -> Key:
    """A host that the API has as available, and the back end as one that runs something."""
    key = await rack.host()
    await rack.until_state(key, "available")
    await rack.settle()
    machine = rack.backend.machines[key]
    machine.instance, machine.deployment, machine.on = THEIRS.image, THEIRS, True
    rack.backend.hold("provision", LEFT_ALONE)
    machine.orders.clear()
    return key


async def assert_runs_on(rack: Rack, key: Key) -> BareMetalHost:
    await rack.settle()
    rack.backend.tell(key)
    await rack.settle()
    machine = rack.backend.machines[key]
    assert machine.instance is THEIRS.image
    assert machine.on
    assert "undeploy" not in machine.orders
    return await rack.get(key)


async def test_a_running_machine_is_not_wiped_because_its_host_takes_it_for_an_empty_one(rack: Rack) -> None:
    key = await restored(rack)
    await rack.change(key, {"image": IMAGE})
    await rack.until_error(key, "Say what is to become of it")
    host = await assert_runs_on(rack, key)
    assert host.state == "provisioning"
    assert host.status.next_try is None
    assert host.status.provisioning_fail_count == 0
    assert (await rack.event_reasons()).count("ProvisioningError") == 1
    assert rack.backend.asked["deprovision"] == 0


async def test_an_operator_that_starts_anew_does_not_wipe_it_either(rack: Rack) -> None:
    key = await restored(rack)
    await rack.change(key, {"image": IMAGE})
    await rack.until_error(key, "Say what is to become of it")
    await rack.operator.restart()
    host = await assert_runs_on(rack, key)
    assert host.state == "provisioning"


@pytest.mark.parametrize("change", [{"image": None}, {"image": OTHER}], ids=["taken back", "changed"])
async def test_an_image_that_is_taken_back_or_changed_does_not_cost_what_runs_instead(
    rack: Rack, change: dict[str, object]
) -> None:
    key = await restored(rack)
    await rack.change(key, {"image": IMAGE})
    await rack.until_error(key, "Say what is to become of it")
    await rack.change(key, change)
    host = await rack.until_error(key, "did not put there")
    assert str(key) in host.status.error_message
    assert "ingot host detach --force" in host.status.error_message
    assert (await assert_runs_on(rack, key)).state == "deprovisioning"


async def test_a_host_that_was_being_emptied_when_the_backup_was_made_does_not_lose_what_it_got_since(
    rack: Rack,
) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.hold("deprovision", Busy("cleaning"))
    await rack.change(key, {"image": None})
    await rack.until_state(key, "deprovisioning")
    await rack.settle()
    machine = rack.backend.machines[key]
    machine.instance, machine.deployment, machine.on = THEIRS.image, THEIRS, True
    machine.orders.clear()
    rack.backend.let_go("deprovision")
    rack.backend.tell(key)
    await rack.until_error(key, "did not put there")
    await assert_runs_on(rack, key)


async def test_who_begins_anew_with_the_machine_gets_what_is_wanted(rack: Rack) -> None:
    key = await restored(rack)
    await rack.change(key, {"image": IMAGE})
    await rack.until_error(key, "Say what is to become of it")
    await rack.annotate(key, Annotation.DETACHED, '{"force": true}')
    await rack.until(key, lambda host: host.status.operational_status == "detached")
    machine = rack.backend.machines[key]
    # A record that is new knows of no instance.
    machine.instance = machine.deployment = None
    rack.backend.let_go("provision")
    await rack.annotate(key, Annotation.DETACHED, None)
    await rack.until_well(key, "provisioned")
    assert machine.orders[-1:] != ["undeploy"]
    assert machine.instance is not None
    assert machine.instance.url == IMAGE["url"]


async def test_who_deletes_the_host_has_it_emptied(rack: Rack) -> None:
    key = await restored(rack)
    await rack.change(key, {"image": IMAGE})
    await rack.until_error(key, "Say what is to become of it")
    await rack.delete(key)
    await rack.until_gone(key)
    assert "undeploy" in rack.backend.machines[key].orders


async def test_who_detaches_it_before_it_is_deleted_keeps_what_runs(rack: Rack) -> None:
    key = await restored(rack)
    await rack.change(key, {"image": IMAGE})
    await rack.until_error(key, "Say what is to become of it")
    await rack.annotate(key, Annotation.DETACHED, "")
    await rack.delete(key)
    await rack.until_gone(key)
    machine = rack.backend.machines[key]
    assert "undeploy" not in machine.orders
    assert machine.on


async def test_what_was_begun_of_an_image_that_was_changed_meanwhile_is_taken_down_without_asking(
    rack: Rack,
) -> None:
    """It was finished while nobody looked, and is of the same provisioning."""
    key = await rack.host()
    await rack.until_state(key, "available")
    rack.backend.hold("provision", Busy("writing"))
    await rack.change(key, {"image": IMAGE})
    await rack.until_state(key, "provisioning")
    await rack.settle()
    machine = rack.backend.machines[key]
    rack.operator.kill()
    rack.backend.let_go("provision")
    began = (await rack.get(key)).status.operation_history.provision.start
    assert began is not None
    ours = Deployment(name=began.isoformat(), image=Image(url=IMAGE["url"]), config_drive=ConfigDrive())
    machine.instance, machine.deployment, machine.on = ours.image, ours, True
    await rack.change(key, {"image": OTHER})
    await rack.operator.restart()
    await rack.until_well(key, "provisioned")
    assert [order for order in machine.orders if "deploy" in order] == ["undeploy", "deploy"]
    assert machine.instance is not None
    assert machine.instance.url == OTHER["url"]
