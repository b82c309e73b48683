"""A host from nothing to an image and back, and what is done to one on the way."""

from __future__ import annotations

import pytest

from backend.world import USER_DATA, Bench, World
from ingot.lab.client import Lab
from ingot.provisioner import (
    Act,
    Failed,
    FirmwareChange,
    NotRegistered,
    Power,
    Preparation,
    Ready,
    Service,
    Subscription,
)
from ingot.provisioner.ironic.client import IronicClient
from ingot.trust import Secret

pytestmark = pytest.mark.asyncio(loop_scope="session")

TURBO = FirmwareChange(settings={"Turbo": "Enabled"})
EVENTS = Subscription(destination="https://127.0.0.1/events", headers={"Authorization": Secret("s3cret")})


async def test_the_whole_life_of_a_host_on_real_ironic(world: World, lab: Lab):
    bench = Bench(world, lab)
    assert isinstance(await bench.register(), Ready)

    inspected = await bench.inspect()
    assert isinstance(inspected, Ready)
    assert {nic.mac for nic in inspected.value.hardware.nics} == set(bench.plate.macs)
    assert inspected.value.hardware.cpu.arch == "x86_64"
    assert inspected.value.hardware.storage

    assert await bench.provision() == Ready(None)
    server = await bench.server()
    sample = lab.file.image("raw")
    assert server.deployments == 1
    assert server.cleanings == 1
    assert server.running is not None
    assert server.running.image_sha256 == sample.disk_sha256
    assert server.running.user_data == USER_DATA
    assert (await bench.backend.vitals(bench.ref)).powered_on is True

    assert await bench.switch(Power.OFF) == Ready(None)
    assert (await bench.server()).power == "Off"
    assert await bench.switch(Power.ON) == Ready(None)
    assert (await bench.server()).power == "On"

    # A change that the machine cannot make is told, and given up: what ran goes on.
    running = (await bench.server()).running
    told = await bench.service(Service(name="turbo", firmware=TURBO))
    assert isinstance(told, Failed)
    assert "The BIOS has no attribute Turbo" in told.message
    assert await bench.service(Service(name="nothing")) == Ready(None)
    assert (await bench.server()).running == running

    assert await bench.deprovision() == Ready(None)
    server = await bench.server()
    assert server.running is None
    assert server.cleanings == 2
    assert await bench.delete() == Ready(None)
    assert isinstance(await bench.backend.vitals(bench.ref), NotRegistered)
    assert bench.acts == [
        Act.POWER_OFF,
        Act.CLEAN,
        Act.DEPLOY,
        Act.POWER_OFF,
        Act.SERVICE,
        Act.SERVICE,
        Act.UNDEPLOY,
        Act.DELETE,
    ]
    assert world.backend is not None
    assert world.backend.push_is_heard


async def test_a_machine_tells_its_firmware_settings_and_survives_an_order_for_one_it_does_not_have(
    world: World, lab: Lab
):
    bench = Bench(world, lab)
    await bench.register()
    told = await bench.backend.firmware_settings(bench.ref)
    assert isinstance(told, Ready)
    assert told.value.settings["ProcTurboMode"] == "Enabled"
    assert "Turbo" not in told.value.settings
    components = await bench.backend.firmware_components(bench.ref)
    assert isinstance(components, Ready)
    assert {component.name for component in components.value} >= {"bios", "bmc"}
    assert await bench.prepare(Preparation(name="nothing")) == Ready(None)

    for _ in range(2):
        assert isinstance(await bench.inspect("on monday"), Ready)
    assert (await bench.server()).boots == 1

    for again in (False, True):
        told = await bench.prepare(Preparation(name="turbo", firmware=TURBO), again=again)
        assert isinstance(told, Failed)
        assert "the step bios.apply_configuration failed" in told.message
        assert "The BIOS has no attribute Turbo" in told.message
    assert await bench.prepare(Preparation(name="nothing")) == Ready(None)
    async with IronicClient(world.ironic_access) as client:
        node = await client.node(bench.ref.backend_id)
    assert node.provision_state == "manageable"
    assert not node.maintenance
    assert bench.acts == [Act.POWER_OFF, Act.CLEAN, Act.CLEAN]


async def test_a_machine_in_use_gets_a_data_image_is_detached_and_taken_over_again(world: World, lab: Lab):
    bench = Bench(world, lab, cleaning=False)
    await bench.register()
    order = bench.order()
    assert await bench.provision(order) == Ready(None)
    assert await bench.switch(Power.OFF) == Ready(None)
    iso = lab.file.ramdisk_url
    for url, loaded in ((iso, True), (iso, True), ("", False)):
        assert await bench.data_image(url) == Ready(None)
        assert bool((await bench.server()).media) is loaded
    assert await bench.switch(Power.ON) == Ready(None)

    told = await bench.backend.subscribe(bench.ref, EVENTS, again=False)
    assert isinstance(told, Ready)
    assert await bench.backend.subscribe(bench.ref, EVENTS, again=False) == told
    assert await bench.backend.unsubscribe(bench.ref, told.value, again=False) == Ready(None)

    before = await bench.server()
    assert await bench.done(
        lambda: bench.backend.detach(bench.ref, force=False, permit=bench.permit)
    ) == Ready(None)
    assert isinstance(await bench.backend.vitals(bench.ref), NotRegistered)
    assert await bench.kept(order.image) == Ready(None)
    after = await bench.server()
    assert (after.running, after.power_actions) == (before.running, before.power_actions)
    assert bench.acts[-1] is Act.DETACH
