"""Servicing: the firmware of a host in use is changed at a reboot, if its HostUpdatePolicy says so."""

from __future__ import annotations

import pytest
from firmware_objects import components_of, until_components, until_settings, want, want_updates
from rack import IMAGE, Rack

from ingot.api.baremetalhost import BareMetalHost, ErrorType
from ingot.api.hostfirmwarecomponents import HostFirmwareComponents
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS, HostFirmwareSettings
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.api.meta import Key
from ingot.provisioner import BackendUnavailable, Busy, Component, Failed

PLAIN = "reboot.metal3.io"
QUIET = {"QuietBoot": "false"}
V2 = ("bios", "https://firmware.example/v2.bin")
V3 = ("bios", "https://firmware.example/v3.bin")
BMC = ("bmc", "https://firmware.example/bmc.bin")


async def in_use(rack: Rack, **policy: str) -> Key:
    """A host that runs a system, with firmware that tells of itself, and this policy."""
    parts = {
        name: Component(name=name, initial_version="1.0", current_version="1.0") for name in ("bios", "bmc")
    }
    rack.backend.machines[Key(rack.namespace, "h1")].components.update(parts)
    key = await rack.host(image=IMAGE)
    if policy:
        body = {"metadata": {"name": key.name}, "spec": policy}
        await rack.client.create(HOST_UPDATE_POLICIES, body, namespace=rack.namespace)
    await rack.until(key, lambda host: host.state == "provisioned" and host.status.powered_on)
    rack.backend.machines[key].orders.clear()
    return key


async def wanting(rack: Rack, *updates: tuple[str, str], settings: dict[str, str] | None = None) -> Key:
    """Such a host, whose policy opens everything, with these wishes."""
    key = await in_use(rack, firmwareSettings="onReboot", firmwareUpdates="onReboot")
    if settings:
        await want(rack, key, settings)
        await until_settings(rack, key, _changes)
    if updates:
        await want_updates(rack, key, *updates)
        await until_components(rack, key, _changes)
    return key


def _changes(found: HostFirmwareSettings | HostFirmwareComponents) -> bool:
    return any(one.type == "ChangeDetected" and one.status == "True" for one in found.status.conditions)


def serviced(host: BareMetalHost) -> bool:
    return host.status.operational_status == "servicing"


def well(host: BareMetalHost) -> bool:
    return host.status.operational_status == "OK" and host.status.powered_on


async def done(rack: Rack, key: Key) -> None:
    """The slow service comes to its end."""
    rack.backend.slow.discard("service")
    rack.backend.tell(key)


def orders(rack: Rack, key: Key) -> list[str]:
    return rack.backend.machines[key].orders


async def test_settings_and_updates_are_changed_between_off_and_on(rack: Rack) -> None:
    key = await wanting(rack, V2, settings=QUIET)
    await rack.annotate(key, PLAIN)
    await until_settings(rack, key, lambda found: found.present()["QuietBoot"] == "false")
    components = await until_components(rack, key, lambda found: bool(found.status.updates))
    host = await rack.until(key, well)
    assert host.state == "provisioned"
    assert orders(rack, key) == ["power off soft", "service"]
    assert [one.url for one in components.status.updates] == [V2[1]]
    await rack.settle()
    rack.backend.tell(key)
    await rack.settle()
    assert orders(rack, key) == ["power off soft", "service"], "once is enough"


async def test_a_host_that_somebody_else_installed_is_serviced_as_well(rack: Rack) -> None:
    key = await rack.host(externallyProvisioned=True)
    body = {"metadata": {"name": key.name}, "spec": {"firmwareSettings": "onReboot"}}
    await rack.client.create(HOST_UPDATE_POLICIES, body, namespace=rack.namespace)
    await rack.until(key, lambda host: host.state == "externally provisioned" and host.status.powered_on)
    await want(rack, key, QUIET)
    await until_settings(rack, key, _changes)
    await rack.annotate(key, PLAIN)
    await rack.until_rebooted(key)
    assert rack.backend.machines[key].settings["QuietBoot"] == "false"


async def test_a_policy_that_is_closed_meanwhile_ends_what_waits(rack: Rack) -> None:
    key = await wanting(rack, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await rack.until(key, lambda host: "changing the firmware" in rack.sentence(host))
    await rack.client.delete(HOST_UPDATE_POLICIES, key)
    await rack.until(key, well)
    assert orders(rack, key) == ["power off soft", "service", "end service"]


async def test_nothing_is_changed_until_somebody_reboots_the_host(rack: Rack) -> None:
    key = await wanting(rack, V2, settings=QUIET)
    await rack.settle()
    assert orders(rack, key) == []
    assert (await rack.get(key)).status.operational_status == "OK"


@pytest.mark.parametrize(
    ("policy", "changed"),
    [
        ({}, ([], False)),
        ({"firmwareSettings": "onReboot", "firmwareUpdates": "onPreparing"}, (["service"], False)),
        ({"firmwareUpdates": "onReboot"}, (["service"], True)),
    ],
)
async def test_only_what_the_policy_opens_is_changed(
    rack: Rack, policy: dict[str, str], changed: tuple[list[str], bool]
) -> None:
    key = await in_use(rack, **policy)
    await want(rack, key, QUIET)
    await want_updates(rack, key, V2)
    await until_settings(rack, key, _changes)
    await until_components(rack, key, _changes)
    await rack.annotate(key, PLAIN)
    await rack.until_rebooted(key)
    services, updated = changed
    machine = rack.backend.machines[key]
    assert [order for order in machine.orders if order == "service"] == services
    assert (machine.components["bios"].current_version == "v2.bin") is updated
    assert (machine.settings["QuietBoot"] == "false") is (bool(services) and not updated)


async def test_a_host_that_is_serviced_says_so_before_it_is_touched_and_is_not_ready(rack: Rack) -> None:
    key = await wanting(rack, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    host = await rack.until(key, serviced)
    ready = next(found for found in host.status.conditions if found.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "Servicing")
    host = await rack.until(key, lambda host: "changing the firmware" in rack.sentence(host))
    assert serviced(host)
    assert host.status.error_message == ""
    await done(rack, key)
    host = await rack.until(key, well)
    ready = next(found for found in host.status.conditions if found.type == "Ready")
    assert (ready.status, ready.reason) == ("True", "Provisioned")


async def test_updates_count_as_begun_once_the_back_end_has_taken_them_and_are_not_begun_again(
    rack: Rack,
) -> None:
    key = await wanting(rack, V2)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await until_components(rack, key, lambda found: bool(found.status.updates))
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert serviced(await rack.get(key))
    await done(rack, key)
    await rack.until(key, well)
    assert orders(rack, key) == ["power off soft", "service"]
    assert rack.backend.machines[key].components["bios"].current_version == "v2.bin"


@pytest.mark.parametrize(
    ("wishes", "finished"), [("settings", False), ("updates", False), ("updates", True), ("both", True)]
)
async def test_firmware_that_was_being_changed_when_the_operator_died_is_neither_lost_nor_changed_twice(
    rack: Rack, wishes: str, finished: bool
) -> None:
    """`finished`: whether the machine came to the end while nobody looked."""
    key = await wanting(
        rack, *([V2] if wishes != "settings" else []), settings=QUIET if wishes != "updates" else None
    )
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await rack.until(key, lambda host: "changing the firmware" in rack.sentence(host))
    await rack.operator.end()
    if finished:
        rack.backend.slow.discard("service")
    await rack.operator.start()
    await rack.settle()
    await done(rack, key)
    await rack.until(key, well)
    await rack.settle()
    machine = rack.backend.machines[key]
    assert machine.orders == ["power off soft", "service"]
    assert machine.settings["QuietBoot"] == ("false" if wishes != "updates" else "true")
    assert machine.components["bios"].current_version == ("v2.bin" if wishes != "settings" else "1.0")


async def test_an_operator_that_died_after_it_wrote_and_before_it_ordered_orders_when_it_is_back(
    rack: Rack,
) -> None:
    key = await wanting(rack, settings=QUIET)
    rack.backend.hold("service", BackendUnavailable("nobody answers"))
    await rack.annotate(key, PLAIN)
    await rack.until(key, serviced)
    await rack.operator.end()
    rack.backend.let_go("service")
    await rack.operator.start()
    await rack.until(key, well)
    assert orders(rack, key) == ["power off soft", "service"]


async def test_a_service_that_failed_is_an_error_and_is_done_again(rack: Rack) -> None:
    key = await wanting(rack, V2, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await until_components(rack, key, lambda found: bool(found.status.updates))
    machine = rack.backend.machines[key]
    machine.service, machine.broken = None, "the flash did not take"
    rack.backend.tell(key)
    host = await rack.until_error(key, "the flash did not take")
    assert host.status.error_type == ErrorType.SERVICING
    assert host.state == "provisioned"
    assert (await components_of(rack, key)).status.updates == []
    await rack.settle()
    assert "ServicingError" in await rack.event_reasons()
    await rack.operator.restart()
    await rack.until(key, lambda host: serviced(host) and not host.status.error_type)
    await done(rack, key)
    await rack.until(key, well)
    assert machine.orders == ["power off soft", "service", "service"]
    assert machine.components["bios"].current_version == "v2.bin"
    assert machine.settings["QuietBoot"] == "false"
    assert (await components_of(rack, key)).status.updates != []


async def test_a_corrected_wish_after_a_failure_is_tried_at_once(rack: Rack) -> None:
    key = await wanting(rack, V2)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await until_components(rack, key, lambda found: bool(found.status.updates))
    machine = rack.backend.machines[key]
    machine.service, machine.broken = None, "v2 is not for this machine"
    rack.backend.tell(key)
    await rack.until_error(key, "not for this machine")
    rack.backend.slow.discard("service")
    await want_updates(rack, key, V3)
    await rack.until(key, well)
    assert machine.components["bios"].current_version == "v3.bin"


@pytest.mark.parametrize("failed", [False, True])
async def test_taking_back_all_wishes_ends_what_waits_or_failed_and_the_host_starts(
    rack: Rack, failed: bool
) -> None:
    key = await wanting(rack, V2, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await until_components(rack, key, lambda found: bool(found.status.updates))
    machine = rack.backend.machines[key]
    if failed:
        machine.service, machine.broken = None, "the flash did not take"
        rack.backend.tell(key)
        await rack.until_error(key, "the flash did not take")
    await want_updates(rack, key)
    await rack.settle()
    assert "end service" not in machine.orders, "the settings are still wanted"
    await rack.client.patch(HOST_FIRMWARE_SETTINGS, key, {"spec": {"settings": {"QuietBoot": None}}})
    host = await rack.until(key, well)
    assert machine.orders[-1] == "end service"
    assert not host.status.error_type
    assert machine.settings["QuietBoot"] == "true"


async def test_taking_back_one_of_two_updates_neither_ends_nor_repeats_what_was_begun(rack: Rack) -> None:
    key = await wanting(rack, V2, BMC)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await until_components(rack, key, lambda found: len(found.status.updates) == 2)
    await want_updates(rack, key, V2)
    await rack.settle()
    assert serviced(await rack.get(key))
    await done(rack, key)
    await rack.until(key, well)
    await rack.settle()
    assert orders(rack, key) == ["power off soft", "service"]


async def test_an_update_that_is_added_meanwhile_is_done_too_and_what_was_begun_is_not_repeated(
    rack: Rack,
) -> None:
    key = await wanting(rack, V2)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await until_components(rack, key, lambda found: bool(found.status.updates))
    await want_updates(rack, key, V2, BMC)
    await rack.settle()
    machine = rack.backend.machines[key]
    assert machine.service is not None
    assert [one.url for one in machine.service.firmware.updates] == [V2[1]]
    await done(rack, key)
    await rack.until(key, lambda host: machine.components["bmc"].current_version == "bmc.bin")
    await rack.until(key, well)
    assert machine.flashed == [V2[1], BMC[1]]


async def test_a_service_is_changed_by_unrelated_edits_in_nothing(rack: Rack) -> None:
    key = await wanting(rack, V2, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await until_components(rack, key, lambda found: bool(found.status.updates))
    await rack.change(key, {"description": "somewhere in the middle"})
    await rack.annotate(key, "example.com/note", "hello")
    await rack.settle()
    await done(rack, key)
    await rack.until(key, well)
    assert orders(rack, key) == ["power off soft", "service"]


async def test_a_host_is_deleted_while_it_is_serviced(rack: Rack) -> None:
    key = await wanting(rack, V2)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await rack.until(key, serviced)
    await rack.delete(key)
    await rack.until_gone(key)
    assert not rack.backend.machines[key].known


async def test_an_image_that_is_removed_while_a_host_is_serviced_is_removed(rack: Rack) -> None:
    key = await wanting(rack, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await rack.until(key, serviced)
    await rack.change(key, {"image": None})
    host = await rack.until_state(key, "available")
    assert host.status.operational_status == "OK"


async def test_a_reboot_that_is_asked_for_while_a_host_is_serviced_comes_afterwards(rack: Rack) -> None:
    key = await wanting(rack, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await rack.until(key, serviced)
    await rack.annotate(key, PLAIN)
    await rack.settle()
    assert orders(rack, key) == ["power off soft", "service"]
    assert PLAIN in (await rack.get(key)).metadata.annotations
    await done(rack, key)
    await rack.until_rebooted(key)
    assert orders(rack, key) == ["power off soft", "service", "power off soft", "power on"]


async def test_settings_that_the_firmware_takes_and_does_not_show_are_told_and_do_not_cost_a_second_stop(
    rack: Rack,
) -> None:
    key = await wanting(rack, settings=QUIET)
    rack.backend.machines[key].deaf = True
    await rack.annotate(key, PLAIN)
    await rack.until_rebooted(key)
    await rack.settle()
    assert "ServicingError" in await rack.event_reasons()
    for _ in range(2):
        rack.backend.tell(key)
        await rack.settle()
    host = await rack.get(key)
    assert well(host)
    assert orders(rack, key) == ["power off soft", "service"]


@pytest.mark.parametrize("failed", [False, True])
async def test_an_error_of_another_kind_does_not_make_anybody_forget_that_a_host_is_serviced(
    rack: Rack, failed: bool
) -> None:
    key = await wanting(rack, settings=QUIET)
    rack.backend.slow.add("service")
    await rack.annotate(key, PLAIN)
    await rack.until(key, lambda host: "changing the firmware" in rack.sentence(host))
    machine = rack.backend.machines[key]
    if failed:
        machine.service, machine.broken = None, "the flash did not take"
        rack.backend.tell(key)
        await rack.until_error(key, "the flash did not take")
    rack.backend.hold("register", Failed("the BMC does not answer"))
    await rack.operator.restart()
    host = await rack.until_error(key, "the BMC does not answer")
    assert host.status.error_type == ErrorType.REGISTRATION
    assert serviced(host)
    rack.backend.hold("register", Busy("trying the BMC"))
    await rack.operator.restart()
    await rack.until(key, lambda host: not host.status.error_type)
    assert serviced(await rack.get(key))
    rack.backend.let_go("register")
    rack.backend.slow.discard("service")
    await rack.operator.restart()
    if failed:
        # The failure that was forgotten for the other one is told anew, and mended at the next attempt.
        await rack.until_error(key, "the flash did not take")
        await rack.operator.restart()
    await rack.until(key, well)
    assert machine.settings["QuietBoot"] == "false"
    assert machine.orders == ["power off soft", "service", *(["service"] if failed else [])]
