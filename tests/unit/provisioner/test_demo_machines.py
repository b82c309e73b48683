"""Demo machines behave as their script says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from contract import ACCESS, KEY, MIRROR, SETTINGS, UPDATE, Play, playing
from ironic_orders import MAC, ORDER, until
from stages import DemoStage

from ingot.api.baremetalhost import CustomDeploy, Image
from ingot.api.meta import Key
from ingot.api.wire import wire
from ingot.provisioner import (
    Act,
    BackendUnavailable,
    Busy,
    Component,
    ConfigDrive,
    Credentials,
    Deployment,
    Failed,
    FirmwareChange,
    Inspection,
    NotRegistered,
    Power,
    PowerOffMode,
    Preparation,
    Ready,
    Service,
    Vitals,
)
from ingot.provisioner.demo import AT_ONCE, BENCHMARK, FOREVER, Behaviour, HostScript, Outage, Script
from ingot.provisioner.demo.hardware import hardware_of
from ingot.provisioner.demo.machine import Machine, System
from ingot.trust import Secret


def at_once(*outages: Outage, **said: Any) -> Script:
    """Everything at once, but for what is said."""
    return Script(default=AT_ONCE.default, hosts={"*": HostScript(**said)}, outages=list(outages))


@asynccontextmanager
async def demo(script: Script = AT_ONCE) -> AsyncIterator[Play]:
    """A host of a demo back end whose clock is that of the loop."""
    loop = asyncio.get_running_loop()
    async with playing(DemoStage(None, script, loop.time)) as play:
        yield play


def machine(play: Play) -> Machine:
    stage = play.stage
    assert isinstance(stage, DemoStage)
    return stage.backend.machine(KEY)


@pytest.mark.looptime
async def test_the_peers_delays_are_kept_to_the_second():
    async with demo(BENCHMARK) as play:
        began = asyncio.get_running_loop().time()
        await play.registered()
        assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.1)
        assert isinstance(await play.inspect(), Ready)
        assert asyncio.get_running_loop().time() - began == pytest.approx(7, abs=0.1)


async def test_a_machine_is_on_after_inspection_and_looks_like_a_server():
    async with demo() as play:
        await play.registered()
        found = await play.inspect()
        assert machine(play).powered_on
        assert found.value.hardware.cpu.arch == "x86_64"
        assert found.value.hardware.nics[0].mac == MAC
        assert len({nic.mac for nic in found.value.hardware.nics}) == 2
        assert len(found.value.hardware.storage) > 1
        assert 5_000 <= len(msgspec.json.encode(wire(found.value.hardware))) <= 7_000


def test_no_two_machines_have_a_mac_address_or_serial_number_in_common():
    found = [hardware_of(Key("rack", f"h{number}")) for number in range(2_000)]
    assert len({nic.mac for one in found for nic in one.nics}) == 4_000
    assert len({one.system_vendor.serial_number for one in found}) == 2_000


@pytest.mark.looptime
async def test_an_inspection_whose_ramdisk_does_not_come_up_waits_until_it_is_booted_once_more():
    async with demo(at_once(inspect=Behaviour(seconds=[FOREVER, 2]))) as play:
        await play.registered()

        async def ask(restart: bool) -> object:
            wanted = Inspection(restart=restart)
            return await play.backend.inspect(play.host, wanted, permit=play.permit, again=False)

        assert isinstance(await ask(restart=False), Busy)
        await asyncio.sleep(3600)
        assert isinstance(await ask(restart=False), Busy)
        assert isinstance(await ask(restart=True), Busy)
        assert isinstance(await ask(restart=True), Busy), "it is on its way, and a restart means nothing"
        await asyncio.sleep(2.1)
        assert isinstance(await ask(restart=False), Ready)
        assert play.stage.done("inspect") == 1


async def test_credentials_that_are_refused_are_told_as_such_and_others_are_tried_at_once():
    script = at_once(register=Behaviour(fails=1, refuses_credentials=True, message="wrong password"))
    async with demo(script) as play:
        assert await play.register() == Failed("wrong password", refused_credentials=True)
        assert await play.register() == Failed("wrong password", refused_credentials=True)
        play.access = replace(ACCESS, credentials=Credentials(username="admin", password=Secret("better")))
        assert isinstance(await play.register(), Ready)


async def test_changed_credentials_are_tried_and_good_ones_are_kept():
    async with demo() as play:
        await play.registered()
        before = machine(play).attempts["register"]
        await play.register()
        assert machine(play).attempts["register"] == before
        play.access = replace(ACCESS, credentials=Credentials(username="admin", password=Secret("new")))
        await play.register()
        assert machine(play).attempts["register"] == before + 1
        assert "s3cret" not in msgspec.json.encode(machine(play)).decode()


async def test_raid_firmware_and_components_are_what_was_ordered():
    async with demo(at_once(components={"bios": "1.0", "bmc": "2.0"})) as play:
        await play.inspected()
        change = FirmwareChange(settings=SETTINGS.settings, updates=(UPDATE,))
        await play.prepare(Preparation(name="one", raid=MIRROR, firmware=change))
        assert machine(play).raid == MIRROR
        components = await play.backend.firmware_components(play.host)
        assert components == Ready(
            (
                Component(
                    name="bios",
                    initial_version="1.0",
                    current_version="bios-3.0.bin",
                    last_version_flashed="bios-3.0.bin",
                ),
                Component(name="bmc", initial_version="2.0", current_version="2.0"),
            )
        )
        # Nothing is said of RAID: it stays.
        await play.prepare(Preparation(name="two", firmware=FirmwareChange(settings={"NumLock": "Off"})))
        assert machine(play).raid == MIRROR


async def test_a_machine_without_components_or_settings_tells_none():
    async with demo(at_once(firmware_settings=False)) as play:
        await play.registered()
        settings = await play.backend.firmware_settings(play.host)
        assert isinstance(settings, Ready)
        assert not settings.value.settings
        assert not settings.value.schema
        assert await play.backend.firmware_components(play.host) == Ready(())


async def test_every_setting_of_a_machine_fits_its_schema():
    async with demo() as play:
        await play.registered()
        report = await play.backend.firmware_settings(play.host)
        assert isinstance(report, Ready)
        assert report.value.settings.keys() == report.value.schema.keys()
        for name, schema in report.value.schema.items():
            value = report.value.settings[name]
            if schema.allowable_values:
                assert value in schema.allowable_values
            if schema.upper_bound is not None and schema.lower_bound is not None:
                assert schema.lower_bound <= int(value) <= schema.upper_bound


async def test_a_service_that_hangs_is_ended_when_nothing_is_wanted_any_more():
    async with demo(at_once(service=Behaviour(seconds=FOREVER))) as play:
        await play.provisioned()
        order = Service(name="one", firmware=SETTINGS)
        assert isinstance(await play.backend.service(play.host, order, permit=play.permit, again=False), Busy)
        play.permit.refuses.add(Act.SERVICE)
        withdrawn = Service(name="none")
        refused = await play.backend.service(play.host, withdrawn, permit=play.permit, again=False)
        assert refused == Busy("nobody asked for service")
        play.permit.refuses.clear()
        assert await play.service(withdrawn) == Ready(None)
        assert play.stage.powered_on()
        assert play.stage.done("service") == 0
        assert machine(play).attempts["service"] == 1
        await play.backend.service(play.host, order, permit=play.permit, again=False)
        assert machine(play).attempts["service"] == 2, "it was not done, so it can be asked for again"


async def test_a_deployment_that_hangs_is_given_up_for_deprovisioning():
    async with demo(at_once(provision=Behaviour(seconds=FOREVER))) as play:
        await play.inspected()
        assert isinstance(
            await play.backend.provision(play.host, ORDER, permit=play.permit, again=False), Busy
        )
        assert await play.deprovision() == Ready(None)
        assert play.stage.on_disk() == ""


async def test_pulling_the_plug_ends_what_waits_for_a_ramdisk():
    async with demo(at_once(inspect=Behaviour(seconds=FOREVER))) as play:
        await play.registered()
        assert isinstance(
            await play.backend.inspect(play.host, Inspection(), permit=play.permit, again=False), Busy
        )
        soft = await play.backend.set_power(
            play.host, Power.OFF, mode=PowerOffMode.SOFT, permit=play.permit, again=False
        )
        assert isinstance(soft, Busy)
        assert await play.power(Power.OFF) == Ready(None)
        assert not play.stage.powered_on()
        assert await play.delete() == Ready(None)


@pytest.mark.parametrize("force", [False, True])
async def test_what_is_under_way_is_given_up_for_a_detachment_only_by_force(force: bool):
    async with demo(at_once(inspect=Behaviour(seconds=FOREVER))) as play:
        await play.registered()
        await play.backend.inspect(play.host, Inspection(), permit=play.permit, again=False)
        answer = await play.backend.detach(play.host, force=force, permit=play.permit)
        assert answer == Ready(None) if force else isinstance(answer, Busy)


async def test_a_record_with_something_unfinished_is_made_anew_for_a_running_machine():
    async with demo(at_once(inspect=Behaviour(fails=1))) as play:
        await play.registered()
        assert isinstance(await play.inspect(), Failed)
        play.permit.refuses.add(Act.FORGET)
        refused = await play.backend.adopt(play.host, None, permit=play.permit, again=False)
        assert isinstance(refused, Busy)
        play.permit.refuses.clear()
        play.heard.clear()
        assert isinstance(await play.adopt(), NotRegistered)
        await until(lambda: KEY in play.heard)
        await play.registered()
        assert await play.adopt() == Ready(None)


async def test_a_machine_that_ignores_the_power_button_goes_off_the_hard_way():
    async with demo(at_once(soft_power_off=Behaviour(fails="always"))) as play:
        await play.inspected()
        assert isinstance(await play.power(Power.OFF, PowerOffMode.SOFT), Failed)
        assert await play.power(Power.OFF, PowerOffMode.HARD, again=True) == Ready(None)
        assert play.stage.done("power off hard") == 1


async def test_health_and_power_failure_are_told_and_can_change():
    async with demo(at_once(health="Critical", power_failure=True)) as play:
        await play.inspected()
        assert await play.backend.vitals(play.host) == Vitals(
            powered_on=True, power_failure=True, health="Critical"
        )
        assert isinstance(await play.power(Power.OFF), Failed)
        stage = play.stage
        assert isinstance(stage, DemoStage)
        play.heard.clear()
        stage.backend.play(AT_ONCE)
        await until(lambda: KEY in play.heard)
        assert await play.backend.vitals(play.host) == Vitals(powered_on=True, health="OK")


@pytest.mark.parametrize(
    "order",
    [
        Deployment(image=Image(url="", format="coreos"), config_drive=ConfigDrive()),
        Deployment(custom_deploy=CustomDeploy(method="install_coreos"), config_drive=ConfigDrive()),
    ],
    ids=["by format", "by step"],
)
async def test_both_words_for_coreos_put_the_same_on_the_disk(order: Deployment):
    async with demo() as play:
        await play.registered()
        await play.backend.provision(play.host, order, permit=play.permit, again=False)
        assert machine(play).disk == System(method="install_coreos")


async def test_a_disk_that_is_not_cleaned_keeps_what_was_on_it():
    async with demo() as play:
        await play.provisioned()
        answer = await play.backend.deprovision(
            play.host, automated_cleaning=False, permit=play.permit, again=False
        )
        assert answer == Ready(None)
        assert play.stage.on_disk()
        assert await play.provision() == Ready(None)
        assert play.stage.done("deploy") == 2


@pytest.mark.looptime
async def test_an_outage_comes_and_goes_and_takes_the_records_with_it():
    outage = Outage(after=10, seconds=5, forgets=True)
    async with demo(at_once(outage)) as play:
        await play.provisioned()
        await asyncio.sleep(10.1)
        with pytest.raises(BackendUnavailable, match="as its script says"):
            await play.backend.vitals(play.host)
        play.heard.clear()
        await asyncio.sleep(5)
        assert play.heard == [KEY]
        assert isinstance(await play.backend.vitals(play.host), NotRegistered)
        assert play.stage.on_disk()
        assert play.stage.powered_on()


@pytest.mark.parametrize("name", ["demo-preparing", "demo-preparing-error"])
async def test_a_demo_host_of_metal3_is_prepared_even_where_nothing_is_to_be_changed(name: str):
    loop = asyncio.get_running_loop()
    async with playing(DemoStage(None, AT_ONCE, loop.time)) as play:
        host = replace(play.host, key=Key("rack", name))
        await play.backend.register(host, ACCESS, credentials_changed=True, again=False)
        answer = await play.backend.prepare(host, Preparation(name="x"), permit=play.permit, again=False)
        assert isinstance(answer, Failed if name.endswith("error") else Busy)


@pytest.mark.looptime
async def test_firmware_settings_can_be_slow_to_read():
    async with demo(at_once(read_firmware=Behaviour(seconds=3), inspect=Behaviour(seconds=10))) as play:
        await play.registered()
        assert isinstance(await play.backend.firmware_settings(play.host), Busy)
        await play.inspect()
        began = asyncio.get_running_loop().time()
        assert isinstance(await play.to_end(lambda: play.backend.firmware_settings(play.host)), Ready)
        assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.1)


async def test_an_order_that_is_under_way_is_told_from_others():
    slow = at_once(prepare=Behaviour(seconds=FOREVER), inspect=Behaviour(seconds=[0, FOREVER]))
    async with demo(slow) as play:
        await play.inspected()

        async def ask() -> object:
            order = Preparation(name="one", firmware=SETTINGS)
            return await play.backend.prepare(play.host, order, permit=play.permit, again=False)

        assert (await ask(), await ask()) == (
            Busy("changing RAID volumes and firmware", begun=True),
            Busy("changing RAID volumes and firmware", begun=True),
        )
        await play.power(Power.OFF)
        await play.backend.inspect(play.host, Inspection(renewal="new"), permit=play.permit, again=False)
        assert await ask() == Busy("the ramdisk is looking at the hardware", begun=False)


async def test_a_preparation_that_is_not_wanted_any_more_is_given_up_and_can_be_asked_for_again():
    async with demo(at_once(prepare=Behaviour(fails=1, seconds=[0, FOREVER, 0]))) as play:
        await play.inspected()
        order = Preparation(name="one", firmware=SETTINGS)
        assert isinstance(await play.prepare(order), Failed)
        assert await play.prepare(Preparation(name="none")) == Ready(None)
        hangs = await play.backend.prepare(play.host, order, permit=play.permit, again=False)
        assert isinstance(hangs, Busy)
        assert await play.prepare(Preparation(name="none")) == Ready(None)
        assert play.stage.done("prepare") == 0
        assert await play.prepare(order) == Ready(None)
        assert play.stage.done("prepare") == 1


async def test_a_script_says_what_the_machines_boot():
    script = Script(network_boot=True, ramdisk_formats=["iso"])
    async with demo(script) as play:
        assert play.backend.boots_over_network("ipmi://192.0.2.1")
        assert play.backend.ramdisk_formats("ipmi://192.0.2.1") == ("iso",)
    async with demo() as play:
        assert not play.backend.boots_over_network("ipmi://192.0.2.1")
        assert play.backend.ramdisk_formats("ipmi://192.0.2.1") == ()


async def test_a_small_machine_reports_little_and_what_hosts_are_told_by():
    async with demo(at_once(inventory="small")) as play:
        await play.registered()
        small = (await play.inspect()).value.hardware
    whole = hardware_of(KEY, MAC)
    assert (small.cpu.arch, [nic.mac for nic in small.nics]) == ("x86_64", [nic.mac for nic in whole.nics])
    assert len(msgspec.json.encode(wire(small))) < 1024 < len(msgspec.json.encode(wire(whole)))


@pytest.mark.looptime
@pytest.mark.parametrize("what", ["another change", "nothing"])
async def test_a_failure_that_nobody_heard_of_is_told_before_another_order_begins(what: str):
    """Whoever noted the first order as begun would take it for done, and firmware would never be written."""
    async with demo(at_once(prepare=Behaviour(fails=1, seconds=[5, 0]))) as play:
        await play.inspected()
        first = Preparation(name="first", firmware=FirmwareChange(updates=(UPDATE,)))
        begun = await play.backend.prepare(play.host, first, permit=play.permit, again=False)
        assert isinstance(begun, Busy)
        assert begun.begun
        await asyncio.sleep(6)
        change = FirmwareChange(settings={"NumLock": "Off"} if what == "another change" else {})
        second = Preparation(name="second", firmware=change)
        told = await play.backend.prepare(play.host, second, permit=play.permit, again=False)
        assert isinstance(told, Failed)
        assert play.stage.done("prepare") == 0
        assert await play.prepare(second, again=True) == Ready(None)
