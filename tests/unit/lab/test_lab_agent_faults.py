"""Agents that misbehave, and agents that are held: what Ironic hears of them, and what is left on the disks."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from lab_bench import Bench, until
from lab_rack import Rack

from ingot.lab.faults import Faults
from ingot.lab.samples import sample_disk

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMAGE = sample_disk()[: 2 << 20]
STEP = {"step": "erase_devices_metadata", "interface": "deploy"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rack]:
    async with Rack.running(tmp_path_factory.mktemp("rack"), servers=11) as rack:
        yield rack


@pytest_asyncio.fixture(loop_scope="module")
async def bench(rack: Rack) -> AsyncIterator[Bench]:
    async with rack.bench() as bench:
        yield bench


async def misbehave(bench: Bench, **faults: Any) -> None:
    await bench.lab.set_faults(bench.plate.name, Faults(**faults))


async def order_image(bench: Bench, url: str) -> None:
    info = {
        "id": "image",
        "urls": [url],
        "os_hash_algo": "sha256",
        "os_hash_value": hashlib.sha256(IMAGE).hexdigest(),
    }
    step = {"step": "write_image", "interface": "deploy", "args": {"image_info": info}}
    status, body = await bench.ironic.order("deploy.execute_deploy_step", {"step": step})
    assert (status, body["command_status"]) == (200, "RUNNING"), body


async def test_an_agent_that_dies_while_it_writes_leaves_half_an_image_and_no_word(
    rack: Rack, bench: Bench
) -> None:
    await misbehave(bench, die_in_step="write_image")
    await bench.boot_ramdisk()
    await order_image(bench, rack.site.put("half.raw", IMAGE))
    await bench.said("the agent died in the middle of write_image")

    async def unreachable() -> bool:
        try:
            await bench.ironic.results()
        except OSError:
            return True
        return False

    await until(unreachable, "the agent's port to be closed")
    server = await bench.server()
    assert (server.power, server.booted_into) == ("On", "ramdisk")
    assert (server.deployments, server.written) == (0, {})
    await misbehave(bench)
    await bench.reset("ForceOff")
    bench.ironic.token = "another-token-of-forty-three-characters-or-so"
    await bench.boot_ramdisk()  # a new boot is a new agent
    assert (await bench.deploy_sample())["command_status"] == "SUCCEEDED"


async def test_an_agent_that_garbles_answers_no_order_in_json_and_does_nothing(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await misbehave(bench, agent_garbles=True)
    status, page = await bench.ironic.order("clean.execute_clean_step", {"step": STEP})
    assert (status, page[:6]) == (500, "<html>")
    server = await bench.server()
    assert (server.cleanings, server.acted_out) == (0, {"agent_garbles": 1})
    await misbehave(bench)
    assert await bench.ironic.results() == []
    _, taken = await bench.ironic.order("clean.execute_clean_step", {"step": STEP})
    assert taken["command_status"] == "RUNNING"


async def test_heartbeats_that_are_lost_are_never_sent_and_the_next_ones_are(bench: Bench) -> None:
    bench.ironic.heartbeat_timeout = 0.5
    await misbehave(bench, lose_heartbeats=2)
    await bench.boot_ramdisk()
    await bench.said("a heartbeat is lost on its way")
    assert (await bench.server()).faults.lose_heartbeats == 0
    assert len([line for line in (await bench.server()).log if "is lost on its way" in line.text]) == 2


async def test_an_agent_with_other_macs_posts_and_looks_up_those(bench: Bench) -> None:
    await misbehave(bench, wrong_macs=True)
    await bench.boot_ramdisk()
    (posted,) = bench.ironic.inspections
    said = {nic["mac_address"] for nic in posted["inventory"]["interfaces"]}
    assert said.isdisjoint(bench.plate.macs)
    assert set(bench.ironic.lookups[0].split(",")) == said


async def test_an_inventory_can_lack_what_ironic_needs_and_can_come_with_an_error(bench: Bench) -> None:
    await misbehave(bench, inventory_lacks=["cpu", "disks"], inspection_error="no disks were found")
    await bench.boot_ramdisk()
    (posted,) = bench.ironic.inspections
    assert {"cpu", "disks"}.isdisjoint(posted["inventory"])
    assert posted["error"] == "no disks were found"


async def test_a_silent_agent_says_nothing_until_its_server_boots_again(bench: Bench) -> None:
    await misbehave(bench, silent_agent=True)
    await bench.boot_medium(bench.ramdisk_url)
    await bench.said("the agent stays silent")
    await misbehave(bench)
    assert (bench.ironic.inspection_tries, bench.ironic.lookups) == (0, [])
    await bench.reset("ForceOff")
    await bench.boot_ramdisk()


async def test_a_locked_agent_is_not_to_be_reached_any_more(bench: Bench) -> None:
    await bench.boot_ramdisk()
    status, body = await bench.ironic.order("system.lockdown", {}, wait=True)
    assert (status, body["command_status"]) == (200, "SUCCEEDED")
    await bench.said("the agent was locked down")
    assert (await bench.server()).power == "On"


async def test_a_step_that_is_held_runs_until_it_is_released(bench: Bench) -> None:
    await bench.lab.hold(bench.plate.name, "erase_devices_metadata")
    await bench.boot_ramdisk()
    await bench.ironic.order("clean.execute_clean_step", {"step": STEP})
    await bench.said("held at erase_devices_metadata")
    (running,) = await bench.ironic.results()
    assert (running["command_status"], (await bench.server()).cleanings) == ("RUNNING", 0)
    await bench.lab.release(bench.plate.name)
    assert (await bench.ironic.finished())["command_status"] == "SUCCEEDED"
    assert (await bench.server()).cleanings == 1


async def test_an_image_that_is_held_is_half_written(rack: Rack, bench: Bench) -> None:
    await bench.lab.hold(bench.plate.name, "write_image")
    await bench.boot_ramdisk()
    await order_image(bench, rack.site.put("held.raw", IMAGE))
    await bench.said("held at write_image")
    disk = bench.state / "lab" / "servers" / bench.plate.name / "disk-1.img"
    with disk.open("rb") as file:  # its start: the disk has 20 GiB, most of them holes
        written = file.read(2 << 20)
    assert written[: 1 << 20] == IMAGE[: 1 << 20]
    assert written[1 << 20 : 2 << 20] == bytes(1 << 20)
    await bench.lab.release(bench.plate.name)
    assert (await bench.ironic.finished())["command_status"] == "SUCCEEDED"
    assert (await bench.server()).deployments == 1


async def test_a_node_that_is_locked_is_looked_up_again(bench: Bench) -> None:
    bench.ironic.refuse_lookups = 2
    await bench.boot_ramdisk()
    assert bench.ironic.refuse_lookups == 0


async def test_a_short_command_can_fail_and_be_held_too(bench: Bench) -> None:
    await misbehave(bench, fail_steps={"install_bootloader": "no room for it"})
    await bench.boot_ramdisk()
    _, failed = await bench.ironic.order("image.install_bootloader", {})
    assert failed["command_error"]["details"] == "no room for it"
    await bench.lab.hold(bench.plate.name, "power_off")
    _, held = await bench.ironic.order("standby.power_off", {})
    assert (held["command_status"], (await bench.server()).power) == ("RUNNING", "On")
    await bench.lab.release(bench.plate.name)
    await bench.said("the operating system switches off")
