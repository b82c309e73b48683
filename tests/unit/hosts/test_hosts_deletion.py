"""A host can always be deleted: the usual way, which says what it waits for, and by force, which tells what it leaves behind."""

from __future__ import annotations

import msgspec
import pytest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import BARE_METAL_HOSTS, FINALIZER, Annotation
from ingot.api.core import CONFIG_MAPS, EVENTS, SECRETS, ConfigMap
from ingot.api.dataimage import DATA_IMAGES
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import HOST_FINALIZER, PREPROVISIONING_IMAGES
from ingot.hosts.leaving.leftovers import FORGOTTEN, Leftover, leftovers
from ingot.kube import NotFound
from ingot.provisioner import Busy, Failed, NotRegistered

BY_FORCE = Annotation.FORCE_DELETE


# The usual way


@pytest.mark.parametrize(
    ("verb", "state", "spec"),
    [
        ("register", "registering", {}),
        ("inspect", "inspecting", {}),
        ("provision", "provisioning", {"image": IMAGE}),
    ],
)
async def test_a_deletion_waits_for_a_back_end_that_is_away_and_says_so(
    rack: Rack, verb: str, state: str, spec: dict[str, object]
) -> None:
    rack.backend.hold(verb, Busy("under way"))
    key = await rack.host(**spec)
    await rack.until_state(key, state)
    rack.backend.away = "connection refused"
    await rack.delete(key)
    host = await rack.until(key, lambda host: "the deletion waits for the back end" in rack.sentence(host))
    assert "connection refused" in rack.sentence(host)
    assert BY_FORCE in rack.sentence(host)
    assert host.status.error_type == ""
    rack.backend.away = ""
    rack.backend.let_go(verb)
    rack.backend.tell(key)
    await rack.until_gone(key)


async def test_a_back_end_that_is_away_in_another_way_is_not_worth_a_write(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    rack.backend.away = "connection refused"
    await rack.delete(key)
    await rack.until(key, lambda host: "the deletion waits for the back end" in rack.sentence(host))
    await rack.settle()
    async with rack.host_writes() as writes:
        for why in ("no route", "connection refused"):
            rack.backend.away = why
            rack.backend.tell(key)
            await rack.settle()
    assert not writes


async def test_a_provisioned_host_is_not_let_go_while_nobody_can_clean_it(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.away = "connection refused"
    await rack.delete(key)
    host = await rack.until(key, lambda host: "the deletion waits for the back end" in rack.sentence(host))
    assert host.state == "deprovisioning"
    version = host.metadata.resource_version
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).metadata.resource_version == version, (
        "the same sentence is not written again"
    )
    rack.backend.away = ""
    rack.backend.tell(key)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-3:] == ["undeploy", "power off hard", "delete"]


async def test_a_host_that_must_not_be_switched_off_is_not_switched_off_by_its_deletion(rack: Rack) -> None:
    key = await rack.host(disablePowerOff=True)
    await rack.until(key, lambda host: host.state == "available" and host.status.powered_on)
    await rack.delete(key)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-1] == "delete"
    assert rack.backend.machines[key].on


async def test_an_externally_provisioned_host_is_switched_off_and_not_deprovisioned(rack: Rack) -> None:
    key = await rack.host(externallyProvisioned=True)
    await rack.until(key, lambda host: host.status.powered_on)
    await rack.delete(key)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-2:] == ["power off hard", "delete"]


@pytest.mark.parametrize(
    ("verb", "orders"),
    [
        pytest.param("deprovision", ["power off hard", "delete"], id="deprovisioning"),
        pytest.param("set_power", ["undeploy", "delete"], id="powering off"),
        pytest.param("register", ["delete"], id="registering"),
    ],
)
async def test_what_fails_again_and_again_is_given_up_and_the_host_goes(
    rack: Rack, verb: str, orders: list[str]
) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    before = len(rack.backend.machines[key].orders)
    rack.backend.hold(verb, Failed("the BMC does not answer"))
    await rack.delete(key)
    for failure in range(1, 5):
        await rack.until(key, lambda host, failure=failure: host.status.error_count >= failure)
        await rack.operator.restart()
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[before:] == orders


async def test_a_host_without_credentials_is_deprovisioned_with_those_the_back_end_has(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.client.patch(SECRETS, rack.bmc, {"data": {"password": None}})
    await rack.until_error(key, "has no password")
    await rack.delete(key)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-3:] == ["undeploy", "power off hard", "delete"]


async def test_a_host_that_the_back_end_lost_and_that_has_no_credentials_goes(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.client.patch(SECRETS, rack.bmc, {"data": {"password": None}})
    await rack.until_error(key, "has no password")
    rack.backend.hold("deprovision", NotRegistered("never heard of it"))
    await rack.delete(key)
    await rack.until_gone(key)


async def test_a_host_that_the_back_end_lost_is_registered_again_to_be_switched_off(rack: Rack) -> None:
    key = await rack.host()
    await rack.until(key, lambda host: host.status.powered_on)
    await rack.operator.end()
    rack.backend.lose_memory()
    await rack.delete(key)
    await rack.operator.start()
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-3:] == ["register", "power off hard", "delete"]


@pytest.mark.parametrize("verb", ["deprovision", "set_power", "delete"])
async def test_a_deletion_goes_on_where_it_was_when_the_operator_starts_anew(rack: Rack, verb: str) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    before = len(rack.backend.machines[key].orders)
    rack.backend.hold(verb, Busy("under way"))
    await rack.delete(key)
    states = {
        "deprovision": "deprovisioning",
        "set_power": "powering off before delete",
        "delete": "deleting",
    }
    await rack.until_state(key, states[verb])
    await rack.operator.end()
    rack.backend.let_go(verb)
    await rack.operator.start()
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[before:] == ["undeploy", "power off hard", "delete"]


async def test_a_back_end_that_cannot_forget_a_host_is_tried_again_and_force_is_named(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    rack.backend.hold("delete", Failed("the node is locked."))
    await rack.delete(key)
    host = await rack.until_error(key, "the back end cannot forget the host: the node is locked.")
    assert BY_FORCE in host.status.error_message
    assert host.status.next_try is not None
    rack.backend.let_go("delete")
    await rack.operator.restart()
    await rack.until_gone(key)


async def test_what_stands_beside_a_host_goes_with_it(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    held = {"metadata": {"name": "h1", "finalizers": [HOST_FINALIZER]}, "spec": {}}
    await rack.client.create(PREPROVISIONING_IMAGES, held, namespace=rack.namespace)
    image = {"metadata": {"name": "h1"}, "spec": {"url": "https://images.example/data.iso"}}
    await rack.client.create(DATA_IMAGES, image, namespace=rack.namespace)
    rack.backend.tell(key)
    await rack.until(key, lambda _: True)
    await rack.settle()
    await rack.delete(key)
    await rack.until_gone(key)
    # The one that no owner takes with it is there still, without our mark; the others are collected.
    ramdisk = await rack.client.get(PREPROVISIONING_IMAGES, key)
    assert HOST_FINALIZER not in ramdisk.metadata.finalizers
    for kind in (HARDWARE_DATA, DATA_IMAGES):
        await rack.until_missing(kind, key)


async def test_what_stands_beside_a_host_that_somebody_else_removed_can_go(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    held = {"metadata": {"name": "h1", "finalizers": [HOST_FINALIZER]}, "spec": {}}
    await rack.client.create(PREPROVISIONING_IMAGES, held, namespace=rack.namespace)
    # As those do who move hosts to another cluster.
    taken = {"metadata": {"annotations": {Annotation.PAUSED: ""}, "finalizers": []}}
    await rack.client.patch(BARE_METAL_HOSTS, key, taken)
    await rack.delete(key)
    await rack.until_gone(key)
    await rack.client.delete(PREPROVISIONING_IMAGES, key)
    for kind in (HARDWARE_DATA, PREPROVISIONING_IMAGES):
        await rack.until_missing(kind, key)


# By force


async def test_the_annotation_does_nothing_to_a_host_that_is_not_being_deleted(rack: Rack) -> None:
    key = await rack.host(image=IMAGE, annotations={BY_FORCE: ""})
    await rack.until_state(key, "provisioned")
    await rack.settle()
    assert (await rack.get(key)).metadata.deletion_timestamp is None


async def test_a_host_is_deleted_by_force_while_the_back_end_is_away(rack: Rack) -> None:
    key = await _stuck(rack)
    host = await rack.get(key)
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)
    machine = rack.backend.machines[key]
    assert machine.known, "the record is still there"
    assert machine.on, "and the machine was not touched"
    noted = await _noted(rack)
    assert noted["h1"].uid == host.metadata.uid
    assert noted["h1"].backend_id == "id-of-h1"
    await rack.until_missing(SECRETS, rack.bmc)


async def test_what_a_forced_delete_leaves_behind_is_told_in_a_warning(rack: Rack) -> None:
    key = await _stuck(rack)
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)
    await rack.settle()
    events = (await rack.client.list(EVENTS, namespace=rack.namespace)).items
    told = next(event for event in events if event.reason == "ForceDeleted")
    assert told.type == "Warning"
    for part in ("id-of-h1", FORGOTTEN, IMAGE["url"], "switched on"):
        assert part in told.message


async def test_the_record_is_removed_as_soon_as_the_back_end_answers_again(rack: Rack) -> None:
    key = await _stuck(rack)
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)
    await rack.settle()
    assert rack.backend.machines[key].known
    rack.backend.come_back()
    await _nothing_noted(rack)
    machine = rack.backend.machines[key]
    assert not machine.known
    assert machine.orders[-1] == "delete"
    assert machine.on


async def test_the_note_outlives_the_operator(rack: Rack) -> None:
    key = await _stuck(rack)
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)
    await rack.operator.end()
    rack.backend.away = ""
    await rack.operator.start()
    await _nothing_noted(rack)
    assert not rack.backend.machines[key].known


async def test_a_forced_delete_that_was_cut_off_after_the_note_is_finished(rack: Rack) -> None:
    key = await _stuck(rack)
    host = await rack.get(key)
    await rack.operator.end()
    entry = Leftover(uid=host.metadata.uid, backend_id="id-of-h1", since=host.metadata.creation_timestamp)
    body = {"metadata": {"name": FORGOTTEN}, "data": {"h1": msgspec.json.encode(entry).decode()}}
    await rack.client.create(CONFIG_MAPS, body, namespace=rack.namespace)
    await rack.annotate(key, BY_FORCE)
    await rack.operator.start()
    await rack.until_gone(key)
    assert list(await _noted(rack)) == ["h1"]
    rack.backend.come_back()
    await _nothing_noted(rack)


async def test_a_host_of_the_same_name_waits_until_the_old_record_is_gone_and_gets_one_of_its_own(
    rack: Rack,
) -> None:
    key = await _stuck(rack)
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)
    await rack.until_missing(SECRETS, rack.bmc)
    assert await rack.host() == key
    host = await rack.until(key, lambda host: "deleted by force" in rack.sentence(host))
    assert host.state == ""
    rack.backend.come_back()
    host = await rack.until_well(key, "available")
    orders = rack.backend.machines[key].orders
    assert orders[orders.index("delete") :][:2] == ["delete", "register"]
    assert orders.count("delete") == 1
    await _nothing_noted(rack)


async def test_a_host_that_waits_for_a_record_nobody_can_remove_goes_on_when_the_note_is_removed(
    rack: Rack,
) -> None:
    key = await _stuck(rack)
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)
    await rack.until_missing(SECRETS, rack.bmc)
    rack.backend.hold("delete", Failed("the node is locked"))
    rack.backend.come_back()
    await rack.host()
    host = await rack.until(key, lambda host: "deleted by force" in rack.sentence(host))
    assert FORGOTTEN in rack.sentence(host)
    await rack.client.delete(CONFIG_MAPS, Key(rack.namespace, FORGOTTEN))
    await rack.until_well(key, "available")


async def test_the_record_of_a_live_host_is_never_removed_for_a_note(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    host = await rack.until_state(key, "provisioned")
    assert host.metadata.creation_timestamp is not None
    entry = Leftover(uid="of an earlier one", backend_id="id-of-h1", since=host.metadata.creation_timestamp)
    body = {"metadata": {"name": FORGOTTEN}, "data": {"h1": msgspec.json.encode(entry).decode()}}
    await rack.client.create(CONFIG_MAPS, body, namespace=rack.namespace)
    await _nothing_noted(rack)
    assert rack.backend.machines[key].known
    assert "delete" not in rack.backend.machines[key].orders


async def test_notes_of_several_hosts_go_one_by_one(rack: Rack) -> None:
    keys = [await rack.host(name) for name in ("h1", "h2")]
    for key in keys:
        await rack.until_state(key, "available")
    rack.backend.away = "connection refused"
    for key in keys:
        await rack.delete(key)
        await rack.annotate(key, BY_FORCE)
        await rack.until_gone(key)
    assert set(await _noted(rack)) == {"h1", "h2"}
    rack.backend.come_back()
    await _nothing_noted(rack)
    assert not any(rack.backend.machines[key].known for key in keys)


async def test_a_record_that_cannot_be_removed_yet_is_waited_for(rack: Rack) -> None:
    key = await _stuck(rack)
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)
    rack.backend.hold("delete", Busy("the node is locked"))
    rack.backend.come_back()
    await rack.settle()
    assert "h1" in await _noted(rack)
    rack.backend.let_go("delete")
    rack.backend.tell(key)
    await _nothing_noted(rack)


async def test_a_host_in_long_back_off_is_deleted_by_force_at_once(rack: Rack) -> None:
    key = await rack.host()
    await rack.until_state(key, "available")
    rack.backend.hold("delete", Failed("the node is locked"))
    await rack.delete(key)
    await rack.until_error(key, "the node is locked")
    await rack.annotate(key, BY_FORCE)
    await rack.until_gone(key)


async def test_a_host_whose_status_cannot_be_taken_over_can_be_deleted_by_force(rack: Rack) -> None:
    await rack.operator.end()
    key = await rack.host()
    broken = {Annotation.STATUS: "{}", BY_FORCE: ""}
    held = {"annotations": broken, "finalizers": [FINALIZER]}
    await rack.client.patch(BARE_METAL_HOSTS, key, {"metadata": held})
    await rack.delete(key)
    await rack.operator.start()
    await rack.until_gone(key)


@pytest.mark.parametrize("state", ["unmanaged", "detached"])
async def test_a_host_that_the_back_end_does_not_know_leaves_nothing(rack: Rack, state: str) -> None:
    key = await rack.host(**({"bmc": None} if state == "unmanaged" else {}))
    if state == "detached":
        await rack.until_state(key, "available")
        await rack.annotate(key, Annotation.DETACHED, '{"deleteAction": "delay"}')
        await rack.until(key, lambda host: host.status.operational_status == "detached")
    else:
        await rack.until_state(key, "unmanaged")
    await rack.annotate(key, BY_FORCE)
    await rack.delete(key)
    await rack.until_gone(key)
    assert await _noted(rack) == {}


def test_a_note_that_cannot_be_read_is_left_alone() -> None:
    good = '{"uid": "u", "backEndID": "n", "since": "2026-01-01T00:00:00Z"}'
    assert list(leftovers(ConfigMap(data={"h1": "?", "h2": good}))) == ["h2"]


async def _stuck(rack: Rack) -> Key:
    """A provisioned host whose deletion waits for a back end that is away."""
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.away = "connection refused"
    await rack.delete(key)
    await rack.until(key, lambda host: "the deletion waits for the back end" in rack.sentence(host))
    return key


async def _noted(rack: Rack) -> dict[str, Leftover]:
    try:
        return leftovers(await rack.client.get(CONFIG_MAPS, Key(rack.namespace, FORGOTTEN)))
    except NotFound:
        return {}


async def _nothing_noted(rack: Rack) -> None:
    async def is_empty() -> bool:
        return not await _noted(rack)

    await rack.until_true(is_empty, lambda: "something is still noted")
