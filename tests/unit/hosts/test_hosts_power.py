"""Power and reboots of a host, on the embedded API with a scripted back end."""

from __future__ import annotations

import asyncio
import functools

import pytest
from msgspec.structs import replace
from rack import IMAGE, Rack

from ingot.api.baremetalhost import BareMetalHost, ErrorType
from ingot.api.core import EVENTS
from ingot.api.meta import Key
from ingot.hosts import HostController
from ingot.kube import EventRecorder, Manager
from ingot.provisioner import Busy, Failed

PLAIN, HELD, OTHER = "reboot.metal3.io", "reboot.metal3.io/a", "reboot.metal3.io/b"


async def provisioned(rack: Rack, **spec: object) -> Key:
    key = await rack.host(image=IMAGE, **spec)
    await rack.until(key, lambda host: host.state == "provisioned" and host.status.powered_on)
    rack.backend.machines[key].orders.clear()
    return key


def not_asked(host: BareMetalHost) -> bool:
    return PLAIN not in host.metadata.annotations


# One reboot


@pytest.mark.parametrize(("value", "mode"), [("", "soft"), ('{"mode": "hard"}', "hard")])
async def test_a_plain_annotation_is_one_reboot_and_goes(rack: Rack, value: str, mode: str) -> None:
    key = await provisioned(rack)
    await rack.annotate(key, PLAIN, value)
    host = await rack.until_rebooted(key)
    await rack.settle()
    assert rack.backend.machines[key].orders == [f"power off {mode}", "power on"]
    assert host.state == "provisioned"
    assert {"PowerOff", "PowerOn"} <= set(await rack.event_reasons())


async def test_a_host_that_somebody_else_installed_is_rebooted_as_well(rack: Rack) -> None:
    key = await rack.host(externallyProvisioned=True)
    await rack.until(key, lambda host: host.state == "externally provisioned" and host.status.powered_on)
    rack.backend.machines[key].orders.clear()
    await rack.annotate(key, PLAIN)
    await rack.until_rebooted(key)
    assert rack.backend.machines[key].orders == ["power off soft", "power on"]


async def test_the_annotation_stays_until_the_machine_was_seen_off(rack: Rack) -> None:
    key = await provisioned(rack)
    rack.backend.hold("set_power", Busy("switching the power off"))
    await rack.annotate(key, PLAIN)
    host = await rack.until(key, lambda host: "switching" in rack.sentence(host))
    assert PLAIN in host.metadata.annotations
    assert host.status.powered_on
    rack.backend.machines[key].on = False
    rack.backend.tell(key)
    host = await rack.until(key, not_asked)
    await rack.until(key, lambda host: not host.status.powered_on)
    rack.backend.let_go("set_power")
    rack.backend.tell(key)
    await rack.until(key, lambda host: host.status.powered_on)
    assert rack.backend.machines[key].orders == ["power on"]
    await rack.settle()
    told = await rack.event_reasons()
    assert (told.count("PowerOff"), told.count("PowerOn")) == (1, 1)


async def test_a_power_change_is_told_whether_it_is_done_at_once_or_seen_later_but_not_if_nobody_wanted_it(
    rack: Rack,
) -> None:
    key = await provisioned(rack)
    rack.backend.hold("set_power", Busy("switching the power on"))
    rack.backend.machines[key].on = False
    rack.backend.tell(key)
    await rack.until(key, lambda host: not host.status.powered_on)
    await rack.settle()
    assert not {"PowerOn", "PowerOff"} & set(await rack.event_reasons())
    rack.backend.machines[key].on = True
    rack.backend.tell(key)
    await rack.until(key, lambda host: host.status.powered_on)
    await rack.settle()
    assert "PowerOn" in await rack.event_reasons()


@pytest.mark.parametrize("off", [False, True])
async def test_a_reboot_is_neither_lost_nor_done_twice_when_the_operator_dies_in_the_middle(
    rack: Rack, off: bool
) -> None:
    """`off`: whether the machine was off already when the operator died, without having seen it."""
    key = await provisioned(rack)
    rack.backend.hold("set_power", Busy("switching the power off"))
    await rack.annotate(key, PLAIN)
    await rack.until(key, lambda host: "switching" in rack.sentence(host))
    await rack.operator.end()
    rack.backend.let_go("set_power")
    rack.backend.machines[key].on = not off
    await rack.operator.start()
    await rack.until_rebooted(key)
    await rack.settle()
    assert rack.backend.machines[key].orders == (["power on"] if off else ["power off soft", "power on"])


async def test_an_operator_that_dies_between_off_and_on_switches_the_machine_on_when_it_is_back(
    rack: Rack,
) -> None:
    key = await provisioned(rack)
    await rack.annotate(key, HELD)
    await rack.until(key, lambda host: not host.status.powered_on)
    await rack.operator.end()
    await rack.annotate(key, HELD, None)
    await rack.operator.start()
    await rack.until(key, lambda host: host.status.powered_on)
    assert rack.backend.machines[key].orders == ["power off soft", "power on"]


async def test_a_value_that_cannot_be_read_is_told_once_and_counts_as_empty(rack: Rack) -> None:
    """Our API lets no such value through, one whose webhook is off does: so it is put into what the controller reads."""
    key = await provisioned(rack)
    await rack.operator.end()
    await rack.annotate(key, PLAIN)
    rack.backend.hold("set_power", Busy("switching the power off"))
    await _run_once_with(rack, key, "now!")
    await _run_once_with(rack, key, "now!")
    rack.backend.let_go("set_power")
    await _run_once_with(rack, key, "now!")
    assert not_asked(await rack.get(key))
    assert rack.backend.machines[key].orders == ["power off soft", "power on"]
    events = (await rack.client.list(EVENTS, namespace=rack.namespace)).items
    told = [(one.reason, one.type, one.count) for one in events if PLAIN in one.message]
    assert told == [("InvalidAnnotationValue", "Warning", 1)]


async def _run_once_with(rack: Rack, key: Key, value: str) -> None:
    """A controller that follows no API, and knows nothing but this host with this value in its annotation."""
    async with EventRecorder(rack.client) as recorder:
        hosts = HostController(rack.client, rack.backend, recorder, namespace=rack.namespace)
        running = asyncio.create_task(Manager([], [hosts.controller]).run())
        host = await rack.get(key)
        hosts.hosts.observe(replace(host, metadata=replace(host.metadata, annotations={PLAIN: value})))
        await rack.settle(hosts)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


# Held off


async def test_a_keyed_annotation_keeps_the_host_off_until_the_last_one_is_removed(rack: Rack) -> None:
    key = await provisioned(rack)
    await rack.annotate(key, HELD)
    await rack.annotate(key, OTHER)
    host = await rack.until(key, lambda host: not host.status.powered_on)
    await rack.annotate(key, HELD, None)
    await rack.settle()
    host = await rack.get(key)
    assert not host.status.powered_on
    assert f"kept off by annotation {OTHER}" in rack.sentence(host)
    assert OTHER in host.metadata.annotations
    await rack.annotate(key, OTHER, None)
    await rack.until(key, lambda host: host.status.powered_on)
    assert rack.backend.machines[key].orders == ["power off soft", "power on"]


async def test_plain_and_keyed_annotations_together_are_one_power_off_and_any_hard_one_wins(
    rack: Rack,
) -> None:
    key = await rack.host(image=IMAGE, annotations={PLAIN: '{"mode": "soft"}', HELD: '{"mode": "hard"}'})
    host = await rack.until(key, lambda host: host.state == "provisioned" and not_asked(host))
    await rack.settle()
    assert not (await rack.get(key)).status.powered_on
    assert HELD in host.metadata.annotations
    await rack.annotate(key, HELD, None)
    await rack.until(key, lambda host: host.status.powered_on)
    orders = rack.backend.machines[key].orders
    assert orders[orders.index("deploy") :] == ["deploy", "power off hard", "power on"]


async def test_nothing_is_written_while_a_host_is_held_off(rack: Rack) -> None:
    key = await provisioned(rack)
    await rack.annotate(key, HELD)
    await rack.until(key, lambda host: not host.status.powered_on)
    await rack.settle()
    before = (await rack.get(key)).metadata.resource_version
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert (await rack.get(key)).metadata.resource_version == before


# Where annotations count


async def test_an_available_host_is_rebooted_only_by_force(rack: Rack) -> None:
    key = await rack.host()
    await rack.until(key, lambda host: host.status.powered_on)
    rack.backend.machines[key].orders.clear()
    await rack.annotate(key, PLAIN, '{"mode": "hard"}')
    await rack.settle()
    assert rack.backend.machines[key].orders == []
    await rack.annotate(key, PLAIN, '{"mode": "hard", "force": true}')
    await rack.until_rebooted(key)
    assert rack.backend.machines[key].orders == ["power off hard", "power on"]


@pytest.mark.parametrize(("verb", "state"), [("inspect", "inspecting"), ("provision", "provisioning")])
async def test_a_ramdisk_that_does_not_come_up_is_booted_once_more_by_force(
    rack: Rack, verb: str, state: str
) -> None:
    rack.backend.hold(verb, Busy("waiting for the ramdisk"))
    key = await rack.host(image=IMAGE)
    await rack.until_state(key, state)
    await rack.annotate(key, PLAIN)
    await rack.settle()
    assert rack.backend.machines[key].restarts == 0
    await rack.annotate(key, PLAIN, '{"force": true}')
    await rack.until(key, not_asked)
    assert rack.backend.machines[key].restarts == 1
    rack.backend.tell(key)
    await rack.settle()
    assert rack.backend.machines[key].restarts == 1
    rack.backend.let_go(verb)
    rack.backend.tell(key)
    await rack.until_state(key, "provisioned")


# disablePowerOff


async def test_a_host_that_must_not_be_off_is_rebooted_in_one_and_the_annotation_goes_when_it_is_done(
    rack: Rack,
) -> None:
    key = await provisioned(rack, disablePowerOff=True)
    rack.backend.script("set_power", Busy("rebooting"))
    await rack.annotate(key, PLAIN)
    host = await rack.until(key, lambda host: "rebooting" in rack.sentence(host))
    assert PLAIN in host.metadata.annotations
    rack.backend.tell(key)
    await rack.until(key, not_asked)
    await rack.settle()
    assert rack.backend.machines[key].orders == ["reboot soft"]
    assert (await rack.get(key)).status.powered_on


async def test_an_edit_while_a_host_that_must_not_be_off_is_rebooted_does_not_have_it_rebooted_twice(
    rack: Rack,
) -> None:
    key = await rack.host(image=IMAGE, disablePowerOff=True)
    await rack.until(key, lambda host: host.state == "provisioned" and host.status.powered_on)
    rack.backend.meanwhile["set_power"] = functools.partial(rack.annotate, key, "team", "blue")
    await rack.annotate(key, PLAIN)
    await rack.until(key, lambda host: PLAIN not in host.metadata.annotations)
    await rack.settle()
    assert rack.backend.machines[key].orders.count("reboot soft") == 1


async def test_a_host_that_must_not_be_off_is_not_held_off_and_says_so(rack: Rack) -> None:
    key = await provisioned(rack, disablePowerOff=True)
    await rack.annotate(key, HELD)
    host = await rack.until(key, lambda host: "disablePowerOff" in rack.sentence(host))
    assert host.status.powered_on
    assert rack.backend.machines[key].orders == []


# Failures, and what others do


async def test_a_power_off_that_failed_is_an_error_and_the_next_one_is_hard(rack: Rack) -> None:
    key = await provisioned(rack)
    rack.backend.script("set_power", Failed("the machine does not react"))
    await rack.annotate(key, PLAIN)
    host = await rack.until_error(key, "does not react")
    assert host.status.error_type == ErrorType.POWER_MANAGEMENT
    assert host.status.error_count == 1
    assert PLAIN in host.metadata.annotations
    await rack.operator.restart()
    host = await rack.until_rebooted(key)
    await rack.until_well(key, "provisioned")
    assert rack.backend.machines[key].orders == ["power off hard", "power on"]
    assert "PowerManagementError" in await rack.event_reasons()


async def test_a_power_off_stays_hard_while_it_is_under_way_after_a_failure(rack: Rack) -> None:
    key = await provisioned(rack)
    rack.backend.script("set_power", Failed("the machine does not react"), Busy("switching the power off"))
    await rack.annotate(key, PLAIN)
    await rack.until_error(key, "does not react")
    await rack.operator.restart()
    host = await rack.until_well(key, "provisioned")
    assert host.status.error_count == 1
    rack.backend.tell(key)
    await rack.until_rebooted(key)
    assert rack.backend.machines[key].orders == ["power off hard", "power on"]


async def test_a_machine_that_somebody_switched_off_by_hand_is_noticed_and_switched_on(rack: Rack) -> None:
    key = await provisioned(rack)
    rack.backend.hold("set_power", Busy("switching the power on"))
    rack.backend.machines[key].on = False
    rack.backend.tell(key)
    await rack.until(key, lambda host: not host.status.powered_on)
    rack.backend.let_go("set_power")
    rack.backend.tell(key)
    await rack.until(key, lambda host: host.status.powered_on)
    assert rack.backend.machines[key].orders == ["power on"]


async def test_a_host_whose_power_controls_cannot_be_reached_is_not_manageable_until_they_can(
    rack: Rack,
) -> None:
    def manageable(host: BareMetalHost) -> str:
        return next(found.reason for found in host.status.conditions if found.type == "Manageable")

    key = await provisioned(rack)
    for failure, reason in ((True, "PowerFailure"), (False, "Manageable")):
        rack.backend.machines[key].power_failure = failure
        rack.backend.tell(key)
        await rack.until(key, lambda host, reason=reason: manageable(host) == reason)


async def test_a_host_is_deleted_while_it_is_held_off(rack: Rack) -> None:
    key = await provisioned(rack)
    await rack.annotate(key, HELD)
    await rack.until(key, lambda host: not host.status.powered_on)
    await rack.delete(key)
    await rack.until_gone(key)
    assert not rack.backend.machines[key].known


async def test_a_reboot_costs_two_writes_of_the_host(rack: Rack) -> None:
    """The user's annotation, its removal, and the time of the status, if anything in it changed at all."""
    key = await provisioned(rack)
    await rack.settle()
    before = (await rack.get(key)).status
    await rack.annotate(key, PLAIN)
    await rack.until(key, not_asked)
    await rack.settle()
    assert (await rack.get(key)).status == before
