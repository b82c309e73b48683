"""kill -9 of Ironic in the middle of what it does for a host, or with its database lost."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from backend.world import USER_DATA, Bench, World
from ingot.lab.client import Lab
from ingot.provisioner import Act, Ready
from ingot.provisioner.ironic.client import IronicClient

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("", id="before the first step"),
        pytest.param("deploy", id="while the ramdisk is booted"),
        pytest.param("tear_down_agent", id="while the ramdisk is stopped"),
        pytest.param("boot_instance", id="while the system is started"),
    ],
)
async def test_an_ironic_killed_while_it_deploys_goes_on_without_an_error_and_deploys_once(
    world: World, lab: Lab, step: str
):
    bench = Bench(world, lab, cleaning=False)
    await bench.register()
    order = bench.order()
    killing = asyncio.create_task(world.kill_ironic_at(bench, step))

    # `done` ends at the first failure that is told.
    assert await bench.done(
        lambda: bench.backend.provision(bench.ref, order, permit=bench.permit, again=False)
    ) == Ready(None)
    await killing
    assert await bench.kept(order.image) == Ready(None)
    async with IronicClient(world.ironic_access) as client:
        node = await client.node(bench.ref.backend_id)
    assert node.provision_state == "active"
    assert node.instance_uuid == bench.ref.uid

    server = await world.ready(lambda: running(bench))
    assert server.deployments == 1
    assert server.running.image_sha256 == lab.file.image("raw").disk_sha256
    assert server.running.user_data == USER_DATA
    assert Act.UNDEPLOY not in bench.acts
    assert Act.CLEAN not in bench.acts[1:]
    assert (Act.FORGET in bench.acts) is (step in ("tear_down_agent", "boot_instance"))


async def running(bench: Bench) -> Any:
    server = await bench.server()
    assert server.booted_into == "instance"
    return server


async def test_an_ironic_killed_while_it_inspects_inspects_again_without_an_error(world: World, lab: Lab):
    bench = Bench(world, lab)
    await bench.register()
    killing = asyncio.create_task(world.kill_ironic_at(bench, "", state="inspecting"))
    assert isinstance(await bench.inspect(), Ready)
    await killing


async def test_a_cleaning_that_was_cut_off_leaves_no_step_that_the_next_one_takes_for_done(
    world: World, lab: Lab
):
    bench = Bench(world, lab)
    await bench.register()
    world.stop("ironic", signal.SIGKILL)
    # What a kill leaves in the moment between two steps.
    step = {"interface": "deploy", "step": "erase_devices_metadata", "priority": 10}
    with closing(sqlite3.connect(world.settings.paths.database_file)) as database:
        database.execute(
            "UPDATE nodes SET provision_state = 'cleaning', target_provision_state = 'available', clean_step = ? WHERE uuid = ?",
            (json.dumps(step), bench.ref.backend_id),
        )
        database.commit()
    world.start_ironic()
    assert await bench.provision() == Ready(None)
    server = await running(bench)
    assert (server.cleanings, server.deployments) == (1, 1)


async def test_a_deployment_that_was_over_when_ironic_was_killed_is_ended_and_not_done_again(
    world: World, lab: Lab
):
    bench = Bench(world, lab)
    await bench.register()
    order = bench.order()
    assert await bench.provision(order) == Ready(None)
    before = await running(bench)
    world.stop("ironic", signal.SIGKILL)
    # What a kill leaves in the moment between the last step and the end.
    with closing(sqlite3.connect(world.settings.paths.database_file)) as database:
        kept = database.execute(
            "SELECT driver_internal_info FROM nodes WHERE uuid = ?", (bench.ref.backend_id,)
        )
        since = json.loads(kept.fetchone()[0])["ingot_deployment_is_over"]["since"]
        database.execute(
            "UPDATE nodes SET provision_state = 'deploying', target_provision_state = 'active', provision_updated_at = ? "
            "WHERE uuid = ?",
            (datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M:%S.%f"), bench.ref.backend_id),
        )
        database.commit()
    world.start_ironic()
    assert await bench.provision(order) == Ready(None)
    after = await running(bench)
    assert (after.deployments, after.power_actions) == (1, before.power_actions)


async def test_a_running_host_is_adopted_after_ironic_was_killed_and_lost_its_database(
    world: World, lab: Lab
):
    bench = Bench(world, lab)
    await bench.register()
    order = bench.order("qcow2")
    assert await bench.provision(order) == Ready(None)
    before = await bench.server()
    assert before.deployments == 1
    assert before.running is not None

    world.stop("ironic", signal.SIGKILL)
    for file in world.settings.paths.state.glob("ironic.db*"):
        file.unlink()
    world.start_ironic()
    assert world.backend is not None
    await world.ready(world.backend.check)

    old = bench.ref.backend_id
    assert await bench.kept(order.image) == Ready(None)
    assert bench.ref.backend_id != old
    after = await bench.server()
    assert after.deployments == 1
    assert after.power_actions == before.power_actions
    assert after.running == before.running
    assert await bench.delete() == Ready(None)
    assert (await bench.server()).power == "On"
