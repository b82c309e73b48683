"""Detaching: the back end lets the host go, the machine runs on, and it comes back as it was."""

from __future__ import annotations

import asyncio

import pytest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    Annotation,
    BareMetalHost,
    BareMetalHostStatus,
    ErrorType,
    ProvisionStatus,
)
from ingot.api.detachment import Detachment, detachment, may_be_let_go
from ingot.api.meta import Key, ObjectMeta
from ingot.kube import Informer
from ingot.provisioner import Busy, Failed

DETACHED = Annotation.DETACHED


def is_detached(host: BareMetalHost) -> bool:
    return host.status.operational_status == "detached"


def condition(host: BareMetalHost, kind: str) -> tuple[str, str]:
    found = next(found for found in host.status.conditions if found.type == kind)
    return found.status, found.reason


# What the annotation means


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("", Detachment()),
        ("because", Detachment()),
        ("{not json", Detachment()),
        ("[]", Detachment()),
        ('{"force": "yes"}', Detachment()),
        ("{}", Detachment()),
        ('{"force": true}', Detachment(force=True)),
        ('{"deleteAction": "delay"}', Detachment(delete_action="delay")),
        ('{"deleteAction": "delete", "force": false, "who": "me"}', Detachment()),
    ],
)
def test_what_cannot_be_read_is_a_plain_detachment(value: str, meaning: Detachment) -> None:
    host = BareMetalHost(metadata=ObjectMeta(name="h", annotations={DETACHED: value}))
    assert detachment(host) == meaning


def test_without_the_annotation_nobody_asked() -> None:
    host = BareMetalHost(metadata=ObjectMeta(name="h"))
    assert detachment(host) is None
    assert not may_be_let_go(host)


# Letting go


@pytest.mark.parametrize(
    ("state", "spec"),
    [
        ("available", {}),
        ("provisioned", {"image": IMAGE}),
        ("externally provisioned", {"externallyProvisioned": True}),
    ],
)
async def test_a_host_at_rest_is_let_go_and_its_machine_is_not_touched(
    rack: Rack, state: str, spec: dict[str, object]
) -> None:
    key = await rack.host(**spec)
    await rack.until(key, lambda host: host.state == state and host.status.powered_on)
    machine = rack.backend.machines[key]
    before = list(machine.orders)
    await rack.annotate(key, DETACHED)
    host = await rack.until(key, is_detached)
    assert machine.orders == [*before, "detach"]
    assert machine.on
    assert not machine.known
    assert host.state == state
    assert condition(host, "Ready") == ("False", "Detached")
    assert condition(host, "Progressing") == ("False", "Detached")
    assert "detached" in rack.sentence(host)


def test_a_ready_host_of_an_older_release_can_be_let_go() -> None:
    """`ready` is what `available` was called."""
    status = BareMetalHostStatus(provisioning=ProvisionStatus(state="ready"))
    host = BareMetalHost(metadata=ObjectMeta(name="h", annotations={DETACHED: ""}), status=status)
    assert may_be_let_go(host)


async def test_a_detached_host_is_left_alone_whatever_changes(rack: Rack) -> None:
    key = await _detached(rack)
    machine = rack.backend.machines[key]
    before, orders = await rack.get(key), list(machine.orders)
    for change in ({"online": False}, {"image": IMAGE | {"url": "https://images.example/b.raw"}}):
        await rack.change(key, change)
        rack.backend.tell(key)
        await rack.settle()
    host = await rack.get(key)
    assert machine.orders == orders
    assert host.status.provisioning == before.status.provisioning
    assert is_detached(host)


async def test_a_detached_host_costs_no_writes(rack: Rack) -> None:
    key = await _detached(rack)
    await rack.settle()
    version = (await rack.get(key)).metadata.resource_version
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).metadata.resource_version == version


async def test_detaching_is_one_write(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.settle()
    written: list[BareMetalHost | None] = []
    hosts = Informer(rack.client, BARE_METAL_HOSTS)
    watching = asyncio.create_task(hosts.run())
    await hosts.synced()
    hosts.subscribe(lambda change: written.append(change.new) if not change.initial else None)
    await rack.annotate(key, DETACHED)
    await rack.until(key, is_detached)
    await rack.settle()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    # The annotation by its user, and the status by us.
    assert len(written) == 2


@pytest.mark.parametrize("verb", ["register", "inspect", "provision"])
async def test_a_host_that_is_busy_goes_on_and_says_what_it_waits_for(rack: Rack, verb: str) -> None:
    rack.backend.hold(verb, Busy("under way"))
    key = await rack.host(image=IMAGE)
    states = {"register": "registering", "inspect": "inspecting", "provision": "provisioning"}
    await rack.until_state(key, states[verb])
    await rack.annotate(key, DETACHED)
    host = await rack.until(key, lambda host: "detached as soon as" in rack.sentence(host))
    assert rack.sentence(host).startswith(
        "under way (it is detached as soon as it is available or provisioned"
    )
    assert '{"force": true}' in rack.sentence(host)
    rack.backend.let_go(verb)
    rack.backend.tell(key)
    host = await rack.until(key, is_detached)
    # It is let go in the first state where it can be, not provisioned first because an image is wanted.
    assert host.state == ("provisioned" if verb == "provision" else "available")
    assert ("deploy" in rack.backend.machines[key].orders) == (verb == "provision")


async def test_a_busy_host_is_let_go_by_force(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    key = await rack.host()
    await rack.until_state(key, "inspecting")
    await rack.annotate(key, DETACHED, '{"force": true}')
    host = await rack.until(key, is_detached)
    assert host.state == "inspecting"
    assert rack.backend.machines[key].orders[-1] == "detach by force"


async def test_a_back_end_that_takes_its_time_is_waited_for(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.hold("detach", Busy("the node is locked"))
    await rack.annotate(key, DETACHED)
    await rack.until(key, lambda host: rack.sentence(host) == "the node is locked")
    rack.backend.let_go("detach")
    rack.backend.tell(key)
    await rack.until(key, is_detached)


async def test_a_failure_to_detach_is_an_error_that_the_api_can_hold(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.script("detach", Failed("Ironic says no"))
    await rack.annotate(key, DETACHED)
    host = await rack.until_error(key, "Ironic says no")
    assert host.status.error_type == ErrorType.DETACH == "detach error"
    assert host.status.next_try is not None
    await rack.settle()
    assert "DetachError" in await rack.event_reasons()
    await rack.annotate(key, DETACHED, "once more")
    host = await rack.until(key, is_detached)
    assert (host.status.error_type, host.status.error_message) == ("", "")


async def test_an_annotation_that_is_taken_back_before_the_act_lets_nobody_go(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.away = "connection refused"
    await rack.annotate(key, DETACHED)
    await rack.settle()
    await rack.annotate(key, DETACHED, None)
    rack.backend.away = ""
    rack.backend.tell(key)
    await rack.settle()
    assert rack.backend.machines[key].known
    assert (await rack.get(key)).status.operational_status == "OK"


async def test_an_operator_that_dies_between_the_act_and_the_note_of_it_finds_it_done(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.operator.end()
    await rack.annotate(key, DETACHED)
    rack.backend.machines[key].known = False
    await rack.operator.start()
    await rack.until(key, is_detached)
    assert "detach" not in rack.backend.machines[key].orders


# Coming back


async def test_a_host_that_comes_back_is_registered_and_adopted_and_never_redeployed(rack: Rack) -> None:
    key = await _detached(rack)
    machine = rack.backend.machines[key]
    orders = list(machine.orders)
    machine.adopted = None
    await rack.annotate(key, DETACHED, None)
    host = await rack.until(key, lambda host: host.status.operational_status == "OK")
    assert machine.orders == [*orders, "register"]
    assert machine.adopted is not None
    assert machine.adopted.url == IMAGE["url"]
    assert (host.state, host.status.powered_on) == ("provisioned", True)
    assert condition(host, "Ready") == ("True", "Provisioned")


async def test_an_address_of_another_scheme_takes_effect_when_the_host_comes_back(rack: Rack) -> None:
    key = await _detached(rack)
    address = "idrac-virtualmedia://10.0.0.7/redfish/v1/Systems/System.Embedded.1"
    await rack.change(key, {"bmc": {"address": address}})
    await rack.annotate(key, DETACHED, None)
    await rack.until_well(key, "provisioned")
    await rack.until(key, lambda host: host.status.operational_status == "OK")
    found = rack.backend.machines[key].access
    assert found is not None
    assert found.address == address


async def test_a_host_is_still_detached_after_a_restart_of_the_operator(rack: Rack) -> None:
    key = await _detached(rack)
    orders = list(rack.backend.machines[key].orders)
    await rack.operator.restart()
    await rack.settle()
    assert is_detached(await rack.get(key))
    assert rack.backend.machines[key].orders == orders


async def test_what_was_wrong_is_still_wrong_when_the_host_comes_back(rack: Rack) -> None:
    rack.backend.hold("adopt", Failed("the image cannot be adopted"))
    key = await rack.host(image=IMAGE)
    await rack.until_error(key, "cannot be adopted")
    await rack.annotate(key, DETACHED)
    host = await rack.until(key, is_detached)
    assert host.status.error_type == ErrorType.PROVISIONED_REGISTRATION
    rack.backend.hold("adopt", Busy("adopting"))
    rack.backend.hold("register", Failed("no answer from the BMC"))
    await rack.annotate(key, DETACHED, None)
    host = await rack.until_error(key, "no answer")
    assert host.status.operational_status == "error"


async def test_an_image_that_was_changed_meanwhile_is_installed_after_the_host_came_back(rack: Rack) -> None:
    key = await _detached(rack)
    other = "https://images.example/b.raw"
    await rack.change(key, {"image": {"url": other}})
    await rack.annotate(key, DETACHED, None)
    await rack.until(
        key,
        lambda host: (
            host.state == "provisioned"
            and host.status.provisioning.image is not None
            and host.status.provisioning.image.url == other
        ),
    )
    assert rack.backend.machines[key].orders[-3:] == ["register", "undeploy", "deploy"]


# Deleting what is detached


async def test_a_detached_host_is_deleted_at_once_without_the_back_end_and_runs_on(rack: Rack) -> None:
    key = await _detached(rack)
    orders = list(rack.backend.machines[key].orders)
    rack.backend.away = "connection refused"
    await rack.delete(key)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders == orders
    assert rack.backend.machines[key].on


async def test_a_host_that_is_deleted_while_it_is_being_detached_is_not_deprovisioned(rack: Rack) -> None:
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    rack.backend.hold("detach", Busy("the node is locked"))
    await rack.annotate(key, DETACHED)
    await rack.until(key, lambda host: rack.sentence(host) == "the node is locked")
    await rack.delete(key)
    await rack.until_gone(key)
    machine = rack.backend.machines[key]
    assert machine.orders[-1] == "delete"
    assert "undeploy" not in machine.orders
    assert machine.on


async def test_a_delayed_deletion_waits_until_the_host_comes_back_and_says_so(rack: Rack) -> None:
    key = await _detached(rack, '{"deleteAction": "delay"}')
    await rack.delete(key)
    host = await rack.until(key, lambda host: "the deletion waits" in rack.sentence(host))
    assert "remove that annotation" in rack.sentence(host)
    await rack.settle()
    assert is_detached(await rack.get(key))
    await rack.annotate(key, DETACHED, None)
    await rack.until_gone(key)
    assert rack.backend.machines[key].orders[-4:] == ["register", "undeploy", "power off hard", "delete"]


async def test_a_delay_that_is_taken_back_deletes_the_host_as_it_is(rack: Rack) -> None:
    key = await _detached(rack, '{"deleteAction": "delay"}')
    await rack.delete(key)
    await rack.until(key, lambda host: "the deletion waits" in rack.sentence(host))
    await rack.annotate(key, DETACHED)
    await rack.until_gone(key)
    assert "undeploy" not in rack.backend.machines[key].orders


async def test_a_deletion_that_is_to_wait_for_detaching_is_not_begun_before_it(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    key = await rack.host(annotations={DETACHED: '{"deleteAction": "delay"}'})
    await rack.until_state(key, "inspecting")
    await rack.delete(key)
    host = await rack.until(key, lambda host: "the deletion waits" in rack.sentence(host))
    assert '"force": true' in rack.sentence(host)
    assert host.state == "inspecting"
    await rack.annotate(key, DETACHED, '{"deleteAction": "delay", "force": true}')
    await rack.until(key, is_detached)


async def _detached(rack: Rack, value: str = "") -> Key:
    """A provisioned host that has been detached."""
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, "provisioned")
    await rack.annotate(key, DETACHED, value)
    await rack.until(key, is_detached)
    return key
