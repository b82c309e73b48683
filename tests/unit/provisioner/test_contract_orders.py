"""What every back end promises of orders: told twice they mean the same, and a failure is told before anything is tried anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
from contract import EVENTS, KEY, MIRROR, OTHER_ORDER, SETTINGS, UPDATE, Play
from ironic_orders import until

from ingot.api.hardwaredata import HardwareDetails
from ingot.provisioner import (
    BackendUnavailable,
    Failed,
    FirmwareChange,
    NotRegistered,
    Power,
    PowerOffMode,
    Preparation,
    Ready,
    Service,
    Vitals,
)


async def test_a_host_is_registered_once_and_keeps_its_name(play: Play):
    first = await play.register()
    assert isinstance(first, Ready)
    assert first.value.backend_id
    assert await play.register() == first


async def test_a_host_that_is_registered_can_be_asked_for_again_without_its_credentials(play: Play):
    first = await play.register()
    without = replace(play.access, credentials=None)
    assert await play.backend.register(play.host, without, credentials_changed=False, again=False) == first


async def test_a_host_that_nobody_knows_is_not_registered_without_its_credentials(play: Play):
    without = replace(play.access, credentials=None)
    answer = await play.backend.register(play.host, without, credentials_changed=False, again=False)
    assert isinstance(answer, NotRegistered)


async def test_other_settings_are_taken_without_the_credentials(play: Play):
    first = await play.register()
    without = replace(play.access, credentials=None, nic_macs=("52:54:00:00:00:77",), architecture="x86_64")
    answer = await play.to_end(
        lambda: play.backend.register(play.host, without, credentials_changed=False, again=False)
    )
    assert answer == first


async def test_what_inspection_found_is_kept(play: Play):
    await play.registered()
    first = await play.inspect()
    assert isinstance(first, Ready)
    assert isinstance(first.value.hardware, HardwareDetails)
    assert first.value.hardware.cpu.arch
    assert await play.inspect() == first
    assert play.stage.done("inspect") == 1


async def test_a_request_to_look_anew_is_followed_once_for_each_name(play: Play):
    await play.inspected()
    for name in ("monday", "monday", "tuesday", "tuesday"):
        assert isinstance(await play.inspect(name), Ready)
    assert play.stage.done("inspect") == 3


async def test_a_preparation_is_begun_once_for_each_name(play: Play):
    await play.inspected()
    again = Preparation(name="second", firmware=FirmwareChange(settings={"QuietBoot": "false"}))
    for order in (None, None, again, again):
        assert await play.prepare(order) == Ready(None)
    assert play.stage.done("prepare") == 2


async def test_a_preparation_without_a_change_does_nothing(play: Play):
    await play.inspected()
    assert await play.prepare(Preparation(name="nothing")) == Ready(None)
    assert play.stage.done("prepare") == 0
    assert play.permit.asked == []


async def test_firmware_is_as_it_was_ordered(play: Play):
    await play.inspected()
    before = await play.to_end(lambda: play.backend.firmware_settings(play.host))
    assert isinstance(before, Ready)
    assert before.value.settings["ProcTurboMode"] == "Enabled"
    assert before.value.schema["ProcTurboMode"].allowable_values == ["Enabled", "Disabled"]
    assert await play.prepare() == Ready(None)
    after = await play.to_end(lambda: play.backend.firmware_settings(play.host))
    assert isinstance(after, Ready)
    assert after.value.settings == {**before.value.settings, "ProcTurboMode": "Disabled"}


async def test_an_image_is_installed_once(play: Play):
    await play.inspected()
    for _ in range(2):
        assert await play.provision() == Ready(None)
    assert play.stage.done("deploy") == 1
    assert play.stage.on_disk() == "https://127.0.0.1/image.raw"
    assert play.stage.powered_on()


async def test_another_image_does_not_overwrite_what_is_installed(play: Play):
    await play.provisioned()
    assert isinstance(await play.provision(OTHER_ORDER), Failed)
    assert play.stage.on_disk() == "https://127.0.0.1/image.raw"


async def test_a_disk_is_emptied_once_and_can_be_used_again(play: Play):
    await play.provisioned()
    for _ in range(2):
        assert await play.deprovision() == Ready(None)
    assert play.stage.done("undeploy") == 1
    assert play.stage.on_disk() == ""
    assert await play.provision(OTHER_ORDER) == Ready(None)
    assert play.stage.on_disk() == "https://127.0.0.1/other.raw"


async def test_a_machine_in_use_is_serviced_once_for_each_name_and_runs_on(play: Play):
    await play.provisioned()
    for _ in range(2):
        assert await play.service() == Ready(None)
    assert await play.service(Service(name="nothing")) == Ready(None)
    assert play.stage.done("service") == 1
    assert play.stage.powered_on()
    assert play.stage.on_disk() == "https://127.0.0.1/image.raw"


async def test_the_power_is_as_wanted(play: Play):
    await play.provisioned()
    for wanted, on in ((Power.OFF, False), (Power.OFF, False), (Power.ON, True), (Power.ON, True)):
        assert await play.power(wanted) == Ready(None)
        assert play.stage.powered_on() is on
        vitals = await play.backend.vitals(play.host)
        assert isinstance(vitals, Vitals)
        assert vitals.powered_on is on
    assert play.stage.done("power off") == 1


@pytest.mark.parametrize("mode", PowerOffMode)
async def test_a_host_that_must_not_be_switched_off_is_rebooted_and_is_on_afterwards(
    play: Play, mode: PowerOffMode
):
    play.access = type(play.access)(
        address=play.access.address,
        credentials=play.access.credentials,
        boot_mac=play.access.boot_mac,
        disable_power_off=True,
    )
    await play.provisioned()
    assert await play.power(Power.OFF, mode) == Ready(None)
    assert play.stage.powered_on()
    assert play.stage.done("reboot") == 1
    assert play.stage.done("power off") == 0


async def test_the_drive_holds_the_image_of_the_url_and_no_other(play: Play):
    await play.provisioned()
    for url in (
        "https://127.0.0.1/data.iso",
        "https://127.0.0.1/data.iso",
        "https://127.0.0.1/b.iso",
        "",
        "",
    ):
        assert await play.data_image(url) == Ready(None)
    assert play.stage.done("attach") == 2
    assert play.stage.done("eject") == 1


async def test_a_subscription_is_found_again_and_ended_once(play: Play):
    await play.provisioned()
    first = await play.subscribe()
    assert isinstance(first, Ready)
    assert await play.subscribe() == first
    other = type(EVENTS)(destination="https://127.0.0.1/elsewhere")
    assert await play.subscribe(other) != first
    for _ in range(2):
        assert await play.unsubscribe(first.value) == Ready(None)
    assert await play.subscribe() != first


@pytest.mark.parametrize(
    "verb",
    [
        "register",
        "inspect",
        "prepare",
        "service",
        "deprovision",
        "adopt",
        "power off",
        "data image",
        "subscribe",
    ],
)
async def test_a_failure_is_told_and_only_then_tried_anew(play: Play, verb: str):
    async def ask(again: bool) -> object:
        match verb:
            case "power off":
                return await play.power(Power.OFF, again=again)
            case "data image":
                return await play.data_image("https://127.0.0.1/data.iso", again=again)
            case "subscribe":
                return await play.subscribe(again=again)
        return await getattr(play, verb)(again=again)

    match verb:
        case "register":
            pass
        case "inspect" | "adopt":
            await play.registered()
        case "prepare":
            await play.inspected()
        case _:
            await play.provisioned()
    play.stage.will_fail(verb, times=2)
    first = await ask(again=False)
    assert isinstance(first, Failed)
    assert first.message
    if verb not in play.stage.answers_at_once:
        assert await ask(again=False) == first, "nothing is tried anew that nobody asked for"
    assert isinstance(await ask(again=True), Failed), "the second attempt failed too, and that is told"
    assert isinstance(await ask(again=True), Ready)


async def test_a_deployment_that_failed_is_undone_before_the_next(play: Play):
    await play.inspected()
    play.stage.will_fail("provision")
    assert isinstance(await play.provision(), Failed)
    assert await play.deprovision() == Ready(None)
    assert await play.provision() == Ready(None)
    assert play.stage.done("deploy") == 1


async def test_a_preparation_that_failed_is_begun_anew_with_all_of_its_changes(play: Play):
    await play.inspected()
    order = Preparation(
        name="first", raid=MIRROR, firmware=FirmwareChange(settings=SETTINGS.settings, updates=(UPDATE,))
    )
    play.stage.will_fail("prepare")
    assert isinstance(await play.prepare(order), Failed)
    assert await play.prepare(order, again=True) == Ready(None)
    assert play.stage.done("prepare") == 1


async def test_while_the_back_end_is_away_nobody_is_told_anything(play: Play):
    await play.provisioned()
    play.stage.away(True)
    with pytest.raises(BackendUnavailable):
        await play.backend.check()
    with pytest.raises(BackendUnavailable):
        await play.register()
    with pytest.raises(BackendUnavailable):
        await play.deprovision()
    play.heard.clear()
    play.stage.away(False)
    await until(lambda: KEY in play.heard)
    assert await play.adopt() == Ready(None)
    assert play.stage.on_disk()


@pytest.mark.parametrize("what", ["another change", "nothing"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_preparation_that_failed_unheard_is_told_before_another_order_begins(
    play: Play, what: str, restarted: bool
):
    """Whoever noted the first order as begun would take it for done, and firmware would never be written."""
    await play.inspected()
    play.stage.will_fail("prepare")
    first = Preparation(name="first", firmware=FirmwareChange(updates=(UPDATE,)))
    begun = await play.backend.prepare(play.host, first, permit=play.permit, again=False)
    if isinstance(begun, Failed):
        # This back end does it while the caller waits, and he has heard of it.
        return
    if restarted:
        await play.stage.restart()
    change = FirmwareChange(settings={"QuietBoot": "false"} if what == "another change" else {})
    second = Preparation(name="second", firmware=change)
    assert isinstance(await play.prepare(second), Failed)
    assert play.stage.done("prepare") == 0
    assert await play.prepare(second, again=True) == Ready(None)


@pytest.mark.parametrize("what", ["another change", "nothing"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_service_that_failed_unheard_is_told_before_another_order_begins(
    play: Play, what: str, restarted: bool
):
    await play.provisioned()
    play.stage.will_fail("service")
    first = Service(name="first", firmware=FirmwareChange(updates=(UPDATE,)))
    begun = await play.backend.service(play.host, first, permit=play.permit, again=False)
    if isinstance(begun, Failed):
        return
    if restarted:
        await play.stage.restart()
    change = FirmwareChange(settings={"QuietBoot": "false"} if what == "another change" else {})
    second = Service(name="second", firmware=change)
    assert isinstance(await play.service(second), Failed)
    assert play.stage.done("service") == 0
    assert await play.service(second, again=True) == Ready(None)
